"""Every clock change of many zones, for many expressions and all policies, against an oracle that walks the minutes.

The oracle knows nothing of cron: what each expression means is written down beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import groupby, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest

from droidfleet_controller.schedules.cron import parse
from droidfleet_controller.schedules.moments import ZonedCron
from droidfleet_controller.schedules.spec import Fold, Gap
from droidfleet_controller.schedules.zones import zone

FIRST_YEAR, LAST_YEAR = 2024, 2034
MINUTE = timedelta(minutes=1)
AROUND = timedelta(hours=13)
"""Looked at before and after a change: more than any clock is set by, and always one midnight."""

_NAMES = (
    "Africa/Cairo Africa/Casablanca Africa/El_Aaiun America/Anchorage America/Asuncion America/Chicago "
    "America/Denver America/Godthab America/Halifax America/Havana America/Los_Angeles America/Mexico_City "
    "America/Miquelon America/New_York America/Nuuk America/Port-au-Prince America/Santiago "
    "America/Scoresbysund America/St_Johns America/Tijuana Antarctica/Macquarie Antarctica/Troll Asia/Almaty "
    "Asia/Beirut Asia/Famagusta Asia/Gaza Asia/Hebron Asia/Jerusalem Asia/Nicosia Asia/Qostanay "
    "Atlantic/Azores Atlantic/Bermuda Atlantic/Canary Australia/Adelaide Australia/Lord_Howe Australia/Sydney "
    "Europe/Berlin Europe/Chisinau Europe/Dublin Europe/Istanbul Europe/Kyiv Europe/Lisbon Europe/London "
    "Pacific/Auckland Pacific/Chatham Pacific/Easter Pacific/Norfolk UTC "
)
ZONES = _NAMES.split()
"""By a day's part or by half an hour, at midnight, by two hours, with the seasons of the south, with Ramadan, once and
never again, and (two) never."""

EVERY_HOUR = frozenset(range(24))


@dataclass(frozen=True)
class Meant:
    """What an expression means. ``flows``: it fires in each hour, so it follows the time that elapses."""

    expression: str
    minutes: frozenset[int]
    hours: frozenset[int] = EVERY_HOUR
    day: Callable[[date], bool] = lambda _: True
    flows: bool = False

    def among(self, shown: Minutes) -> list[tuple[datetime, datetime]]:
        """The minutes in which the clock shows one of its times."""
        return [
            (instant, local)
            for hour in self.hours
            for minute in self.minutes
            for instant, local in shown.get((hour, minute), ())
            if self.day(local.date())
        ]


Minutes = Mapping[tuple[int, int], list[tuple[datetime, datetime]]]
"""Hour and minute on the clock, to the instants with all that the clock shows."""


@dataclass(frozen=True)
class Shown:
    """A walk over instants, one a minute. ``left_out``: what clocks never show, with the first instant after."""

    first: datetime
    last: datetime
    by_time: Minutes
    left_out: Minutes


def at(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


EXPRESSIONS = (
    Meant("30 2 * * *", at(30), at(2)),
    Meant("0 2 * * *", at(0), at(2)),
    Meant("0 3 * * *", at(0), at(3)),
    Meant("59 1 * * *", at(59), at(1)),
    Meant("15 0 * * *", at(15), at(0)),
    Meant("@daily", at(0), at(0)),
    Meant("30 23 * * *", at(30), at(23)),
    Meant("45 2 * * 0", at(45), at(2), lambda day: day.isoweekday() == 7),
    Meant("45 2 * * 7", at(45), at(2), lambda day: day.isoweekday() == 7),
    Meant("10 1 * * sat,sun", at(10), at(1), lambda day: day.isoweekday() >= 6),
    Meant("0,20,40 2 * * *", at(0, 20, 40), at(2)),
    Meant("*/15 1-3 * * *", at(0, 15, 30, 45), at(1, 2, 3)),
    Meant("5 0,1,2,3,23 * * *", at(5), at(0, 1, 2, 3, 23)),
    Meant("30 2 25-31 * sun", at(30), at(2), lambda day: day.day >= 25 or day.isoweekday() == 7),
    Meant("30 1 * 3,10,11 *", at(30), at(1), lambda day: day.month in {3, 10, 11}),
    Meant("0 12 * * *", at(0), at(12)),
    Meant("7 0-22 * * *", at(7), frozenset(range(23))),
    Meant("0 * * * *", at(0), flows=True),
    Meant("@hourly", at(0), flows=True),
    Meant("*/20 * * * *", at(0, 20, 40), flows=True),
    Meant("17 */2 * * *", at(17), frozenset(range(0, 24, 2)), flows=True),
    Meant("30 0-23 * * *", at(30), flows=True),
    Meant("3-59/7 * * * mon-sat", frozenset(range(3, 60, 7)), day=lambda day: day.isoweekday() <= 6, flows=True),
)


def offset(instant: datetime, where: ZoneInfo) -> timedelta:
    found = instant.astimezone(where).utcoffset()
    assert found is not None
    return found


@cache
def changes(where: ZoneInfo) -> tuple[datetime, ...]:
    """The instants at which the clocks there are set, within the years."""
    step = timedelta(hours=6)
    found: list[datetime] = []
    instant = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
    while instant.year <= LAST_YEAR:
        if (before := offset(instant, where)) != offset(instant + step, where):
            minutes = (instant + number * MINUTE for number in range(1, step // MINUTE + 1))
            found.append(next(each for each in minutes if offset(each, where) != before))
        instant += step
    return tuple(found)


def walk(where: ZoneInfo, change: datetime) -> Shown:
    count = 2 * AROUND // MINUTE
    begin = change - AROUND
    every = [
        (each := begin + number * MINUTE, each.astimezone(where).replace(tzinfo=None, fold=0))
        for number in range(count)
    ]
    missing = [
        (after, before + number * MINUTE)
        for (_, before), (after, local) in pairwise(every)
        for number in range(1, (local - before) // MINUTE)
    ]
    return Shown(every[0][0], every[-1][0], by_time(every), by_time(missing))


def by_time(every: list[tuple[datetime, datetime]]) -> Minutes:
    found: dict[tuple[int, int], list[tuple[datetime, datetime]]] = {}
    for instant, local in every:
        found.setdefault((local.hour, local.minute), []).append((instant, local))
    return found


def expected(meant: Meant, shown: Shown, *, gap: Gap, fold: Fold) -> list[datetime]:
    """The oracle: when it has to fire, by the stated policy."""
    matching = meant.among(shown.by_time)
    if meant.flows:
        return sorted(instant for instant, _ in matching)
    instants: dict[datetime, list[datetime]] = {}
    for instant, local in matching:
        instants.setdefault(local, []).append(instant)
    found: set[datetime] = set()
    for each in instants.values():
        found.update({Fold.FIRST: each[:1], Fold.SECOND: each[-1:], Fold.BOTH: each}[fold])
    if gap is Gap.NEXT_VALID:
        found.update(instant for instant, _ in meant.among(shown.left_out))
    return sorted(found)


def fired(meant: Meant, where: ZoneInfo, shown: Shown, *, gap: Gap, fold: Fold) -> list[datetime]:
    moments = ZonedCron(parse(meant.expression), where, gap, fold).after(shown.first - MINUTE)
    found = [each.at for each in takewhile(lambda each: each.at <= shown.last, moments)]
    return [instant for instant, _ in groupby(found)]


def policies(shown: Shown) -> list[tuple[Gap, Fold]]:
    """All that make a difference there."""
    if shown.left_out:
        return [(Gap.NEXT_VALID, Fold.FIRST), (Gap.SKIP, Fold.FIRST)]
    return [(Gap.NEXT_VALID, fold) for fold in Fold]


@pytest.mark.parametrize("name", ZONES)
def test_around_each_clock_change_no_occurrence_comes_twice_and_none_is_missing(name: str) -> None:
    where = zone(name)
    wrong: list[str] = []
    for change in changes(where):
        shown = walk(where, change)
        for meant in EXPRESSIONS:
            for gap, fold in policies(shown)[: 1 if meant.flows else None]:
                wanted = expected(meant, shown, gap=gap, fold=fold)
                got = fired(meant, where, shown, gap=gap, fold=fold)
                if got != wanted:
                    wrong.append(f"{meant.expression} {gap} {fold} at {change}: {got} instead of {wanted}")
    assert wrong == []


def test_the_zones_are_many_and_change_their_clocks() -> None:
    counted = {name: len(changes(zone(name))) for name in ZONES}
    assert sum(count > 0 for count in counted.values()) >= 40
    assert sum(counted.values()) > 800


@pytest.mark.parametrize("name", ZONES)
def test_a_daily_time_comes_exactly_once_on_each_day_of_the_clock(name: str) -> None:
    """Field case F25: a daily job at 02:30 that runs twice, or never, when clocks change."""
    where = zone(name)
    begin, end = datetime(FIRST_YEAR, 1, 1, 12, tzinfo=UTC), datetime(LAST_YEAR, 12, 30, 12, tzinfo=UTC)
    moments = takewhile(lambda each: each.at < end, ZonedCron(parse("30 2 * * *"), where).after(begin))
    days = [each.at.astimezone(where).date() for each in moments]
    assert days == [days[0] + number * timedelta(days=1) for number in range(len(days))]
    assert abs((end - begin).days - len(days)) <= 1
