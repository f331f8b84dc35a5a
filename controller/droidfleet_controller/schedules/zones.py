"""Time zones: by name, and from times on their clocks to instants. Pure but for reading the tz database."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from droidfleet_controller.schedules.spec import Fold, Gap
from droidfleet_shared.protocol.wording import name

_LONGEST_NAME = 64
_ALIKE = 0.8
"""Of a misspelt name; below it, abbreviations as CEST are like names far away."""

_SECOND = timedelta(seconds=1)


class UnknownZoneError(ValueError):
    """The tz database has no such zone. ``hint``: what was probably meant."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """The zones that there are."""
    return frozenset(available_timezones() - {"localtime", "posixrules", "Factory"})


def zone(asked: str) -> ZoneInfo:
    """A zone by its name, which is compared as written.

    Raises:
        UnknownZoneError: there is none.
    """
    if asked not in zone_names():
        meant = _meant(asked)
        example = "Names are those of the tz database, for example `Europe/Berlin`, `Asia/Shanghai` or `UTC`."
        hint = f"Did you mean {name(meant)}? {example}" if meant else example
        raise UnknownZoneError(f"{name(asked)} is no time zone", hint)
    return ZoneInfo(asked)


def _meant(asked: str) -> str | None:
    if len(asked) > _LONGEST_NAME:
        return None
    spellings: dict[str, str] = {}
    # Names without a slash are old abbreviations but for this one.
    for each in ("UTC", *sorted(each for each in zone_names() if "/" in each)):
        spellings.setdefault(each.lower(), each)
        spellings.setdefault(each.rpartition("/")[2].lower(), each)
    found = difflib.get_close_matches(asked.strip().lower().replace(" ", "_"), spellings, n=1, cutoff=_ALIKE)
    return spellings[found[0]] if found else None


def local(instant: datetime, where: ZoneInfo) -> datetime:
    """What the clocks there show, without zone."""
    return instant.astimezone(where).replace(tzinfo=None, fold=0)


def offset(instant: datetime, where: ZoneInfo) -> timedelta:
    """How far the clocks there are ahead of UTC."""
    return instant.astimezone(where).utcoffset() or timedelta(0)


def instants(wanted: datetime, where: ZoneInfo, *, gap: Gap, fold: Fold) -> tuple[datetime, ...]:
    """The instants, UTC, that a time on the clocks there stands for: none, one or two, ascending."""
    try:
        before, after = ((wanted - _offset(wanted, where, fold=each)).replace(tzinfo=UTC) for each in (0, 1))
    except OverflowError:
        return ()
    if before == after:
        return (before,)
    if before > after:  # it does not exist: read with the offset of after the change it lies before the change
        return (change_between(after, before, where),) if gap is Gap.NEXT_VALID else ()
    match fold:
        case Fold.FIRST:
            return (before,)
        case Fold.SECOND:
            return (after,)
        case Fold.BOTH:
            return (before, after)


def exists(wanted: datetime, where: ZoneInfo) -> bool:
    """Whether the clocks there ever show this time."""
    return _offset(wanted, where, fold=0) >= _offset(wanted, where, fold=1)


def exists_twice(wanted: datetime, where: ZoneInfo) -> bool:
    """Whether the clocks there show this time twice."""
    return _offset(wanted, where, fold=0) > _offset(wanted, where, fold=1)


def _offset(wanted: datetime, where: ZoneInfo, *, fold: int) -> timedelta:
    return wanted.replace(tzinfo=where, fold=fold).utcoffset() or timedelta(0)


def change_between(early: datetime, late: datetime, where: ZoneInfo) -> datetime:
    """The first instant of the new offset, when the clocks change once after ``early`` and by ``late``."""
    old = offset(early, where)
    while late - early > _SECOND:
        middle = early + ((late - early) // 2 // _SECOND or 1) * _SECOND
        early, late = (middle, late) if offset(middle, where) == old else (early, middle)
    return late
