"""The phones that clients of this process hold: one owner task each, which does one call after the other.

Whoever holds a phone and says nothing for `IDLE_S` loses it: clients end without a word. When this process ends in a
way that it cannot help, the lease runs out at the phone's agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import structlog
from pydantic import JsonValue

from droidfleet_designer.ports import Phones
from droidfleet_designer.tools.tool import Outcome, OutcomeKind
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, ExhaustedError, PreconditionError, UnavailableError
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

log = structlog.get_logger(__name__)

IDLE_S = 300.0
"""A person who looks at what a client did needs some minutes; a client that is gone never comes back."""

MAX_LEASES = 16
"""Phones that are held at a time, by all clients of this process."""

MAX_WAITING = 20
"""Calls that wait for one phone."""

MAX_CALLS = 2_000
"""Of one tool under one lease: far more than any work, and an end to going in circles."""


@dataclass(slots=True, eq=False)
class _Call:
    name: str
    arguments: Mapping[str, JsonValue]
    request_id: str
    answer: asyncio.Future[Outcome]


@dataclass(slots=True, eq=False)
class _Held:
    device: str
    calls: asyncio.Queue[_Call | None] = field(default_factory=asyncio.Queue)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as well when it could not be had; ``refusal`` says why."""
    refusal: DroidfleetError | None = None
    unwanted: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Leases:
    """The leases. `run` owns them; the other methods work while it goes on."""

    def __init__(
        self,
        *,
        phones: Phones,
        holder: str,
        clock: Clock,
        words: EffectWords,
        new_id: Callable[[], str],
        allow_points: bool = False,
    ) -> None:
        self._phones = phones
        self._holder = holder
        self._clock = clock
        self._words = words
        self._new_id = new_id
        self._allow_points = allow_points
        self._held: dict[str, _Held] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Owns the leases until it is cancelled; then all phones are given back."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.Event().wait()

    def device_of(self, lease: str) -> str:
        """The device of a lease.

        Raises:
            PreconditionError: ``LEASE_LOST``.
        """
        return self._of(lease).device

    def holds(self, device: str) -> bool:
        """Whether somebody here has a device."""
        return any(held.device == device for held in self._held.values())

    async def open(self, device: str) -> str:
        """Takes a phone; the lease's id.

        Raises:
            DroidfleetError: it cannot be had; ``TOO_MANY_LEASES``.
        """
        if len(self._held) >= MAX_LEASES:
            raise ExhaustedError("TOO_MANY_LEASES", f"{MAX_LEASES} phones are held already.", hint="Release some.")
        assert self._group is not None
        lease, held = self._new_id(), _Held(device)
        self._held[lease] = held
        self._group.create_task(self._own(lease, held), name=f"lease {device}")
        try:
            await held.taken.wait()
        except asyncio.CancelledError:
            # Nobody would know the lease by its id.
            held.unwanted = True
            held.calls.put_nowait(None)
            raise
        if held.refusal is not None:
            raise held.refusal
        return lease

    async def call(self, lease: str, name: str, arguments: Mapping[str, JsonValue]) -> Outcome:
        """Carries out a call on a leased phone, after those before it.

        Raises:
            PreconditionError: ``LEASE_LOST``.
        """
        held = self._of(lease)
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if held.calls.qsize() >= MAX_WAITING:
            raise ExhaustedError(
                "TOO_MANY_CALLS", f"{MAX_WAITING} calls wait for {held.device}.", hint="Wait for them."
            )
        held.calls.put_nowait(_Call(name, arguments, self._new_id(), answer))
        return await answer

    async def close(self, lease: str) -> None:
        """Gives a phone back, after the calls before it. Harmless when that is done already."""
        held = self._held.get(lease)
        if held is None:
            return
        held.calls.put_nowait(None)
        await held.gone.wait()

    async def close_all(self) -> None:
        """Gives all phones back, each after the calls before."""
        async with asyncio.TaskGroup() as group:
            for lease in tuple(self._held):
                group.create_task(self.close(lease), name=f"release {lease}")

    def _of(self, lease: str) -> _Held:
        held = self._held.get(lease)
        if held is None:
            raise PreconditionError(
                "LEASE_LOST",
                f"there is no lease {lease!r} (any more).",
                hint=f"Take the phone with lease_device; a lease ends after {IDLE_S / 60:.0f} minutes without a call.",
            )
        return held

    async def _own(self, lease: str, held: _Held) -> None:
        """One lease from beginning to end. Whatever breaks ends this lease alone."""
        snapshots: dict[str, Snapshot] = {}
        workshop = Workshop(
            phones=self._phones,
            device=held.device,
            holder=self._holder,
            clock=self._clock,
            words=self._words,
            allow_points=self._allow_points,
            snapshots=snapshots,
            new_id=self._new_id,
            submit=_no_draft,
            max_calls=MAX_CALLS,
        )
        try:
            await workshop.enter()
            held.taken.set()
            try:
                if not held.unwanted:
                    await self._serve(held, workshop, snapshots)
            finally:
                await workshop.leave()
        except DroidfleetError as error:
            held.refusal = error
        except Exception as error:
            log.exception("lease_broke", device=held.device)
            held.refusal = UnavailableError("INTERNAL", f"this server made a mistake ({type(error).__name__}).")
        finally:
            del self._held[lease]
            held.taken.set()
            held.gone.set()
            self._refuse_waiting(held)

    async def _serve(self, held: _Held, workshop: Workshop, snapshots: dict[str, Snapshot]) -> None:
        while True:
            try:
                async with asyncio.timeout(IDLE_S):
                    call = await held.calls.get()
            except TimeoutError:
                log.info("lease_idle", device=held.device)
                return
            if call is None:
                return
            if call.answer.done():
                continue  # given up by its client before its turn came
            try:
                outcome = await workshop.call(call.name, call.arguments, request_id=call.request_id)
            except BaseException as error:
                if call.answer.done():
                    pass
                elif isinstance(error, Exception):
                    call.answer.set_exception(error)
                else:
                    call.answer.cancel()
                raise
            if not call.answer.done():
                call.answer.set_result(outcome)
            # The newest is all that a later call refers to; `s0` is what is put back at the end.
            for name in [name for name in snapshots if name not in ("s0", f"s{_newest(snapshots)}")]:
                del snapshots[name]

    @staticmethod
    def _refuse_waiting(held: _Held) -> None:
        with suppress(asyncio.QueueEmpty):
            while True:
                call = held.calls.get_nowait()
                if call is not None and not call.answer.done():
                    call.answer.set_exception(PreconditionError("LEASE_LOST", f"{held.device} was given back."))


def _newest(snapshots: Mapping[str, Snapshot]) -> int:
    return max(int(name.removeprefix("s")) for name in snapshots)


async def _no_draft(_proposal: Mapping[str, JsonValue]) -> Outcome:
    return Outcome(OutcomeKind.RETRY, "There is nothing to submit to here.", code="UNKNOWN_TOOL")
