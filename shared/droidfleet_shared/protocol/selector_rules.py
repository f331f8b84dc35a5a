"""The rules of one selector as written: not empty, patterns that can be matched, bounded size, sight where allowed."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.names import MAX_PATTERN_LENGTH
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.references import quoted_reference, sample, sample_xpath
from droidfleet_shared.protocol.regexes import BadPatternError, compile_pattern
from droidfleet_shared.protocol.selector import (
    MAX_SELECTOR_DEPTH,
    MAX_SELECTORS,
    MAX_XPATH_LENGTH,
    PATTERN_FIELDS,
    RELATIONS,
    TEXT_FIELDS,
    VISUAL_FIELDS,
)
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.protocol.wording import listed, name, shown
from droidfleet_shared.protocol.xpaths import xpath_problem

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
    if "xpath" in selector:
        yield from _xpath(place, selector)
    for field, value in selector.items():
        if not isinstance(value, str):
            continue
        if field in TEXT_FIELDS or field == "ocrText":
            if value and not normalise(sample(value)):
                message = f"{shown(value)} has nothing that can be read; white space and invisible marks do not count"
                hint = f"Write what is read, or leave {name(field)} out."
                yield Finding((*place, field), ValidationCode.BAD_VALUE, message, hint)
        elif field in PATTERN_FIELDS:
            yield from pattern_findings((*place, field), value)


def pattern_findings(place: Place, written: str) -> Iterator[Finding]:
    """What is wrong with a regular expression; its references stand for text."""
    if not 0 < len(written) <= MAX_PATTERN_LENGTH:
        return
    pattern = sample(written)
    try:
        compile_pattern(pattern)
    except BadPatternError as error:
        yield Finding(
            place,
            ValidationCode.BAD_REGEX,
            f"{shown(pattern)} is not accepted: {error.reason}",
            "The pattern has to match the whole text. For a literal one use the field without `Matches`.",
        )


def _xpath(place: Place, selector: dict[str, Json]) -> Iterator[Finding]:
    others = [name(field) for field in selector if field != "xpath"]
    if others:
        message = f"`xpath` is the whole selector; {listed(others)} cannot stand beside it"
        yield Finding((*place, "xpath"), ValidationCode.CONFLICTING_FIELDS, message, "Keep one or the other.")
    expression = selector["xpath"]
    if not isinstance(expression, str) or not 0 < len(expression) <= MAX_XPATH_LENGTH:
        return
    if reference := quoted_reference(expression):
        message = f"{name(reference)} stands in quotes, and becomes a text of its own in `xpath`"
        hint = f"Write it without the quotes; for example `//node[@text={reference}]`."
        yield Finding((*place, "xpath"), ValidationCode.BAD_XPATH, message, hint)
        return
    problem = xpath_problem(sample_xpath(expression))
    if problem:
        message = f"{shown(expression)} is not accepted: {problem}"
        hint = 'For example `"xpath": "//android.widget.Button[@text=\'OK\']"`; other fields are usually clearer.'
        yield Finding((*place, "xpath"), ValidationCode.BAD_XPATH, message, hint)


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
