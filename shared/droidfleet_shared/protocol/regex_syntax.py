"""The regular expressions of `...Matches` fields: their syntax, as a tree.

A subset of Python's `re`, chosen so that every pattern can be matched in linear time (`regexes`): what needs memory of
what was matched before (back-references, look-around, possessive repeats) is refused, with its position and reason.
Single characters, escapes and classes keep the meaning that `re` gives them; `re` itself reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_GROUP_DEPTH = 20
"""Groups within groups; keeps the recursive parser far from Python's own limit."""

MAX_REPEAT = 1_000
"""The largest number in `{...}`."""

MAX_SIZE = 1_000
"""Characters, classes and groups of a pattern once its counted repeats are written out: the states of the automaton."""


class BadPatternError(ValueError):
    """The pattern is not accepted. ``position`` counts characters from 0; ``reason`` is a clause for a message."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"{reason} (at position {position})")
        self.position = position
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Char:
    """One character of the text: a literal one, or any that the expression matches."""

    test: str | re.Pattern[str]
    size: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other; none at all matches the empty text."""

    parts: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple[Node, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part`` at least ``low`` and at most ``high`` times (None: without limit)."""

    part: Node
    low: int
    high: int | None
    size: int


Node = Char | Sequence | Choice | Repeat

_ANY = re.compile(".", re.DOTALL)
_FLAGS = re.compile(r"\(\?([is]+)\)")
_GROUP = re.compile(r"\((?:\?:|\?P<[A-Za-z_][A-Za-z0-9_]*>|(?!\?))")
_ESCAPE = re.compile(r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_COUNT = re.compile(r"\{(\d*)(?:(,)(\d*))?\}")
_REFUSED_GROUPS = {
    "?=": "look-ahead is not supported",
    "?!": "look-ahead is not supported",
    "?<=": "look-behind is not supported",
    "?<!": "look-behind is not supported",
    "?>": "atomic groups are not supported",
    "?P=": "back-references are not supported",
    "?(": "conditional groups are not supported",
    "?#": "comments are not supported",
}
_ANCHORS = {"b": r"\b", "B": r"\B", "A": r"\A", "Z": r"\Z", "z": r"\z", "G": r"\G"}
_AMBIGUOUS_IN_CLASS = ("[", "--", "&&", "||", "~~")
"""`re` warns that these may change their meaning inside a class."""


def parse(pattern: str) -> Node:
    """Reads a pattern.

    Raises:
        BadPatternError: it is not a regular expression, or one that cannot be matched in bounded time.
    """
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._flags = re.NOFLAG

    def whole(self) -> Node:
        if flags := _FLAGS.match(self._pattern):
            self._at = flags.end()
            self._flags = re.IGNORECASE if "i" in flags[1] else re.NOFLAG
        self._take("^")
        node = self._choice()
        if self._at < len(self._pattern):
            raise BadPatternError(self._at, "`)` closes no group")
        return node

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        taken = self._peek() == char
        self._at += taken
        return taken

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        if len(options) == 1:
            return options[0]
        return Choice(tuple(options), self._bounded(1 + sum(option.size for option in options)))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in {"", "|", ")"}:
            if self._peek() == "$" and self._at == len(self._pattern) - 1:
                self._at += 1
                break
            parts.append(self._repeats(self._atom()))
        return Sequence(tuple(parts), self._bounded(1 + sum(part.size for part in parts)))

    def _repeats(self, part: Node) -> Node:
        start = self._at
        bounds = self._quantifier()
        if bounds is None:
            return part
        if self._peek() == "+":
            raise BadPatternError(self._at, "possessive repeats are not supported")
        self._take("?")  # a lazy repeat matches the same whole texts
        if self._quantifier() is not None:
            raise BadPatternError(start, "a repeat of a repeat needs a group, as in `(?:a+)*`")
        low, high = bounds
        if high is not None and high < low:
            raise BadPatternError(start, f"the repeat's minimum {low} is larger than its maximum {high}")
        if max(low, high or 0) > MAX_REPEAT:
            raise BadPatternError(start, f"a repeat counts to {MAX_REPEAT} at most")
        copies = max(1, low, high or 0)
        return Repeat(part, low, high, self._bounded(part.size * copies + 1))

    def _quantifier(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if bounds := simple.get(self._peek()):
            self._at += 1
            return bounds
        count = _COUNT.match(self._pattern, self._at)
        if count is None or not (count[1] or count[2]):
            return None
        self._at = count.end()
        low = _number(count[1]) if count[1] else 0
        if count[2] is None:
            return low, low
        return low, _number(count[3]) if count[3] else None

    def _atom(self) -> Node:
        char = self._peek()
        match char:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case ".":
                self._at += 1
                return Char(_ANY)
            case "^" | "$":
                raise BadPatternError(
                    self._at,
                    f"`{char}` may only stand at the {'beginning' if char == '^' else 'end'} of the whole pattern, "
                    "where it is not needed: the pattern always has to match the whole text",
                )
            case "*" | "+" | "?":
                raise BadPatternError(self._at, f"`{char}` has nothing before it to repeat")
            case _:
                if self._quantifier_ahead():
                    raise BadPatternError(self._at, "`{` has nothing before it to repeat")
                self._at += 1
                return self._literal(char)

    def _quantifier_ahead(self) -> bool:
        here = self._at
        found = self._quantifier() is not None
        self._at = here
        return found

    def _literal(self, char: str) -> Node:
        if char.isspace():
            return Char(" ")
        if self._flags:
            one: Node = Char(re.compile(re.escape(char), self._flags))
        else:
            one = Char(char)
        if ord(char) <= 0xFFFF:
            return one
        dots = Sequence((Char("."), Char(".")), 2)  # how the phone's dump writes it
        return Choice((one, dots), 4)

    def _group(self) -> Node:
        start = self._at
        opening = _GROUP.match(self._pattern, start)
        if opening is None:
            ahead = self._pattern[start + 1 : start + 4]
            reason = next((why for sign, why in _REFUSED_GROUPS.items() if ahead.startswith(sign)), None)
            if reason is None:
                reason = "this kind of group is not supported; flags stand once, at the very beginning: `(?i)`"
            raise BadPatternError(start, reason)
        self._depth += 1
        if self._depth > MAX_GROUP_DEPTH:
            raise BadPatternError(start, f"groups nest {MAX_GROUP_DEPTH} deep at most")
        self._at = opening.end()
        node = self._choice()
        if not self._take(")"):
            raise BadPatternError(start, "the group is not closed; a literal parenthesis is written `\\(`")
        self._depth -= 1
        return node

    def _class(self) -> Node:
        start = self._at
        found = _CLASS.match(self._pattern, start)
        if found is None:
            raise BadPatternError(start, "the class is not closed; a literal bracket is written `\\[`")
        body = re.sub(r"\\.", "", found[0][1:-1])
        for sign in _AMBIGUOUS_IN_CLASS:
            if sign in body:
                raise BadPatternError(start, f"inside a class write `{sign}` with a backslash before each character")
        if any(ord(char) > 0xFFFF for char in body):
            raise BadPatternError(
                start, "an emoji cannot be told inside a class (the phone shows two dots); write `(?:A|B)` instead"
            )
        self._at = found.end()
        return self._read_by_re(start, found[0])

    def _escape(self) -> Node:
        start = self._at
        found = _ESCAPE.match(self._pattern, start)
        if found is None:
            raise BadPatternError(start, "a backslash needs a character after it; a literal one is written `\\\\`")
        sign = found[0][1]
        if sign.isdecimal():
            raise BadPatternError(start, "back-references and octal escapes are not supported")
        if sign in _ANCHORS:
            raise BadPatternError(start, f"`{_ANCHORS[sign]}` is not supported: the pattern matches the whole text")
        self._at = found.end()
        if not (sign.isascii() and sign.isalnum()):
            return self._literal(sign)
        return self._read_by_re(start, found[0])

    def _read_by_re(self, start: int, atom: str) -> Node:
        try:
            return Char(re.compile(atom, self._flags))
        except re.error as error:
            raise BadPatternError(start + (error.pos or 0), error.msg) from None

    def _bounded(self, size: int) -> int:
        if size > MAX_SIZE:
            raise BadPatternError(
                self._at, f"the pattern is too large: with its repeats written out it has more than {MAX_SIZE} parts"
            )
        return size


def _number(digits: str) -> int:
    return int(digits[:9])  # enough to be over every limit
