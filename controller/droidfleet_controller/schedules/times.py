"""Times on the clocks of a zone, as documents write them. Pure."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from droidfleet_controller.schedules import zones
from droidfleet_controller.schedules.spec import Fold, Gap
from droidfleet_shared.protocol.wording import shown

_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_LOOKS_LIKE_ONE = re.compile(r"\s*[0-9]{4}-")


class TimeError(ValueError):
    """A text that is no time."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def is_meant(text: str) -> bool:
    """Whether a text that may be a time or a cron expression was meant as a time."""
    return _LOOKS_LIKE_ONE.match(text) is not None


def read(text: str) -> datetime:
    """Reads ``2027-03-28T02:30``, seconds allowed; without zone.

    Raises:
        TimeError: it is none.
    """
    if _TIME.fullmatch(text) is None:
        hint = "For example `2027-03-28T02:30`, without Z or offset: it is meant on the clock of `timeZone`."
        raise TimeError(f"{shown(text)} is no local time", hint)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TimeError(
            f"{shown(text)} is no local time: the calendar or the clock has no such", "Look at the month's last day."
        ) from None


def first_instant(text: str, where: ZoneInfo) -> datetime:
    """The first instant at which the clocks there show this time, or a later one.

    Raises:
        TimeError: it is no time.
    """
    return _instant(text, where, Fold.FIRST)


def last_instant(text: str, where: ZoneInfo) -> datetime:
    """The last instant at which the clocks there show this time; of a time that does not exist, the change.

    Raises:
        TimeError: it is no time.
    """
    return _instant(text, where, Fold.SECOND)


def _instant(text: str, where: ZoneInfo, fold: Fold) -> datetime:
    found = zones.instants(read(text), where, gap=Gap.NEXT_VALID, fold=fold)
    if not found:
        raise TimeError(f"{shown(text)} lies outside the calendar", "Choose a year that somebody will see.")
    return found[0]
