"""Cron expressions: the standard five fields. Reading them, and matching local times, without any time zone. Pure.

As Vixie's cron, and Debian's: 0 and 7 are Sunday, names and `@daily` work, and where both the day of the month and the
day of the week are restricted (do not begin with `*`), a day needs to match only one of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, time, timedelta
from functools import lru_cache

from droidfleet_shared.protocol.wording import cut, listed, name, quoted

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
MAX_LENGTH = 500
"""Characters; all sixty minutes written out take 170."""

SEARCH_YEARS = 40
"""The week days of the calendar come again after 28 years, and after 40 across a century that has no leap day."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_LONGEST_MONTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?")
_WORD = re.compile(r"\S+")
_DAY = timedelta(days=1)


class CronError(ValueError):
    """An expression that is none, or (``never``) that never fires. ``position``: of the first character that is wrong,
    from 0."""

    def __init__(self, problem: str, position: int, hint: str, *, never: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.position = position
        self.hint = hint
        self.never = never

    def told(self, expression: str) -> str:
        """What is wrong and where, as a sentence without its full stop."""
        return f"{quoted(cut(expression, limit=MAX_LENGTH))}, at character {self.position + 1}: {self.problem}"


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    words: tuple[str, ...] = ()
    """Names of values, the first for `low`."""


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _DAYS),
)
_EXAMPLE = "For example `30 8 * * 1-5`: at 8:30 on weekdays."


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression. All values ascending; ``weekdays`` from 0, Sunday, to 6; ``either_day``: a day of the month or
    of the week is enough; ``every_hour``: it fires in each hour of the clock, so it follows the time that elapses."""

    expression: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    every_hour: bool

    def same_times(self, other: Cron) -> bool:
        """Whether both fire at the same local times, however they are written."""
        return (self.minutes, self.hours, self.days, self.months, self.weekdays, self.either_day) == (
            other.minutes,
            other.hours,
            other.days,
            other.months,
            other.weekdays,
            other.either_day,
        )

    def matches(self, local: datetime) -> bool:
        """Whether it fires in the minute that begins at this local time, on a clock that never changes."""
        return local.minute in self.minutes and local.hour in self.hours and self.on_day(local.date())

    def on_day(self, day: date) -> bool:
        """Whether it fires at some time of this day."""
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week

    def next_after(self, local: datetime) -> datetime | None:
        """The first local time after this one at which it fires; None: there is none before the calendar ends."""
        try:
            start = local.replace(second=0, microsecond=0) + timedelta(minutes=1)
        except OverflowError:
            return None
        if self.on_day(start.date()):
            found = self._in_day(start)
            if found is not None:
                return found
        day = self._next_day(start.date())
        return None if day is None else datetime.combine(day, time(self.hours[0], self.minutes[0]))

    def _in_day(self, start: datetime) -> datetime | None:
        """The first time of ``start``'s day, no earlier than it."""
        at = bisect_left(self.hours, start.hour)
        if at == len(self.hours):
            return None
        if self.hours[at] > start.hour:
            return start.replace(hour=self.hours[at], minute=self.minutes[0])
        minute = bisect_left(self.minutes, start.minute)
        if minute < len(self.minutes):
            return start.replace(minute=self.minutes[minute])
        if at + 1 == len(self.hours):
            return None
        return start.replace(hour=self.hours[at + 1], minute=self.minutes[0])

    def _next_day(self, day: date) -> date | None:
        last = date(min(day.year + SEARCH_YEARS, MAXYEAR), 12, 31)
        while day < last:
            if day.month not in self.months:
                day = day.replace(day=monthrange(day.year, day.month)[1])
                if day == last:
                    return None
            day += _DAY
            if self.on_day(day):
                return day
        return None


@lru_cache(maxsize=1_000)
def parse(expression: str) -> Cron:
    """Reads an expression.

    Raises:
        CronError: it is none, or it never fires.
    """
    if len(expression) > MAX_LENGTH:
        raise CronError(f"it has {len(expression):,} characters, at most {MAX_LENGTH}", MAX_LENGTH, _EXAMPLE)
    parts = [(found.group(), found.start()) for found in _WORD.finditer(expression)]
    if len(parts) == 1 and parts[0][0].startswith("@"):
        macro, position = parts[0]
        if macro.lower() not in MACROS:
            hint = f"These work: {listed([name(each) for each in MACROS])}."
            raise CronError(f"{name(macro)} is no short form", position, hint)
        parts = [(found.group(), position) for found in _WORD.finditer(MACROS[macro.lower()])]
    if len(parts) != len(_FIELDS):
        raise _wrong_count(expression, parts)
    values = [_values(field, text, position) for field, (text, position) in zip(_FIELDS, parts, strict=True)]
    texts = [text for text, _ in parts]
    minutes, hours, days, months, weekdays = values
    cron = Cron(
        expression=expression,
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(number % 7 for number in weekdays),
        either_day=not texts[2].startswith("*") and not texts[4].startswith("*"),
        every_hour=texts[1].startswith("*") or len(hours) == 24,
    )
    if not cron.either_day and min(days) > max(_LONGEST_MONTHS[month - 1] for month in months):
        problem = f"it never fires: none of its months has a day {min(days)}"
        raise CronError(problem, parts[2][1], "Choose a day that the month has; the 28th is in each.", never=True)
    return cron


def _wrong_count(expression: str, parts: list[tuple[str, int]]) -> CronError:
    names = ", ".join(each.name for each in _FIELDS)
    problem = f"it has {len(parts)} fields; expected {len(_FIELDS)}: {names}"
    if len(parts) > len(_FIELDS):
        hint = "Seconds and years are no fields here." if len(parts) <= 7 else _EXAMPLE
        return CronError(problem, parts[len(_FIELDS)][1], f"{hint} {_EXAMPLE}" if hint != _EXAMPLE else hint)
    return CronError(problem, len(expression.rstrip()), _EXAMPLE)


def _values(field: _Field, text: str, position: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        read = _PART.fullmatch(part)
        if read is None:
            problem = f"{name(part)} is none of *, a number, a range as 1-5, or one of these with a step as */10"
            raise _wrong(field, problem, position)
        star, first, last, step = read.groups()
        low = field.low if star else _number(field, first, position)
        high = field.high if star else low if last is None else _number(field, last, position + len(first) + 1)
        if step is not None and last is None:
            high = field.high
        if star and field.high == 7:
            high = 6  # Sunday once, so that a step goes on from it
        if low > high:
            named = first.lower() in field.words
            end, begin = (field.words[-1], field.words[0]) if named else (field.high, field.low)
            hint = f"Write two: `{first}-{end},{begin}-{last}`."
            raise _wrong(field, f"the range {name(part)} goes backwards", position, hint)
        if step is not None and int(step) == 0:
            raise _wrong(field, "a step of 0 never moves", position + part.index("/") + 1)
        found.update(range(low, high + 1, int(step or 1)))
        position += len(part) + 1
    return found


def _number(field: _Field, word: str, position: int) -> int:
    if word.lower() in field.words:
        return field.low + field.words.index(word.lower())
    number = int(word) if word.isascii() and word.isdecimal() and len(word) <= 4 else -1
    if not field.low <= number <= field.high:
        words = f", or {field.words[0]} to {field.words[-1]}" if field.words else ""
        raise _wrong(field, f"expected {field.low} to {field.high}{words}, not {name(word)}", position)
    return number


def _wrong(field: _Field, problem: str, position: int, hint: str = _EXAMPLE) -> CronError:
    return CronError(f"the {field.name}: {problem}", position, hint)
