"""The rules of one selector as written: not empty, something to read, bounded size, sight where it is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.references import sample
from droidfleet_shared.protocol.selector import (
    MAX_SELECTOR_DEPTH,
    MAX_SELECTORS,
    RELATIONS,
    VISUAL_FIELDS,
)
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.protocol.values import READ_FIELDS
from droidfleet_shared.protocol.wording import listed, name, shown

_EMPTY_HINT = 'Say what is seen of the node; for example `{"text": "OK"}` or `{"resourceId": "buy_button"}`.'


class Sight(Enum):
    """What a selector may look at, by where it stands."""

    TREE = auto()
    """Nodes alone: the step needs what only a node has, or another node is meant by it."""
    SEE = auto()
    """Also texts and pictures on the screen."""
    TOUCH = auto()
    """Also a point."""


def selector_findings(place: Place, selector: Json, *, sight: Sight) -> Iterator[Finding]:
    """Everything wrong with a selector and the selectors in it. Nothing when it is not an object."""
    count = 0
    todo: list[tuple[Place, Json, int]] = [(place, selector, 1)]
    while todo:
        here, value, depth = todo.pop()
        if not isinstance(value, dict):
            continue
        count += 1
        if depth > MAX_SELECTOR_DEPTH:
            message = f"selectors are nested more than {MAX_SELECTOR_DEPTH} deep"
            yield Finding(here, ValidationCode.TOO_DEEP, message, "Name the node by fewer relations.")
            continue
        yield from _one(here, value)
        yield from _visual(here, value, sight if depth == 1 else Sight.TREE)
        todo.extend(((*here, relation), value[relation], depth + 1) for relation in RELATIONS if relation in value)
    if count > MAX_SELECTORS:
        message = f"the selector holds {count} selectors; at most {MAX_SELECTORS} are accepted"
        yield Finding(place, ValidationCode.TOO_DEEP, message, "Name the node by fewer relations.")


def _one(place: Place, selector: dict[str, Json]) -> Iterator[Finding]:
    given = [field for field, value in selector.items() if value is not None]
    if not given:
        yield Finding(place, ValidationCode.EMPTY_SELECTOR, "the selector is empty", _EMPTY_HINT)
    elif given == ["index"]:
        message = "a selector with nothing but `index` would count every node of the screen"
        yield Finding(place, ValidationCode.EMPTY_SELECTOR, message, _EMPTY_HINT)
    others = [name(field) for field in selector if field != "xpath"]
    if "xpath" in selector and others:
        message = f"`xpath` is the whole selector; {listed(others)} cannot stand beside it"
        yield Finding((*place, "xpath"), ValidationCode.CONFLICTING_FIELDS, message, "Keep one or the other.")
    for field, value in selector.items():
        if field in READ_FIELDS and isinstance(value, str):
            yield from readable_findings((*place, field), value)


def readable_findings(place: Place, value: str) -> Iterator[Finding]:
    """A text of which nothing remains when it is compared: it would match everything, or nothing."""
    if value and not normalise(sample(value)):
        message = f"{shown(value)} has nothing that can be read; white space and invisible marks do not count"
        hint = f"Write what is read, or leave {name(str(place[-1]))} out."
        yield Finding(place, ValidationCode.BAD_VALUE, message, hint)


def _visual(place: Place, selector: dict[str, Json], sight: Sight) -> Iterator[Finding]:
    given = [field for field in VISUAL_FIELDS if selector.get(field) is not None]
    if not given:
        if "allowPoint" in selector:
            message = "`allowPoint` stands beside `point` alone"
            yield Finding((*place, "allowPoint"), ValidationCode.CONFLICTING_FIELDS, message, "Leave it out.")
        return
    field = given[0]
    allowed = {field, "allowPoint"} if field == "point" else {field, "index"}
    others = [name(each) for each in selector if each not in allowed]
    if others:
        message = f"{name(field)} is the whole selector; {listed(others)} cannot stand beside it"
        yield Finding((*place, field), ValidationCode.CONFLICTING_FIELDS, message, "Keep one or the other.")
    if sight is Sight.TREE or (field == "point" and sight is Sight.SEE):
        what = "a point shows nothing" if field == "point" else "here a node of the tree is needed"
        message = f"{name(field)} cannot stand here: {what}"
        yield Finding((*place, field), ValidationCode.CONFLICTING_FIELDS, message, f"Name a node. {_EMPTY_HINT}")
    elif field == "point" and selector.get("allowPoint") is not True:
        message = "a point is touched whatever is there, so `allowPoint` must be `true` beside it"
        hint = 'Name a node instead, or write `{"point": {"xPercent": 50, "yPercent": 90}, "allowPoint": true}`.'
        yield Finding(place, ValidationCode.MISSING_FIELD, message, hint)
