"""What a task's references stand for, and a step with its references replaced (protocol section 1). Pure.

A value is put in the place of its reference as text and is never read as anything else: in a regular expression it is
escaped, in an XPath expression it becomes a string literal. `$${` becomes `${`. What comes out is checked by the step's
own model again, because a value may not fit where it stands.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from droidfleet_shared.protocol.phrasing import FORMS
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.regexes import BadPatternError, compile_pattern
from droidfleet_shared.protocol.result import OutputValue
from droidfleet_shared.protocol.selector import PATTERN_FIELDS, TEXT_FIELDS
from droidfleet_shared.protocol.steps import STEP_FIELDS, StepBase
from droidfleet_shared.protocol.task import TaskTemplate, Value
from droidfleet_shared.protocol.text import normalise

StepT = TypeVar("StepT", bound=StepBase)

LIST_SEPARATOR = ", "
"""Between the values of an output that is a list, where it stands in a text."""

REFERENCE = re.compile(r"\$\$\{|\$\{(inputs|outputs)\.([A-Za-z_][A-Za-z0-9_]*)\}")

PATTERNS = frozenset({*PATTERN_FIELDS, "matches"})
"""The fields in which a value is escaped."""

READ_FIELDS = frozenset({*TEXT_FIELDS, "ocrText", "contains"})
"""The fields that are compared in their normal form, of which something must remain."""

XPATH = "xpath"

IDENTIFIERS = frozenset({"id", "action", "goto", "outputField", "output", "artifact", "onFailure"})
"""The fields of steps that name something instead of holding a text: no reference stands in them."""

_PLACEHOLDER: Json = [{"id": "_", "action": "BACK"}]


class MissingValueError(Exception):
    """A reference to an output that was not extracted yet, or to an input without a value."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference


class UnfitValueError(Exception):
    """A value does not fit where its reference stands. ``field`` is the protocol's name of the field."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


def input_texts(task: TaskTemplate) -> dict[str, str]:
    """The value of each input that has one, as text: booleans and numbers as JSON writes them."""
    defaults = {name: declared.default for name, declared in task.inputs.items() if declared.default is not None}
    return {name: as_text(value) for name, value in {**defaults, **task.input_values}.items()}


def secret_values(task: TaskTemplate) -> tuple[str, ...]:
    """The values of the secret inputs, the longest first."""
    values = input_texts(task)
    secrets = {values[name] for name, declared in task.inputs.items() if declared.type == "secret" and name in values}
    return tuple(sorted(secrets - {""}, key=lambda value: (-len(value), value)))


def as_text(value: Value) -> str:
    """A value as it stands in a text."""
    return value if isinstance(value, str) else json.dumps(value)


def holds_reference(step: StepBase) -> bool:
    """Whether `resolve_step` would change anything in the step's own fields."""
    return any("$" in text for text in _texts(_own_fields(step)))


def resolve_step(step: StepT, *, inputs: Mapping[str, str], outputs: Mapping[str, OutputValue]) -> StepT:
    """The step with every text of its own as it is meant; the steps within a container are left as they are.

    Raises:
        MissingValueError: a reference has no value yet.
        UnfitValueError: with its value, a text is not one that the field takes.
    """
    if not holds_reference(step):
        return step

    def value_of(found: re.Match[str]) -> str:
        if found[0] == "$${":
            return "${"
        known: OutputValue | None = inputs.get(found[2]) if found[1] == "inputs" else outputs.get(found[2])
        if known is None:
            raise MissingValueError(found[0])
        return known if isinstance(known, str) else LIST_SEPARATOR.join(each for each in known if each is not None)

    own = _substituted(_own_fields(step), "", value_of)
    inner = {name: getattr(step, name) for name in type(step).model_fields if name in STEP_FIELDS}
    assert isinstance(own, dict)  # a step is an object
    placeholders = {
        type(step).model_fields[name].alias or name: _PLACEHOLDER
        for name, listed in inner.items()
        if listed is not None
    }
    try:
        resolved = type(step).model_validate(own | placeholders, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = next((str(token) for token in reversed(first["loc"]) if isinstance(token, str)), "")
        raise UnfitValueError(field, _reason(first)) from None
    return resolved.model_copy(update=inner)


def _reason(error: ErrorDetails) -> str:
    """Why the model refuses a text: values are texts, so that only its length and its form can be wrong."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "string_too_short":
            return "it is empty with its values"
        case "string_too_long":
            return f"it is longer than {limits['max_length']} characters with its values"
        case _:
            return f"expected {FORMS.get(limits.get('pattern', ''), 'another text')}"


def _own_fields(step: StepBase) -> Json:
    inner = {name for name in type(step).model_fields if name in STEP_FIELDS}
    fields: Json = step.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=inner)
    return fields


def _texts(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in _texts(each)]


def _substituted(value: Json, field: str, value_of: Callable[[re.Match[str]], str]) -> Json:
    if isinstance(value, dict):
        return {name: _substituted(each, name, value_of) for name, each in value.items()}
    if isinstance(value, list):
        return [_substituted(each, field, value_of) for each in value]
    if not isinstance(value, str) or "$" not in value or field in IDENTIFIERS:
        return value
    written: Callable[[str], str] = escaped if field in PATTERNS else xpath_literal if field == XPATH else str

    def put(found: re.Match[str]) -> str:
        meant = value_of(found)
        return meant if found[0] == "$${" else written(meant)

    meant = REFERENCE.sub(put, value)
    if problem := _problem(field, meant):
        raise UnfitValueError(field, problem)
    return meant


def _problem(field: str, meant: str) -> str:
    """Why a text cannot stand in its field with its values in it, where no model says so; empty when it can."""
    if field in READ_FIELDS and not normalise(meant):
        return "nothing that can be read is left to compare with"
    if field in PATTERNS:
        try:
            compile_pattern(meant)
        except BadPatternError as error:
            return error.reason
    return ""


def escaped(text: str) -> str:
    """A regular expression that means the text itself, of one piece: what repeats it repeats all of it."""
    return "(?:" + "".join(f"\\{each}" if each in string.punctuation and each != "_" else each for each in text) + ")"


def xpath_literal(text: str) -> str:
    """An XPath 1.0 string expression for any text."""
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    parts = ', "\'", '.join(f"'{part}'" for part in text.split("'"))
    return f"concat({parts})"
