"""Reads a rollout or schedule document: JSON text to a model, or everything that is wrong with its shape. Pure.

The models (`spec`) are the one place for fields, types and ranges; this puts what pydantic finds into words, each in
its place. Values of inputs are never repeated: they may be secrets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue, cut
from droidfleet_controller.rollouts.spec import SpecModel
from droidfleet_shared.protocol.issues import Finding
from droidfleet_shared.protocol.jsontext import parse
from droidfleet_shared.protocol.pointers import DocumentOrder, Json, Place, pointer
from droidfleet_shared.protocol.suggestions import folded, nearest
from droidfleet_shared.protocol.wording import described, listed, name, shown

MAX_SPEC_BYTES = 8 * 1024 * 1024
"""Values for ten thousand phones of eight hundred characters each."""

KEY = "[key]"
"""What pydantic puts after a key that is not accepted."""

_VALUES = frozenset({"inputs", "deviceInputs"})
"""Fields whose content is not shown."""

_CODES = {
    "missing": IssueCode.MISSING_FIELD,
    "extra_forbidden": IssueCode.UNKNOWN_FIELD,
    "greater_than_equal": IssueCode.OUT_OF_RANGE,
    "less_than_equal": IssueCode.OUT_OF_RANGE,
    "string_too_short": IssueCode.OUT_OF_RANGE,
    "string_too_long": IssueCode.OUT_OF_RANGE,
    "too_short": IssueCode.OUT_OF_RANGE,
    "too_long": IssueCode.OUT_OF_RANGE,
}
"""By pydantic's error type; those that end in ``_type`` are WRONG_TYPE, all others BAD_VALUE."""

_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "`true` or `false`",
    "tuple_type": "a list",
    "model_type": "an object",
    "dict_type": "an object",
}

ModelT = TypeVar("ModelT", bound=SpecModel)


@dataclass(frozen=True, slots=True)
class Read(Generic[ModelT]):
    """What was read. ``model`` is there exactly when ``issues`` is empty; ``document`` is the raw tree."""

    model: ModelT | None
    issues: tuple[SpecIssue, ...]
    document: Json = None


def read(text: str, model: type[ModelT]) -> Read[ModelT]:
    """Reads a document. Never raises for bad input."""
    parsed = parse(text, max_bytes=MAX_SPEC_BYTES)
    if parsed.findings:
        return Read(None, cut([_lexical(finding) for finding in parsed.findings]))
    document = parsed.value
    if not isinstance(document, dict):
        issue = SpecIssue(
            "", IssueCode.WRONG_TYPE, f"found {described(document)}; expected an object", "Write {...} around it."
        )
        return Read(None, (issue,))
    try:
        return Read(model.model_validate(document, by_alias=True, by_name=False), (), document)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    found = [_Error.of(each, document) for each in errors]
    issues = [_issue(model, each) for each in _without_echoes(found)]
    return Read(None, cut(in_order(issues, document)), document)


def in_order(issues: Iterable[SpecIssue], document: Json) -> list[SpecIssue]:
    """The issues as their places stand in the document."""
    order = DocumentOrder(document)
    return sorted(issues, key=lambda issue: order.key(_place(document, issue.path)))


def _place(document: Json, path: str) -> Place:
    place: list[str | int] = []
    value = document
    for token in path.split("/")[1:]:
        key: str | int = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            key = int(key)
            value = value[key] if key < len(value) else None
        elif isinstance(value, dict):
            value = value.get(str(key))
        place.append(key)
    return tuple(place)


def _lexical(finding: Finding) -> SpecIssue:
    return SpecIssue(pointer(finding.place), IssueCode(finding.code), finding.message, finding.hint)


@dataclass(frozen=True, slots=True)
class _Error:
    """An error of the models. ``place``: in the document; ``field``: the name in question where it is not there (or not
    known); ``branch``: the alternative of a union that pydantic tried, and ``union`` where that union stands."""

    type: str
    place: Place
    value: Json
    loc: tuple[str | int, ...]
    context: dict[str, object]
    field: str = ""
    branch: str = ""
    union: Place = ()

    @classmethod
    def of(cls, error: ErrorDetails, document: Json) -> _Error:
        loc = error["loc"]
        place: list[str | int] = []
        value, branch, field = document, "", ""
        union: Place = ()
        for position, token in enumerate(loc):
            is_last = position == len(loc) - 1
            if isinstance(value, dict) and token in value:
                value = value[str(token)]
            elif isinstance(value, list) and isinstance(token, int) and token < len(value):
                value = value[token]
            elif is_last and error["type"] == "missing":
                field = str(token)
                continue
            else:
                if token != KEY:
                    branch, union = str(token), tuple(place)
                continue
            place.append(token)
        return cls(error["type"], tuple(place), value, loc, dict(error.get("ctx", {})), field, branch, union)

    @property
    def is_mismatch(self) -> bool:
        """The value is not of the branch's type at all."""
        return bool(self.branch) and self.type.endswith("_type") and self.place == self.union


def _without_echoes(found: list[_Error]) -> Iterator[_Error]:
    """All errors but those of alternatives that were not meant, and lengths that only count what is valid."""
    said: set[Place] = set()
    meant = {each.union for each in found if each.branch and not each.is_mismatch}
    for each in found:
        if each.type == "too_short" and isinstance(each.value, list | dict) and each.value:
            continue
        if each.is_mismatch:
            if each.union in meant or each.union in said:
                continue
            said.add(each.union)
        yield each


def _issue(model: type[SpecModel], error: _Error) -> SpecIssue:
    code = _CODES.get(error.type, IssueCode.WRONG_TYPE if error.type.endswith("_type") else IssueCode.BAD_VALUE)
    path = pointer(error.place)
    around = _model_at(model, error.loc[:-1])
    match code:
        case IssueCode.MISSING_FIELD:
            return SpecIssue(path, code, f"{name(error.field)} is missing", _about(around, error.field))
        case IssueCode.UNKNOWN_FIELD:
            field = str(error.place[-1])
            return SpecIssue(path, code, f"{name(field)} is not a field here", _field_hint(around, field))
        case _:
            return SpecIssue(path, code, _message(error), _hint(around, error))


def _message(error: _Error) -> str:  # noqa: PLR0911 - one return a type
    hidden = bool(_VALUES & set(error.place)) and error.loc[-1] != KEY
    found = "something else" if hidden else described(error.value)
    limits = error.context
    match error.type:
        case _ if error.branch and error.is_mismatch:
            return f"found {found}; expected a whole number or an object"
        case "value_error":
            return str(limits["error"])
        case "enum":
            return f"{shown(error.value)} is not accepted; expected {str(limits['expected']).replace(chr(39), '`')}"
        case "greater_than_equal":
            return f"{shown(error.value)} is out of range; expected at least {limits['ge']}"
        case "less_than_equal":
            return f"{shown(error.value)} is out of range; expected at most {limits['le']}"
        case "string_too_short" | "too_short":
            return f"found {found}; expected at least {limits['min_length']}"
        case "string_too_long" | "too_long":
            return f"found {found}; expected at most {limits['max_length']}"
        case "string_pattern_mismatch":
            what = "the name " + shown(str(error.place[-1])) if error.loc[-1] == KEY else shown(error.value)
            return f"{what} has not the form that is needed"
        case _:
            return f"found {found}; expected {_KINDS.get(error.type, 'something else')}"


def _hint(around: type[BaseModel] | None, error: _Error) -> str:
    if error.value is None:
        return "Leave the field out instead of writing `null`."
    field = next((str(token) for token in reversed(error.place) if isinstance(token, str)), "")
    if error.type == "enum" and isinstance(error.value, str):
        by_folded = {folded(word): word for word in _words(around, field)}
        meant = nearest(folded(error.value), by_folded)
        if meant is not None:
            return f"Did you mean {name(by_folded[meant])}?"
    return _about(around, field)


def _about(around: type[BaseModel] | None, field: str) -> str:
    """What the field is for, with an example where the model has one."""
    info = around.model_fields.get(_fields(around).get(field, "")) if around else None
    if info is None:
        return ""
    example = f" For example `{json.dumps(info.examples[0], ensure_ascii=False)}`." if info.examples else ""
    return (info.description or "") + example


def _field_hint(around: type[BaseModel] | None, found: str) -> str:
    fields = list(_fields(around))
    by_folded = {folded(each): each for each in fields}
    meant = nearest(folded(found), by_folded)
    if meant is not None:
        return f"Did you mean {name(by_folded[meant])}?"
    return f"The fields here are {listed([name(each) for each in fields])}."


def _fields(model: type[BaseModel] | None) -> dict[str, str]:
    """The model's fields: name in the document to name in Python."""
    return {info.alias or each: each for each, info in model.model_fields.items()} if model else {}


def _words(model: type[BaseModel] | None, field: str) -> list[str]:
    info = model.model_fields.get(_fields(model).get(field, "")) if model else None
    types = _types(info.annotation) if info else ()
    return [word.value for each in types if isinstance(each, type) and issubclass(each, StrEnum) for word in each]


def _model_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> type[BaseModel] | None:
    """The model of the object at a location of pydantic's."""
    current: type[BaseModel] | None = model
    for token in loc:
        if current is None or isinstance(token, int):
            continue
        field = _fields(current).get(token)
        if field is None:
            continue  # the name of a union's branch, or a key
        annotation = current.model_fields[field].annotation
        current = next(
            (each for each in _types(annotation) if isinstance(each, type) and issubclass(each, BaseModel)), current
        )
    return current


def _types(annotation: object) -> Iterator[object]:
    yield annotation
    for each in get_args(annotation):
        yield from _types(each)
