"""Puts a model's error into words: what was found, what is expected there, and an example to copy.

What it says about a field (ranges, examples) is read from the JSON Schema, which is made from the models.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from pydantic_core import ErrorDetails

from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.names import ACTIVITY_PATTERN, NAME_PATTERN, OUTPUT_PATTERN, PACKAGE_PATTERN
from droidfleet_shared.protocol.pointers import Json, Place
from droidfleet_shared.protocol.schema import JsonSchema
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.suggestions import action_hint, closest, field_hint, folded
from droidfleet_shared.protocol.task import SCHEMA_VERSION
from droidfleet_shared.protocol.wording import described, listed, name, shown

_CODES = {
    "missing": ValidationCode.MISSING_FIELD,
    "union_tag_not_found": ValidationCode.MISSING_FIELD,
    "extra_forbidden": ValidationCode.UNKNOWN_FIELD,
    "union_tag_invalid": ValidationCode.UNKNOWN_ACTION,
    "greater_than_equal": ValidationCode.OUT_OF_RANGE,
    "less_than_equal": ValidationCode.OUT_OF_RANGE,
    "string_too_short": ValidationCode.OUT_OF_RANGE,
    "string_too_long": ValidationCode.OUT_OF_RANGE,
    "string_pattern_mismatch": ValidationCode.BAD_VALUE,
    "string_type": ValidationCode.WRONG_TYPE,
    "int_type": ValidationCode.WRONG_TYPE,
    "bool_type": ValidationCode.WRONG_TYPE,
    "tuple_type": ValidationCode.WRONG_TYPE,
    "model_type": ValidationCode.WRONG_TYPE,
    "model_attributes_type": ValidationCode.WRONG_TYPE,
    "dict_type": ValidationCode.WRONG_TYPE,
    "literal_error": ValidationCode.BAD_VALUE,
    "enum": ValidationCode.BAD_VALUE,
    "too_short": ValidationCode.OUT_OF_RANGE,
    "too_long": ValidationCode.OUT_OF_RANGE,
}
"""Pydantic's error types that the models can give; a test meets each of them."""

FORMS = {
    NAME_PATTERN: "a text without control characters and without white space around it",
    PACKAGE_PATTERN: "an Android package, a text of words joined by dots (letters, digits and `_`)",
    ACTIVITY_PATTERN: "an activity's class name, a text such as `com.shop.Main` or `.Main`, without `/`",
    OUTPUT_PATTERN: "a name, a text of letters, digits and `_` that does not begin with a digit",
}
"""By pattern: what it wants, as a noun phrase."""

_OBJECTS = {
    "Selector": ("selector", "a selector"),
    "Condition": ("condition", "a condition"),
    "After": ("after", "`after`"),
    "Goto": ("goto", "`onFailure`"),
    "InputDeclaration": ("input", "the declaration of an input"),
    "ExtractField": ("field", "an entry of `fields`"),
    "ImageSelector": ("image", "`image`"),
    "PointSelector": ("point", "`point`"),
    "Offset": ("offset", "`byPercent`"),
}
"""The objects within a task that are no steps: a word for suggestions, and words for people."""


@dataclass(frozen=True, slots=True)
class Located:
    """Where an error is: its place, what stands there, and what the schema says of it.

    ``parent`` and ``given`` are the schema of the object around it and the fields that this object has; ``action`` its
    action when it is a step of a known one; ``root`` the document's schema.
    """

    place: Place
    value: Json
    schema: JsonSchema
    parent: JsonSchema
    given: Collection[str]
    action: str
    root: JsonSchema
    is_key: bool = False

    @property
    def where(self) -> str:
        """What the object around it is: ``task``, ``selector``, ``condition`` and so on, or ``step``."""
        title = self.parent.get("title", "")
        return "task" if title == self.root["title"] else _OBJECTS.get(title, ("step", ""))[0]

    @property
    def around(self) -> str:
        """The object around it in words."""
        if self.where == "task":
            return "a task" if self.root["title"] == "Task" else "a task template"
        if self.where != "step":
            return _OBJECTS[self.parent["title"]][1]
        article = "an" if self.action[:1] in {"A", "E", "I", "O", "U"} else "a"
        return f"{article} {name(self.action)} step" if self.action else "a step"


def phrase(error: ErrorDetails, at: Located) -> Finding:
    """The finding for one error of the models."""
    code = _CODES.get(error["type"], ValidationCode.BAD_VALUE)
    match code:
        case ValidationCode.MISSING_FIELD:
            return _missing(error, at)
        case ValidationCode.UNKNOWN_FIELD:
            return _unknown_field(at)
        case ValidationCode.UNKNOWN_ACTION:
            return _unknown_action(at)
        case ValidationCode.OUT_OF_RANGE if at.place == ("schemaVersion",):
            return Finding(
                at.place,
                ValidationCode.UNSUPPORTED_VERSION,
                f"schema version {shown(at.value)} is not one that this program speaks; expected {SCHEMA_VERSION}",
                f'Write `"schemaVersion": {SCHEMA_VERSION}`, or upgrade the program.',
            )
        case _:
            found = f"found {described(at.value)}" if code is ValidationCode.WRONG_TYPE else shown(at.value)
            problem = {
                ValidationCode.OUT_OF_RANGE: " is out of range",
                ValidationCode.BAD_VALUE: " is not accepted"
                if "enum" in at.schema
                else " has not the form that is needed",
            }.get(code, "")
            if at.is_key:
                found, problem = f"the name {found}", problem or " is not accepted"
            hint = "Leave the field out instead of writing `null`." if at.value is None else _example(at)
            return Finding(at.place, code, f"{found}{problem}; expected {expectation(at.schema)}", hint)


def expectation(schema: JsonSchema) -> str:  # noqa: PLR0911 - one return a type
    """What the schema wants, as a noun phrase."""
    if "const" in schema:
        return name(schema["const"])
    if "enum" in schema:
        return listed([name(each) for each in schema["enum"]], "or")
    match schema.get("type"):
        case "integer":
            low, high = schema["minimum"], schema["maximum"]
            return f"the number {low}" if low == high else f"a whole number from {low} to {high}"
        case "string":
            low, high = schema.get("minLength"), schema["maxLength"]
            form = FORMS.get(schema.get("pattern", ""), "a text")
            return f"{form} ({low} to {high} characters)" if low else f"{form} (at most {high} characters)"
        case "object":
            title = schema.get("title", "")
            words = _OBJECTS[title][1] if title in _OBJECTS else "a task" if title else "values by their names"
            return f"{words}, an object"
        case "array":
            return _listing(schema)
        case "boolean":
            return "`true` or `false`"
        case _:
            return "a step, an object with `id` and `action`"


def _listing(schema: JsonSchema) -> str:
    items = schema.get("items", {})
    title = items.get("$ref", "").rpartition("/")[2]
    what = {"Condition": "conditions", "ExtractField": "fields, objects with `outputField`"}.get(title)
    return f"a list of 1 to {schema['maxItems']} {what}" if what else "a list of steps"


def _missing(error: ErrorDetails, at: Located) -> Finding:
    if error["type"] == "union_tag_not_found":
        return Finding(at.place, ValidationCode.MISSING_FIELD, "a step has no `action`", action_hint(None))
    field = str(at.place[-1])
    return Finding(
        at.place[:-1],
        ValidationCode.MISSING_FIELD,
        f"{at.around} must have `{field}`: {expectation(at.schema)}",
        f"Add it; {_example(at)[:1].lower()}{_example(at)[1:]}",
    )


def _unknown_field(at: Located) -> Finding:
    field = str(at.place[-1])
    if field == "assignedAgentName":
        hint = "A template bears no agent's name; it is added when the task is run on an agent."
    else:
        fields = at.parent["properties"]
        hint = field_hint(field, where=at.where, fields=fields, given=at.given, elsewhere=_elsewhere(at))
    return Finding(at.place, ValidationCode.UNKNOWN_FIELD, f"{name(field)} is not a field of {at.around}", hint)


def _unknown_action(at: Located) -> Finding:
    place = (*at.place, "action")
    action = at.value.get("action") if isinstance(at.value, dict) else None
    if not isinstance(action, str):
        message = f"found {described(action)}; expected the name of an action"
        return Finding(place, ValidationCode.WRONG_TYPE, message, action_hint(None))
    return Finding(
        place,
        ValidationCode.UNKNOWN_ACTION,
        f"{shown(action)} is not an action that is implemented",
        action_hint(action),
    )


def _elsewhere(at: Located) -> dict[str, str]:
    """Where else fields stand, by folded name: the sentence for somebody who put one here."""
    places: dict[str, str] = {}
    definitions = at.root["$defs"]
    by_field: dict[str, list[str]] = {}
    for action, step in IMPLEMENTED_ACTIONS.items():
        for field in definitions[step.__name__]["properties"]:
            by_field.setdefault(field, []).append(name(action))
    for field, actions in by_field.items():
        everywhere = len(actions) == len(IMPLEMENTED_ACTIONS)
        places[folded(field)] = f"{name(field)} stands in {'steps' if everywhere else listed(actions) + ' steps'}."
    if at.where != "condition":
        for field in definitions["Condition"]["properties"]:
            example = f'`"condition": {{{json.dumps(field)}: ...}}`'
            places.setdefault(folded(field), f"{name(field)} stands in a condition: {example}.")
    if at.where == "selector":
        for field in ("visible", "gone"):
            places[folded(field)] = "Here stands a selector alone; write what is in it in its place."
    else:
        around, whose = ("visible", "a") if at.where == "condition" else ("selector", "a step's")
        for field in definitions["Selector"]["properties"]:
            example = f'`"{around}": {{{json.dumps(field)}: ...}}`'
            places.setdefault(folded(field), f"{name(field)} stands in {whose} selector: {example}.")
    if at.where == "step":
        for word in ("seconds", "ms", "milliseconds", "duration", "sleep", "pause"):
            places.setdefault(word, 'To pause there is an action of its own: `"action": "DELAY", "minMs": 3000`.')
    for field in at.root["properties"]:
        there = places.get(folded(field))
        at_top = "at the top of the document"
        places[folded(field)] = f"{there[:-1]}, and {at_top}." if there else f"{name(field)} stands {at_top}."
    return places


def _example(at: Located) -> str:
    if "enum" in at.schema and isinstance(at.value, str):
        if at.place[-1] == "key" and folded(at.value).removeprefix("keycode") == "back":
            return "For Back there is the action `BACK`."
        meant = closest(at.value, at.schema["enum"])
        if meant is not None:
            return f"Did you mean {name(meant)}?"
    examples, place = at.schema.get("examples"), at.place
    if not examples:  # what stands in a list, or under a name that the author chose: the whole of it is an example
        examples, place = at.parent.get("examples"), at.place[:-1]
    if not examples:
        return ""
    value = json.dumps(examples[0], ensure_ascii=False)
    text = f'"{place[-1]}": {value}' if place and isinstance(place[-1], str) else value
    return f"For example `{text}`."
