"""A Maestro flow as plain trees with line numbers: texts, lists and objects; nothing that YAML would guess.

YAML's own readers make numbers, dates and truth values of what people wrote as texts (`007`, `on`), build what a tag
asks for, and grow without bound by aliases. This one reads events, keeps every scalar a text, and refuses the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.wording import name

MAX_DEPTH = 40
"""Lists and objects within each other: more than any flow that could become a task."""

MAX_VALUES = 20_000
"""Values in one file, to bound the work."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class BadYamlError(Exception):
    """The text cannot be read. ``line`` counts from 1."""

    def __init__(self, line: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.message = message
        self.hint = hint


@dataclass(frozen=True, slots=True)
class FlowText:
    """The documents of one file, and the line of each place in them (a place begins with the document's position)."""

    documents: tuple[Json, ...]
    lines: dict[Place, int]

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest thing around it that has one; counts from 1."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)


def read_flow(text: str) -> FlowText:
    """Reads a file. Takes time linear in the text.

    Raises:
        BadYamlError: it is not YAML, or holds anchors, tags, repeated keys or too much.
    """
    reader = _Reader()
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = "Put texts with `:`, `#`, `%` or quotes in them into single quotes; indent by spaces."
        raise BadYamlError(mark.line + 1 if mark else 1, f"it is not YAML: {error.problem}", hint) from None
    except yaml.YAMLError as error:
        raise BadYamlError(1, f"it is not YAML: {str(error).splitlines()[0]}", "Save it as UTF-8 text.") from None
    return FlowText(tuple(reader.documents), reader.lines)


@dataclass(slots=True)
class _Open:
    """A list or object whose end has not come yet."""

    place: Place
    value: list[Json] | dict[str, Json]
    key: str | None = None


class _Reader:
    def __init__(self) -> None:
        self.documents: list[Json] = []
        self.lines: dict[Place, int] = {}
        self._open: list[_Open] = []
        self._values = 0

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        match event:
            case yaml.AliasEvent():
                raise BadYamlError(line, "aliases are not read", "Write what the alias stands for in its place.")
            case yaml.ScalarEvent():
                self._plain(event, line)
                self._scalar(event, line)
            case yaml.SequenceStartEvent():
                self._plain(event, line)
                self._begin([], line)
            case yaml.MappingStartEvent():
                self._plain(event, line)
                self._begin({}, line)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._open.pop()
            case _:
                pass

    def _plain(self, event: yaml.NodeEvent, line: int) -> None:
        tag = getattr(event, "tag", None)
        if event.anchor is not None:
            raise BadYamlError(line, "anchors are not read", "Write it out at each place where it is used.")
        if tag not in (None, "!"):
            raise BadYamlError(line, f"the tag {name(str(tag))} is not read", "Leave the tag out.")
        self._values += 1
        if self._values > MAX_VALUES:
            raise BadYamlError(line, f"the file holds more than {MAX_VALUES} values", "Split the flow.")

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            if event.value in top.value:
                raise BadYamlError(line, f"the key {name(event.value)} stands there twice", "Keep one of them.")
            top.key = event.value
            return
        is_null = event.style is None and event.value in _NULLS
        self._add(None if is_null else event.value, line)

    def _begin(self, value: list[Json] | dict[str, Json], line: int) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise BadYamlError(line, f"values are nested more than {MAX_DEPTH} deep", "Nest less deeply.")
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise BadYamlError(line, "a key is a list or an object; expected a text", "Put braces into quotes.")
        place = self._add(value, line)
        self._open.append(_Open(place, value))

    def _add(self, value: Json, line: int) -> Place:
        if not self._open:
            place: Place = (len(self.documents),)
            self.documents.append(value)
        else:
            top = self._open[-1]
            if isinstance(top.value, dict):
                key = str(top.key)
                top.value[key] = value
                top.key = None
                place = (*top.place, key)
            else:
                top.value.append(value)
                place = (*top.place, len(top.value) - 1)
        self.lines[place] = line
        return place
