"""Counts, percents and times as people write them. Pure, and exact: a percent is a whole number of hundredths."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

HUNDRED_PERCENT = 10_000
"""In hundredths of a percent."""

MAX_DURATION = timedelta(days=366)

_PERCENT = re.compile(r"(\d{1,3})(?:\.(\d{1,2}))?\s*%")
_DURATION = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9})s)?")


@dataclass(frozen=True, slots=True)
class Count:
    """So many."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Percent:
    """A share, in hundredths of a percent."""

    hundredths: int

    def of_up(self, whole: int) -> int:
        """This share of ``whole``, rounded up."""
        return -(-whole * self.hundredths // HUNDRED_PERCENT)

    def __str__(self) -> str:
        whole, rest = divmod(self.hundredths, 100)
        return f"{whole}%" if rest == 0 else f"{whole}.{rest:02}%".replace("0%", "%")


Amount = Count | Percent


def parse_percent(text: str) -> Percent:
    """Reads ``34%`` or ``12.5%``.

    Raises:
        ValueError: it is none, or more than 100%; the message says what was expected.
    """
    read = _PERCENT.fullmatch(text.strip())
    hundredths = int(read[1]) * 100 + int((read[2] or "").ljust(2, "0")) if read else HUNDRED_PERCENT + 1
    if hundredths > HUNDRED_PERCENT:
        raise ValueError(f"{text!r} is no percent: expected 0% to 100% with at most two decimals, for example 10%")
    return Percent(hundredths)


def parse_duration(text: str) -> timedelta:
    """Reads ``90s``, ``10m``, ``1h30m`` or ``7d``.

    Raises:
        ValueError: it is none, or more than a year; the message says what was expected.
    """
    read = _DURATION.fullmatch(text.strip())
    if read is None or not any(read.groups()):
        raise ValueError(f"{text!r} is no duration: expected for example 90s, 10m, 1h30m or 7d")
    days, hours, minutes, seconds = (int(part or 0) for part in read.groups())
    try:
        found = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        found = MAX_DURATION * 2
    if found > MAX_DURATION:
        raise ValueError(f"{text!r} is too long: at most {MAX_DURATION.days}d")
    return found


def duration_text(duration: timedelta) -> str:
    """The shortest spelling that `parse_duration` reads; parts of a second are left out."""
    seconds = int(duration.total_seconds())
    parts = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
