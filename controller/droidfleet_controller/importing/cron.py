"""Whether a text is a cron expression of five fields. It is only checked: a task document says nothing of time."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MACROS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?")


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


def cron_problem(expression: str) -> str:
    """What is wrong with the expression, as a clause; empty when nothing is."""
    if expression.strip().lower() in _MACROS:
        return ""
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        names = ", ".join(each.name for each in _FIELDS)
        return f"it has {len(parts)} fields; expected {len(_FIELDS)}: {names}"
    for field, part in zip(_FIELDS, parts, strict=True):
        for each in part.split(","):
            problem = _problem(field, each)
            if problem:
                return f"the {field.name} {part!r}: {problem}"
    return ""


def _problem(field: _Field, part: str) -> str:
    read = _PART.fullmatch(part)
    if read is None:
        return f"{part!r} is none of *, a number, a range as 1-5, or one of these with a step as */10"
    _, first, last, step = read.groups()
    numbers = [_number(field, word) for word in (first, last) if word is not None]
    if any(number is None for number in numbers):
        return f"expected {field.low} to {field.high}"
    if len(numbers) == 2 and (numbers[0] or 0) > (numbers[1] or 0):
        return "the range goes backwards"
    return "a step of 0 never moves" if step is not None and int(step) == 0 else ""


def _number(field: _Field, word: str) -> int | None:
    if word.lower() in field.words:
        return field.low + field.words.index(word.lower())
    if not (word.isascii() and word.isdecimal() and len(word) <= 4):
        return None
    return int(word) if field.low <= int(word) <= field.high else None
