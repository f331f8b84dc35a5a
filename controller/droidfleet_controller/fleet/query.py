"""The query language of groups and targets: conditions on labels and facts of a phone, joined by commas. Pure.

    query     = condition *("," condition)                   all of them hold
    condition = key                                          has it
              / "!" key                                      does not have it
              / key ("=" / "!=") value                       exactly this text; anything else, or nothing
              / key (">" / ">=" / "<" / "<=") number         for numbers and versions: 13, 12.10
              / key "in" "(" value *(["," ] value) ")"       one of these
    value     = bare word / '"' any text, with \\" and \\\\ '"'

It knows no devices: facts are a mapping of texts. `docs/groups.md` explains it to people.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NoReturn

from droidfleet_controller.fleet.issues import Issue
from droidfleet_shared.errors import InvalidInputError

BAD_QUERY = "BAD_QUERY"

MAX_QUERY = 2_000
"""Characters of a query."""

MAX_KEY = 64
MAX_VALUE = 256

KEY = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")

_SPACES = re.compile(r"\s*")
_OPERATOR = re.compile(r"!=|>=|<=|=|>|<")
_IN = re.compile(r"in(?=[\s(]|$)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_REST_OF_CONDITION = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\([^()]*\)|[^,])*', re.DOTALL)

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18}){0,5}")
_COMPARABLE = re.compile(rf"({_NUMBER.pattern})(?:[-+.]?[A-Za-z].*)?", re.DOTALL)
"""A version may go on with letters (`0.5.0rc1`, `13-beta`), which compare as if they were not there."""

_WIDE = {chr(ord(sign) - 0x20 + 0xFF00): sign for sign in ",()=!<>"} | {"\u201c": '"', "\u201d": '"'}
"""Full-width signs and curved quotes, as East Asian keyboards write them: they look like those of the language."""

_BARE = re.compile(rf"[^\s,()\"'=<>!{''.join(_WIDE)}]+")

SHOWN = 40
"""Characters shown on either side of the place that is wrong."""

NUMBERS_KEPT = 4_096
"""Texts read as numbers that are remembered; a fleet has few different ones."""

QUERIES_KEPT = 256
"""Queries that are remembered as they were read; those of groups are asked again and again."""

Facts = Mapping[str, str]
"""Labels and built-in facts of one phone, by key."""


@dataclass(frozen=True, slots=True)
class Has:
    """The key is there, whatever its value; ``negated``: it is not."""

    key: str
    negated: bool = False

    def holds(self, facts: Facts) -> bool:
        """Whether the facts meet it."""
        return (self.key in facts) is not self.negated

    def __str__(self) -> str:
        return f"!{self.key}" if self.negated else self.key


@dataclass(frozen=True, slots=True)
class Equals:
    """The value is exactly this text; ``negated``: it is another, or there is none."""

    key: str
    value: str
    negated: bool = False

    def holds(self, facts: Facts) -> bool:
        """Whether the facts meet it."""
        return (facts.get(self.key) == self.value) is not self.negated

    def __str__(self) -> str:
        return f"{self.key}{'!=' if self.negated else '='}{_written(self.value)}"


@dataclass(frozen=True, slots=True)
class Compares:
    """The value is a number, or a version, in this relation (``>``, ``>=``, ``<``, ``<=``) to ``number``."""

    key: str
    relation: str
    number: str

    def holds(self, facts: Facts) -> bool:
        """Whether the facts meet it. No value, and one that is no number, never does."""
        found, wanted = _number(facts.get(self.key, "")), _number(self.number)
        if found is None or wanted is None:
            return False
        if found == wanted:
            return self.relation in (">=", "<=")
        return (found > wanted) is self.relation.startswith(">")

    def __str__(self) -> str:
        return f"{self.key}{self.relation}{self.number}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these texts."""

    key: str
    values: tuple[str, ...]

    def holds(self, facts: Facts) -> bool:
        """Whether the facts meet it."""
        return facts.get(self.key) in self.values

    def __str__(self) -> str:
        return f"{self.key} in ({', '.join(map(_written, self.values))})"


Condition = Has | Equals | Compares | OneOf


@dataclass(frozen=True)
class Query:
    """Conditions that all have to hold. As text it is a query that is read as the same one."""

    conditions: tuple[Condition, ...]

    def matches(self, facts: Facts) -> bool:
        """Whether a phone with these facts belongs to it."""
        return all(condition.holds(facts) for condition in self.conditions)

    @cached_property
    def keys(self) -> frozenset[str]:
        """What it asks for."""
        return frozenset(condition.key for condition in self.conditions)

    def __str__(self) -> str:
        return ", ".join(map(str, self.conditions))


@lru_cache(QUERIES_KEPT)
def parse(text: str) -> Query:
    """Reads a query.

    Raises:
        InvalidInputError: ``BAD_QUERY``, with where it is wrong and what was expected there; all places are issues.
    """
    if len(text) > MAX_QUERY:
        raise _bad(
            [Issue("query", BAD_QUERY, f"at most {MAX_QUERY} characters, not {len(text)}", "Make a group of a part.")]
        )
    reader = _Reader(text)
    conditions: list[Condition] = []
    issues: list[Issue] = []
    while True:
        start = reader.at
        try:
            conditions.append(reader.condition())
        except _Wrong as wrong:
            issues.append(wrong.issue)
            reader.skip_from(start)
        if reader.at >= len(text):
            break
        reader.at += 1
    if issues:
        raise _bad(issues)
    return Query(tuple(conditions))


class _Wrong(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.message)
        self.issue = issue


class _Reader:
    """A place in a text. Methods take what they are named for, or raise `_Wrong`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def condition(self) -> Condition:
        """One condition, up to the comma behind it or the end."""
        self._take(_SPACES)
        if self._text.startswith("!", self.at):
            self.at += 1
            condition: Condition = Has(self._key("a key behind !, for example !retired"), negated=True)
        else:
            condition = self._positive()
        self._take(_SPACES)
        if self.at < len(self._text) and self._text[self.at] != ",":
            self._fail("a comma or the end", self._advice(condition))
        return condition

    def skip_from(self, start: int) -> None:
        """Goes to the end of the condition that begins at ``start``."""
        self.at = start
        self._take(_REST_OF_CONDITION)

    def _positive(self) -> Condition:
        key = self._key("a key, for example site")
        self._take(_SPACES)
        operator = self._take(_OPERATOR)
        if not operator:
            return OneOf(key, self._values()) if self._take(_IN) else Has(key)
        self._take(_SPACES)
        if operator in ("=", "!="):
            return Equals(key, self._value(), negated=operator == "!=")
        before = self.at
        number = self._value()
        if not _NUMBER.fullmatch(number):
            self.at = before
            self._fail("a number or a version, for example 13 or 12.1", f"Texts are compared by {key}= and {key}!=.")
        return Compares(key, operator, number)

    def _key(self, expected: str) -> str:
        self._take(_SPACES)
        before = self.at
        key = self._take(KEY)
        if not key:
            self._fail(expected, "A key begins with a letter; letters, digits and _ . / - follow.")
        if len(key) > MAX_KEY:
            self.at = before
            self._fail(f"a key of at most {MAX_KEY} characters")
        return key

    def _value(self) -> str:
        before = self.at
        quoted = _QUOTED.match(self._text, self.at)
        if quoted:
            self.at = quoted.end()
            value = _ESCAPED.sub(r"\1", quoted[1])
        else:
            value = self._take(_BARE)
            if not value:
                self._fail("a value", _value_advice(self._text[self.at : self.at + 1]))
        if len(value) > MAX_VALUE:
            self.at = before
            self._fail(f"a value of at most {MAX_VALUE} characters")
        return value

    def _values(self) -> tuple[str, ...]:
        self._take(_SPACES)
        if not self._text.startswith("(", self.at):
            self._fail("( behind in", "Write: site in (berlin, paris)")
        self.at += 1
        values: list[str] = []
        while True:
            self._take(_SPACES)
            if values and self._text.startswith(")", self.at):
                self.at += 1
                return tuple(values)
            if values and self._text.startswith(",", self.at):
                self.at += 1
                self._take(_SPACES)
            if self.at >= len(self._text):
                self._fail(")")
            values.append(self._value())

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found.group()

    def _advice(self, condition: Condition) -> str:
        found = self._text[self.at]
        if isinstance(condition, Has) and condition.negated and found in "=<>":
            return f"To leave out one value, write {condition.key}!=value."
        if self._text.startswith("not", self.at):
            return f"To leave out values, write {condition.key}!=one, {condition.key}!=another."
        return 'A value with blanks or signs is quoted: site="New York".'

    def _fail(self, expected: str, hint: str = "") -> NoReturn:
        found = self._text[self.at : self.at + 1]
        if found in _WIDE:
            hint = f"{found} is a wide sign; write {_WIDE[found]}"
        before, after = self._text[: self.at], self._text[self.at :]
        place = f"{before[-SHOWN:]}[HERE]{after[:SHOWN]}"
        raise _Wrong(Issue(f"character {self.at + 1}", BAD_QUERY, f"expected {expected}: {place}", hint))


def _value_advice(found: str) -> str:
    if found == "'":
        return 'Texts are quoted by double quotes: site="New York".'
    if found == "=":
        return "Equal is written with one =."
    if found == '"':
        return 'The quote has no end. Within one, write \\" and \\\\.'
    return 'The empty text is written "".'


def _bad(issues: list[Issue]) -> InvalidInputError:
    first = issues[0]
    more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
    return InvalidInputError(
        BAD_QUERY,
        f"the query cannot be read at {first.path}: {first.message}{more}",
        hint=first.hint or "See docs/groups.md; for example: site=berlin, android>=13, !retired",
        issues=issues if len(issues) > 1 else (),
    )


def _written(value: str) -> str:
    if _BARE.fullmatch(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@lru_cache(NUMBERS_KEPT)
def _number(text: str) -> tuple[int, ...] | None:
    """The parts of a number or version, so that 13 equals 13.0; None for any other text."""
    found = _COMPARABLE.fullmatch(text)
    if found is None:
        return None
    parts = [int(part) for part in found[1].split(".")]
    while len(parts) > 1 and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
