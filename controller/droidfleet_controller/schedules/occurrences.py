"""When a schedule's occurrences are. Pure: the same document, anchor and instant give the same occurrences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile

from droidfleet_controller.schedules import times, zones
from droidfleet_controller.schedules.cron import parse
from droidfleet_controller.schedules.moments import ZonedCron
from droidfleet_controller.schedules.spec import Gap, ScheduleSpec, WindowTimes
from droidfleet_controller.schedules.windows import WindowClock

_INSTANT = timedelta(microseconds=1)
_FIRST_LOOK_BACK = timedelta(hours=1)
_LOOK_BACK_GROWTH = 2


@dataclass(frozen=True, slots=True)
class Timed:
    """An occurrence: its intended instant, the time on the clock that was asked for (None for an interval), and when
    its window closes."""

    at: datetime
    wanted: datetime | None = None
    stop_at: datetime | None = None


class Timetable:
    """The occurrences of a schedule. ``anchor``: when it was made; from there an interval counts that has no
    `from`; ``last``: the instant of `until`.

    Raises:
        CronError, UnknownZoneError, TimeError: `check` says them better.
    """

    def __init__(self, spec: ScheduleSpec, *, anchor: datetime) -> None:
        self.spec = spec
        self.zone = zones.zone(spec.time_zone)
        self._anchor = anchor.replace(microsecond=0)
        self._first = None if spec.from_ is None else times.first_instant(spec.from_, self.zone)
        self.last = None if spec.until is None else times.last_instant(spec.until, self.zone)

    def has_ended(self, now: datetime) -> bool:
        """Whether it had its time: `until` has passed, or the one local time that it names."""
        if self.last is not None and self.last <= now:
            return True
        when = self.spec.when
        once = when.once or (when.window.start if when.window and times.is_meant(when.window.start) else None)
        return once is not None and any(
            at <= now for at in zones.instants(times.read(once), self.zone, gap=self.spec.gap, fold=self.spec.fold)
        )

    def after(self, instant: datetime) -> Iterator[Timed]:
        """The occurrences after an instant, ascending, each instant once."""
        if self._first is not None:
            instant = max(instant, self._first - _INSTANT)
        before: datetime | None = None
        for each in self._all_after(instant):
            if self.last is not None and each.at > self.last:
                return
            if before is None or each.at > before:
                yield each
            before = each.at

    def between(self, after: datetime, until: datetime) -> Iterator[Timed]:
        """Those after one instant and no later than another."""
        return takewhile(lambda each: each.at <= until, self.after(after))

    def newest(self, after: datetime, until: datetime, *, limit: int) -> tuple[list[Timed], bool]:
        """The last ``limit`` of those, ascending, and whether there are more. Costs no more when there are many."""
        back = _FIRST_LOOK_BACK
        while until - after > back:
            found = list(self.between(until - back, until))
            if len(found) > limit:
                return found[-limit:], True
            back *= _LOOK_BACK_GROWTH
        found = list(self.between(after, until))
        return found[-limit:], len(found) > limit

    def _all_after(self, instant: datetime) -> Iterator[Timed]:
        when = self.spec.when
        if when.once is not None:
            yield from self._once(times.read(when.once), instant)
        elif when.interval is not None:
            yield from self._interval(when.interval, instant)
        elif when.cron is not None:
            yield from (Timed(each.at, each.wanted) for each in self._cron(when.cron).after(instant))
        elif when.window is not None:
            yield from self._window(when.window, instant)

    def _cron(self, expression: str) -> ZonedCron:
        return ZonedCron(parse(expression), self.zone, self.spec.gap, self.spec.fold)

    def _once(self, wanted: datetime, instant: datetime) -> Iterator[Timed]:
        for at in zones.instants(wanted, self.zone, gap=self.spec.gap, fold=self.spec.fold):
            if at > instant:
                yield Timed(at, wanted)

    def _interval(self, interval: timedelta, instant: datetime) -> Iterator[Timed]:
        anchor = self._anchor if self._first is None else self._first
        number = max(0 if self._first is not None else 1, (instant - anchor) // interval + 1)
        while True:
            try:
                yield Timed(anchor + number * interval)
            except OverflowError:
                return
            number += 1

    def _window(self, window: WindowTimes, instant: datetime) -> Iterator[Timed]:
        if times.is_meant(window.start):
            stops = zones.instants(times.read(window.stop), self.zone, gap=Gap.NEXT_VALID, fold=self.spec.fold)
            for each in self._once(times.read(window.start), instant):
                stop = next((stop for stop in stops if stop > each.at), None)
                if stop is not None:
                    yield Timed(each.at, each.wanted, stop)
            return
        for opening in self.window_clock(window).openings(instant):
            yield Timed(opening.start.at, opening.start.wanted, opening.stop.at)

    def window_clock(self, window: WindowTimes) -> WindowClock:
        """The clock of a window of cron expressions. Its stop follows `fold`, and is never skipped by `gap`."""
        stop = ZonedCron(parse(window.stop), self.zone, Gap.NEXT_VALID, self.spec.fold)
        return WindowClock(self._cron(window.start), stop)
