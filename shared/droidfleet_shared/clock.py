"""Time as an argument: a clock port, its two implementations, and deadlines.

Deciding code takes a `Clock` or a ``now``; only `SystemClock` reads the machine's clock. Durations are seconds as
``float`` from a monotonic source; instants are aware UTC datetimes.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Linux draws it anew at each start of the machine (random(4))."""

_UPTIME_SOURCE = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's monotonic clock stands still while the machine sleeps, so there is another; macOS' does not."""


@dataclass(frozen=True, slots=True)
class Uptime:
    """``s``: seconds since the machine started, its sleep included. ``boot``: which start; empty: not known, and of use
    to this process only. What two processes of one start say can be compared, whatever the wall clock did meanwhile."""

    boot: str
    s: float


class Clock(ABC):
    """Contract: `monotonic` never goes back; `now` is aware UTC; `sleep` returns no earlier than asked."""

    @abstractmethod
    def monotonic(self) -> float:
        """Seconds since an arbitrary start; unaffected by wall-clock changes."""

    @abstractmethod
    def now(self) -> datetime:
        """The wall clock, aware UTC. For people and records, never for measuring."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Waits; cancellation passes through."""

    def uptime(self) -> Uptime:
        """How long the machine has been running. Here for clocks that know of no machine."""
        return Uptime("", self.monotonic())

    def since(self, at: datetime, uptime: Uptime | None) -> float:
        """Seconds since an instant that this or an earlier process has written down, negative before it.

        By the machine's uptime where that was the same start of it, else by the wall clock, which may have been set.
        """
        now = self.uptime()
        if uptime is not None and now.boot and uptime.boot == now.boot:
            return now.s - uptime.s
        return (self.now() - at).total_seconds()

    def deadline(self, seconds: float) -> Deadline:
        """A deadline ``seconds`` from now."""
        return Deadline(self, self.monotonic() + seconds)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A fixed point on one clock's monotonic line. Pass it down; never restart it on the way."""

    clock: Clock
    at: float

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock.monotonic())

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.clock.monotonic() >= self.at

    def at_most(self, seconds: float) -> Deadline:
        """The earlier of this deadline and ``seconds`` from now."""
        return Deadline(self.clock, min(self.at, self.clock.monotonic() + seconds))


class SystemClock(Clock):
    """The machine's clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def uptime(self) -> Uptime:
        return Uptime(_boot_id(), time.clock_gettime(_UPTIME_SOURCE))


@cache
def _boot_id() -> str:
    """Empty where the system has none, or shows it to nobody."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class VirtualClock(Clock):
    """A clock that jumps: when nothing else can run, the earliest sleeper wakes and the time moves on to it.

    For tests and simulation. Sleepers wake in the order of their deadlines, so concurrent waits interleave as they
    would in real time; work that awaits real I/O in between is not waited for.
    """

    SETTLE_ROUNDS = 5
    """Rounds of the event loop that others get before time moves, so that what is ready now happens first."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        return self._elapsed

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def advance(self, seconds: float) -> None:
        """Moves the time on by hand (a phone that takes 30 ms to answer, say)."""
        self._elapsed += seconds

    async def sleep(self, seconds: float) -> None:
        mine = (self._elapsed + max(0.0, seconds), next(self._order), asyncio.Event())
        heapq.heappush(self._sleepers, mine)
        try:
            while True:
                for _ in range(self.SETTLE_ROUNDS):
                    await asyncio.sleep(0)
                if self._sleepers[0] is mine:
                    break
                await mine[2].wait()
                mine[2].clear()
            self._elapsed = max(self._elapsed, mine[0])
        finally:
            self._sleepers.remove(mine)
            heapq.heapify(self._sleepers)
            if self._sleepers:
                self._sleepers[0][2].set()
