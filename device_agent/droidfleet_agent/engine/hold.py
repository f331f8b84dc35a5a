"""Holding a run where somebody wants it paused, and the clock that stands still meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_shared.clock import Clock, Uptime

NOTICED_WITHIN_S = 0.25
"""How late a run that is held notices that it may go on, and a long delay that it is to be held."""

MAX_HOLD_S = 24 * 60 * 60.0
"""A run that nobody lets go on ends after this long: what stands on the screen then is not what the task was at."""


class RunClock(Clock):
    """The clock of one run: its monotonic line stands still while the run is held, and with it every deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held_s = 0.0
        self._since: float | None = None

    def monotonic(self) -> float:
        return (self._clock.monotonic() if self._since is None else self._since) - self._held_s

    def now(self) -> datetime:
        return self._clock.now()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def uptime(self) -> Uptime:
        return self._clock.uptime()

    @property
    def standing_s(self) -> float:
        """Since when it stands still."""
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    @contextmanager
    def standing(self) -> Iterator[None]:
        """It stands still while the block lasts."""
        self._since = self._clock.monotonic()
        try:
            yield
        finally:
            self._held_s += self._clock.monotonic() - self._since
            self._since = None


async def hold(clock: RunClock, control: RunControl, observer: RunObserver, *, step_id: str = "") -> None:
    """Returns at once, or where the run is to be held once it may go on. Only where the open step, ``step_id`` (none:
    between two steps), has announced nothing: a process that ends meanwhile leaves nothing in doubt.

    Raises:
        RunCancelled, RunLeft: as everywhere, and when it was held for too long.
    """
    while control.pausing:
        control.check(may_leave=True)
        await observer.paused(step_id)
        with clock.standing():
            await _held(clock, control)
        await observer.continued(step_id)


async def _held(clock: RunClock, control: RunControl) -> None:
    while control.pausing:
        if clock.standing_s >= MAX_HOLD_S:
            control.cancel(f"it was held for {MAX_HOLD_S / 3600:.0f} hours, and nobody let it go on.")
        async with control.interruptible(may_leave=True):
            await clock.sleep(NOTICED_WITHIN_S)
