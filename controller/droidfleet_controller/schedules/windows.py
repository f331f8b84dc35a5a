"""Windows: from a start to a stop, again and again. Whether one is open, and when it opens. Pure.

A start while it is open changes nothing, nor does a stop while it is closed; at one instant, the stop comes first. A
start in a gap opens at its end. A stop is never skipped, so that no window stays open by a clock change.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from droidfleet_controller.rollouts.spec import Window
from droidfleet_controller.schedules import zones
from droidfleet_controller.schedules.cron import parse
from droidfleet_controller.schedules.moments import Moment, ZonedCron, behind

MAX_EMPTY = 1_000
"""Openings that close at the same instant, one after another, before the search ends."""


@dataclass(frozen=True, slots=True)
class Opening:
    """One time that a window is open: from ``start`` on, until before ``stop``."""

    start: Moment
    stop: Moment


@dataclass(frozen=True, slots=True)
class WindowClock:
    """When a window opens and closes. ``start`` and ``stop`` have the same zone."""

    start: ZonedCron
    stop: ZonedCron

    def opened(self, now: datetime) -> Moment | None:
        """The start that opened it, when it is open now."""
        stop = self.stop.last_until(now)
        # Without any stop for decades, which start opened it does not matter.
        start = self.start.last_until(now) if stop is None else self.start.first_from(stop)
        return start if start is not None and start.at <= now else None

    def openings(self, after: datetime) -> Iterator[Opening]:
        """The times that it opens after an instant, ascending."""
        begin = behind(after)
        mark = begin if self.opened(after) is None else self.stop.first_after(begin)
        empty = 0
        while mark is not None and empty < MAX_EMPTY:
            start = self.start.first_from(mark)
            mark = None if start is None else self.stop.first_after(start)
            if start is not None and mark is not None and start.at < mark.at:
                empty = 0
                yield Opening(start, mark)
            else:
                empty += 1


@lru_cache(maxsize=1_000)
def window_clock(window: Window) -> WindowClock:
    """The clock of a rollout's window.

    Raises:
        CronError: of its start or its stop.
        UnknownZoneError: of its zone.
    """
    where = zones.zone(window.time_zone)
    return WindowClock(ZonedCron(parse(window.start), where), ZonedCron(parse(window.stop), where))


def is_open(window: Window, now: datetime) -> bool:
    """Whether a rollout's window is open."""
    return window_clock(window).opened(now) is not None


def next_opening(window: Window, now: datetime) -> datetime | None:
    """When it opens the next time after ``now``; None: never again."""
    opening = next(window_clock(window).openings(now), None)
    return None if opening is None else opening.start.at
