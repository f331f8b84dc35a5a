"""The lease: who may act on the phone, and until when. Pure but for the clock and the random ids that it is given.

It ends by this clock alone, whatever becomes of its holder. A step that is under way keeps it until that step has
ended, which is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import PreconditionError


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease as it was last given or renewed."""

    lease_id: str
    holder: str
    ttl_s: float
    ends: Deadline
    ends_at: datetime


class DeviceBusyError(PreconditionError):
    """Somebody else acts on the phone; the message says who, and until when."""


class LeaseLostError(PreconditionError):
    """The lease has ended, or never was."""


class Leases:
    """At most one lease at a time. ``new_id``: an id that nobody guesses."""

    def __init__(self, clock: Clock, *, new_id: Callable[[], str]) -> None:
        self._clock = clock
        self._new_id = new_id
        self._lease: Lease | None = None
        self._in_use = False

    @property
    def current(self) -> Lease | None:
        """The lease that holds now."""
        if self._lease is not None and self._lease.ends.passed and not self._in_use:
            self._lease = None
        return self._lease

    def open(self, holder: str, *, ttl_s: float) -> Lease:
        """Gives the lease.

        Raises:
            DeviceBusyError: somebody holds it.
        """
        held = self.current
        if held is not None:
            raise DeviceBusyError(
                "DEVICE_BUSY",
                f"the device is in use by {held.holder}, until {held.ends_at:%H:%M:%S} UTC unless that is renewed.",
                hint="Try again later, or ask them to end their session. Looking needs no session.",
            )
        self._lease = self._given(self._new_id(), holder, ttl_s)
        return self._lease

    def renew(self, lease_id: str) -> Lease:
        """Gives it for as long again.

        Raises:
            LeaseLostError
        """
        held = self.require(lease_id)
        self._lease = self._given(held.lease_id, held.holder, held.ttl_s)
        return self._lease

    def close(self, lease_id: str) -> bool:
        """Ends it; whether it was the one that held."""
        held = self.current
        if held is None or held.lease_id != lease_id:
            return False
        self._lease = None
        self._in_use = False
        return True

    def use(self, lease_id: str) -> None:
        """An action begins under the lease, which so holds until `used`.

        Raises:
            LeaseLostError
        """
        self.renew(lease_id)
        self._in_use = True

    def used(self, lease_id: str) -> None:
        """The action has ended; from now on the time counts again."""
        self._in_use = False
        held = self._lease
        if held is not None and held.lease_id == lease_id:
            self._lease = self._given(held.lease_id, held.holder, held.ttl_s)

    def require(self, lease_id: str) -> Lease:
        """The lease of this id.

        Raises:
            LeaseLostError
        """
        held = self.current
        if held is None or held.lease_id != lease_id:
            raise LeaseLostError(
                "LEASE_LOST",
                "this session has ended: it was closed, or not renewed in time.",
                hint="Open another one, and look at the phone before you go on: others may have used it meanwhile.",
            )
        return held

    def _given(self, lease_id: str, holder: str, ttl_s: float) -> Lease:
        ends_at = self._clock.now() + timedelta(seconds=ttl_s)
        return Lease(lease_id, holder, ttl_s, self._clock.deadline(ttl_s), ends_at)
