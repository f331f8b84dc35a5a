"""What the models find wrong with a document, each error in its place.

The models are the one place for fields, types, ranges and defaults. This walks from pydantic's location to the place in
the document and to what the JSON Schema says there; `phrasing` then puts it into words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from pydantic import ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from droidfleet_shared.protocol.issues import MAX_ISSUES, Finding
from droidfleet_shared.protocol.names import MAX_NAME_LENGTH
from droidfleet_shared.protocol.phrasing import Located, phrase
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.schema import JsonSchema, schema_of
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS, StepBase
from droidfleet_shared.protocol.steps.base import STEP_LISTS
from droidfleet_shared.protocol.suggestions import meant_action
from droidfleet_shared.protocol.task import TaskTemplate

TaskT = TypeVar("TaskT", bound=TaskTemplate)

KEY = "[key]"
"""What pydantic puts after a key that is not accepted."""

_LENGTHS = {"too_short", "too_long"}
"""Lengths of lists of steps: pydantic counts the valid items, `rules` those that are written."""

_COMMON_FIELDS = "BACK"
"""The action that has no fields of its own: its schema describes a step whose action is not known."""


class _AnyStep(StepBase):
    """The common fields of a step whose action is not known."""

    model_config = ConfigDict(extra="ignore")


def check(model: type[TaskT], document: Json) -> tuple[TaskT | None, list[Finding]]:
    """The task, or what is wrong with the document's structure."""
    try:
        return model.model_validate(document, by_alias=True, by_name=False), []
    except ValidationError as error:
        schema = schema_of(model)
        errors = itertools.islice(_all_errors(document, error), MAX_ISSUES + 1)
        return None, [phrase(each, _locate(schema, document, each["loc"])) for each in errors]


def _all_errors(document: Json, error: ValidationError) -> Iterator[ErrorDetails]:
    """The errors, and those that pydantic does not look for in a step whose action it does not know."""
    for each in error.errors(include_url=False, include_input=False):
        if _rules_report(each) or _length_is_right(document, each):
            continue
        yield each
        if each["type"] in {"union_tag_invalid", "union_tag_not_found"}:
            yield from _errors_in_step(document, each["loc"])


def _rules_report(error: ErrorDetails) -> bool:
    """Whether the rules say it better: of what may be one of several types, pydantic reports each that it is not."""
    loc = error["loc"]
    if error["type"] in _LENGTHS and loc[-1] in STEP_LISTS:
        return True
    if "onFailure" in loc and _of_a_step(error, loc.index("onFailure")):
        return True
    of_value = loc[:1] == ("inputValues",) and len(loc) > 2
    of_default = loc[:1] == ("inputs",) and "default" in loc[2:]
    return (of_value or of_default) and loc[-1] != KEY


def _of_a_step(error: ErrorDetails, at: int) -> bool:
    """Whether the token is the field of a step; elsewhere it may be a field that is not known, or a name."""
    loc = error["loc"]
    is_unknown = error["type"] == "extra_forbidden" and at == len(loc) - 1
    return (at == 0 or _is_tag(loc, at - 1)) and not is_unknown


def _length_is_right(document: Json, error: ErrorDetails) -> bool:
    """Whether only the items that are valid are too few: pydantic counts those, and reports the others anyway."""
    if error["type"] != "too_short":
        return False
    return bool(_at(document, error["loc"]))


def _at(document: Json, loc: tuple[int | str, ...]) -> Json:
    value = document
    for position, token in enumerate(loc):
        if not _is_tag(loc, position):
            value = _child(value, token)
    return value


def _errors_in_step(document: Json, loc: tuple[int | str, ...]) -> Iterator[ErrorDetails]:
    step = _at(document, loc)
    if not isinstance(step, dict):
        return
    written = step.get("action")
    meant = meant_action(written) if isinstance(written, str) else None
    try:
        if meant in IMPLEMENTED_ACTIONS:
            IMPLEMENTED_ACTIONS[meant].model_validate(step | {"action": meant}, by_alias=True, by_name=False)
        else:
            _AnyStep.model_validate(step, by_alias=True, by_name=False)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            if not _rules_report(each):
                yield {**each, "loc": (*loc, meant if meant in IMPLEMENTED_ACTIONS else "", *each["loc"])}


def _locate(root: JsonSchema, document: Json, loc: tuple[int | str, ...]) -> Located:
    value, schema = document, root
    located = Located((), value, schema, parent={}, given=(), action="", root=root)
    place: list[int | str] = []
    action = ""
    for position, token in enumerate(loc):
        if _is_tag(loc, position):
            action = str(token)
            schema = _definition(root, schema["discriminator"]["mapping"][action or _COMMON_FIELDS])
            continue
        parent, holder = schema, value
        if token == KEY and not (isinstance(value, dict) and KEY in value):
            keys = located.parent
            form = next(iter(keys.get("patternProperties", {})), "")
            located = replace(
                located,
                value=str(place[-1]),
                schema={"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": form},
                is_key=True,
            )
            continue
        place.append(token)
        value = _child(value, token)
        if isinstance(token, int):
            schema = parent.get("items", {})
        else:
            named: JsonSchema = next(iter(parent.get("patternProperties", {}).values()), {})
            schema = parent.get("properties", {}).get(token, named)
        if "$ref" in schema:
            schema = _definition(root, schema["$ref"]) | schema
        given = holder.keys() if isinstance(holder, dict) else ()
        located = Located(tuple(place), value, schema, parent=parent, given=given, action=action, root=root)
    return located


def _is_tag(loc: tuple[int | str, ...], position: int) -> bool:
    """Whether the token is a step's action, which pydantic puts after the step's position in its list."""
    return position >= 2 and isinstance(loc[position - 1], int) and loc[position - 2] in STEP_LISTS


def _definition(root: JsonSchema, reference: str) -> JsonSchema:
    definition: JsonSchema = root["$defs"][reference.rpartition("/")[2]]
    return definition


def _child(value: Json, token: str | int) -> Json:
    if isinstance(value, dict):
        return value.get(str(token))
    if isinstance(value, list) and isinstance(token, int) and token < len(value):
        return value[token]
    return None
