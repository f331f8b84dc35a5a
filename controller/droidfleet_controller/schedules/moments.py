"""Cron expressions on the clocks of a zone: when they fire, as instants. Pure.

An expression that fires in each hour (`0 * * * *`, `*/20 * * * *`, `0 */2 * * *`) follows the time that elapses: it
fires whenever the clock on the wall shows one of its times, twice where an hour comes twice, not in an hour that there
is not. One with fixed hours means times of the day: those follow the policies for the gap and the fold.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from droidfleet_controller.schedules import zones
from droidfleet_controller.schedules.cron import SEARCH_YEARS, Cron
from droidfleet_controller.schedules.spec import Fold, Gap

LONGEST_CHANGE = timedelta(days=1)
"""No clock was ever set by more: that was a change of the date line."""

_INSTANT = timedelta(microseconds=1)
_FIRST_LOOK_BACK = timedelta(hours=1)
_LOOK_BACK_GROWTH = 4
_LONGEST_LOOK_BACK = timedelta(days=366 * SEARCH_YEARS)


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """An instant at which an expression fires, and the time on the clock that was asked for. They are in order also
    where several times lie in one gap, and so fall on one instant."""

    at: datetime
    wanted: datetime


def behind(instant: datetime) -> Moment:
    """A mark behind every moment at an instant."""
    return Moment(instant, datetime.max)  # noqa: DTZ901  # a time on the wall


@dataclass(frozen=True, slots=True)
class ZonedCron:
    """A cron expression in a zone."""

    cron: Cron
    zone: ZoneInfo
    gap: Gap = Gap.NEXT_VALID
    fold: Fold = Fold.FIRST

    def after(self, instant: datetime) -> Iterator[Moment]:
        """Its moments after an instant, ascending. Several may have one instant."""
        gap, fold = (Gap.SKIP, Fold.BOTH) if self.cron.every_hour else (self.gap, self.fold)
        waiting: list[Moment] = []
        wanted: datetime | None = self._begin(instant)
        while wanted is not None and (wanted := self.cron.next_after(wanted)) is not None:
            found = zones.instants(wanted, self.zone, gap=gap, fold=fold)
            # What is wanted later on the clock comes no earlier than the first instant of this.
            bound = found[0] if found else None
            while waiting and bound is not None and waiting[0].at < bound:
                yield heapq.heappop(waiting)
            for each in found:
                if each > instant:
                    heapq.heappush(waiting, Moment(each, wanted))
        while waiting:
            yield heapq.heappop(waiting)

    def _begin(self, instant: datetime) -> datetime:
        """A time on the clock from which on to look. Where clocks go back soon, times before now come once more."""
        shown = zones.local(instant, self.zone)
        try:
            soon = zones.offset(instant + LONGEST_CHANGE, self.zone) != zones.offset(instant, self.zone)
            return shown - LONGEST_CHANGE if soon else shown
        except OverflowError:
            return shown

    def first_from(self, mark: Moment) -> Moment | None:
        """The first moment at or behind ``mark``, in the order of moments."""
        return next((each for each in self.after(mark.at - _INSTANT) if each >= mark), None)

    def first_after(self, mark: Moment) -> Moment | None:
        """The first moment behind ``mark``, in the order of moments."""
        return next((each for each in self.after(mark.at - _INSTANT) if each > mark), None)

    def last_until(self, instant: datetime) -> Moment | None:
        """The last moment no later than an instant; None when there was none for decades."""
        back = _FIRST_LOOK_BACK
        while back <= _LONGEST_LOOK_BACK:
            last: Moment | None = None
            for each in self.after(instant - back):
                if each.at > instant:
                    break
                last = each
            if last is not None:
                return last
            back *= _LOOK_BACK_GROWTH
        return None
