"""A clock that stands still until the test moves it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from droidfleet_shared.clock import Clock, Uptime

SETTLE_TURNS = 200
"""Turns of the event loop after which everything that needs no time has happened."""


async def settle(turns: int = SETTLE_TURNS) -> None:
    """Lets everything run that needs no time."""
    for _ in range(turns):
        await asyncio.sleep(0)


class HandClock(Clock):
    """Sleepers wake when the test moves the time past them; nothing else moves it.

    ``boot`` names a start of the machine. ``ahead_s``: how much the wall clock is ahead of what it was.
    """

    def __init__(self, boot: str = "boot-1") -> None:
        self._now = 0.0
        self._slept = 0.0
        self._boot = boot
        self.ahead_s = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def monotonic(self) -> float:
        return self._now

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now + self._slept + self.ahead_s)

    def uptime(self) -> Uptime:
        return Uptime(self._boot, self._now + self._slept)

    async def sleep(self, seconds: float) -> None:
        sleeper = (self._now + seconds, asyncio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

    async def move(self, seconds: float, *, turns: int = SETTLE_TURNS) -> None:
        """Moves the time on, waking each sleeper at its own time, and lets what follows run, for ``turns`` of the event
        loop each: a long time with little to do takes fewer."""
        end = self._now + seconds
        await settle()
        while due := [sleeper for sleeper in self._sleepers if sleeper[0] <= end and not sleeper[1].is_set()]:
            at, event = min(due, key=lambda sleeper: sleeper[0])
            self._now = max(self._now, at)
            event.set()
            await settle(turns)
        self._now = end
        await settle()

    def stand_still(self, seconds: float) -> None:
        """The time goes on while nothing runs, as for a stopped process: whoever is due wakes at the next `move`."""
        self._now += seconds

    def sleep_machine(self, seconds: float) -> None:
        """The machine sleeps: its monotonic clock stands still, the others go on."""
        self._slept += seconds
