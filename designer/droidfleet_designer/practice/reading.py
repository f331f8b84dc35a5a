"""Reads a screen out of what a tool told, back from the lines of `observation.lines`. Pure.

Only what is told to every model is read here: the planner knows no more of the phone than one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_shared.protocol.text import normalise

_HEADER = re.compile(r"^Screen (\d+): (?:no app in front|\"?([\w.$]+)\"?)", re.MULTILINE)
_LINE = re.compile(r"(\d+) ([a-z]+)(!?)(?: |$)")
_CUT = re.compile(r"…\+\d+")
_ID = re.compile(r"#([\w.\-]+)")
_STATES = re.compile(r"\(([a-z ,]+)\)")
_DECODER = json.JSONDecoder()

_SAYING = ("text", "description", "hint")
_FIELD = "field"
_ONLY_SAYS = ("text", "image")


@dataclass(frozen=True, slots=True)
class Word:
    """A text of a line. ``cut``: there is more of it that is not told."""

    text: str
    described: bool = False
    id: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A numbered line. ``selector``: None: nothing names it. ``noted``: it may not name the same thing next time."""

    number: int
    kind: str
    danger: bool
    words: tuple[Word, ...]
    id: str
    states: frozenset[str]
    selector: dict[str, JsonValue] | None
    noted: bool
    holds: str = ""

    @property
    def usable(self) -> bool:
        """Whether a finger does something on it."""
        return self.kind not in _ONLY_SAYS and "disabled" not in self.states

    @property
    def scrolls(self) -> bool:
        """Whether it holds more than it shows."""
        return self.kind == "list" or "scrollable" in self.states

    @property
    def ids(self) -> Iterator[str]:
        """The names that its maker gave it and its parts."""
        if self.id:
            yield self.id
        yield from (word.id for word in self.words if word.id)
        named = (self.selector or {}).get("resourceId")
        if isinstance(named, str) and named != self.id:
            yield named.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Shown:
    """A screen. ``package``: of the app in front; empty: there is none."""

    number: int
    package: str
    lines: tuple[Line, ...]

    def line(self, number: int) -> Line | None:
        """The line of this number; None: it is not told any more."""
        return next((line for line in self.lines if line.number == number), None)

    def alike(self, other: Shown) -> bool:
        """Whether both show the same."""
        return (self.package, self.lines) == (other.package, other.lines)


def shown_in(text: str) -> Shown | None:
    """The screen in what a tool told; None: it tells none."""
    found = _HEADER.search(text)
    if found is None:
        return None
    lines = (_line(line) for line in text[found.end() :].split("\n")[1:])
    return Shown(int(found[1]), found[2] or "", tuple(line for line in lines if line is not None))


def _line(text: str) -> Line | None:
    head = _LINE.match(text)
    if head is None:
        return None
    place = head.end()
    words: list[Word] = []
    identity = held = ""
    states: frozenset[str] = frozenset()
    selector: JsonValue = None
    noted = named = False
    while place < len(text):
        rest = text[place:]
        if rest.startswith(("-> ", "~> ")):
            named, noted = True, rest.startswith("~")
            selector = None if rest[3:] == "none" else _DECODER.raw_decode(rest[3:])[0]
            break
        if rest.startswith(('"', 'desc "', 'holds "')):
            opening = rest.index('"')
            said, end = _DECODER.raw_decode(rest[opening:])
            end += opening
            cut = _CUT.match(rest, end)
            end = cut.end() if cut else end
            id_of = _ID.match(rest, end)
            end = id_of.end() if id_of else end
            if rest.startswith("holds"):
                held = said
            else:
                words.append(Word(said, rest.startswith("desc"), id_of[1] if id_of else "", cut is not None))
            place += end
        elif (found := _ID.match(rest)) is not None:
            identity = found[1]
            place += found.end()
        elif (found := _STATES.match(rest)) is not None:
            states = frozenset(found[1].split(", "))
            place += found.end()
        else:
            noted = noted or rest.startswith("~")
            place += 1
    if not named and words and head[2] != _FIELD:
        first = words[0]
        selector = {"description" if first.described else "text": _literal(first.text)}
    chosen = selector if isinstance(selector, dict) else None
    return Line(int(head[1]), head[2], bool(head[3]), tuple(words), identity, states, chosen, noted, held)


def _literal(text: str) -> str:
    return text.replace("${", "$${")


def same(one: str, other: str) -> bool:
    """Whether two texts are one to a person, whatever the case."""
    return normalise(one).casefold() == normalise(other).casefold()


def texts_in(selector: JsonValue) -> set[str]:
    """All words of the screen in a selector."""
    fields = selector.items() if isinstance(selector, dict) else ()
    inner = {text for _, each in fields for text in texts_in(each)}
    return inner | {each for key, each in fields if key.startswith(_SAYING) and isinstance(each, str)}
