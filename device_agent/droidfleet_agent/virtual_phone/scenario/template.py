"""`{{path|filter}}` in scenario texts: parsed once at load, substituted at run time, never evaluated.

A scope is a chain of mappings, the innermost first (a row's own names, the page's state, the app's variables, facts of
the phone). A path that leads nowhere gives None, which renders as nothing; the loader has checked its first name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

Scope: TypeAlias = tuple[Mapping[str, JsonValue], ...]
Path: TypeAlias = tuple[str, ...]

PATH_PATTERN = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*"
MAX_TEXT = 20_000
"""Characters of one template or rendered text: more than any screen shows, small enough to lay out."""

_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PATH = re.compile(PATH_PATTERN)
_CENTS = 100


def lookup(scope: Scope, path: Path) -> JsonValue:
    """The value at ``path``: names into mappings, numbers into lists; None where it leads nowhere."""
    for names in scope:
        if path[0] in names:
            return walk_into(names[path[0]], path[1:])
    return None


def walk_into(value: JsonValue, path: Path) -> JsonValue:
    """The value below ``value`` at ``path``; None where it leads nowhere."""
    for part in path:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def to_text(value: JsonValue) -> str:
    """How a value reads on a screen. Lists and mappings have no reading."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    return ""


def as_number(value: JsonValue) -> float | int:
    """The number in a value; 0 for what is none (an empty field adds nothing)."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        try:
            return float(value) if "." in value else int(value)
        except ValueError:
            return 0
    return 0


def _money(value: JsonValue) -> JsonValue:
    cents = int(as_number(value))
    return f"{'-' if cents < 0 else ''}{abs(cents) // _CENTS:,}.{abs(cents) % _CENTS:02d}"


def _length(value: JsonValue) -> JsonValue:
    return len(value) if isinstance(value, str | list | dict) else 0


FILTERS: Mapping[str, Callable[[JsonValue], JsonValue]] = {
    "money": _money,
    "length": _length,
    "upper": lambda value: to_text(value).upper(),
    "initial": lambda value: to_text(value)[:1].upper(),
    "negative": lambda value: -as_number(value),
}
"""money: cents as ``1,234.50``; length: of a text or list; initial: first letter; negative: for ``add``."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One ``{{path|filter}}``."""

    path: Path
    filters: tuple[str, ...]

    def value(self, scope: Scope) -> JsonValue:
        """The value with its filters applied."""
        value = lookup(scope, self.path)
        for name in self.filters:
            value = FILTERS[name](value)
        return value


@dataclass(frozen=True, slots=True)
class Template:
    """A text with placeholders. ``constant`` is the whole text when there are none (the usual case, kept fast)."""

    source: str
    parts: tuple[str | Placeholder, ...]
    constant: str | None

    @classmethod
    def parse(cls, source: str) -> Template:
        """Raises ValueError saying what is wrong and where."""
        if len(source) > MAX_TEXT:
            raise ValueError(f"the text has {len(source)} characters; at most {MAX_TEXT} are allowed")
        parts: list[str | Placeholder] = []
        end = 0
        for match in _PLACEHOLDER.finditer(source):
            if match.start() > end:
                parts.append(source[end : match.start()])
            parts.append(_placeholder(match.group(1)))
            end = match.end()
        rest = source[end:]
        if "{{" in rest:
            raise ValueError("a '{{' has no matching '}}'")
        if rest:
            parts.append(rest)
        constant = source if all(isinstance(part, str) for part in parts) else None
        return cls(source, tuple(parts), constant)

    def text(self, scope: Scope) -> str:
        """The text with every placeholder replaced."""
        if self.constant is not None:
            return self.constant
        return "".join(part if isinstance(part, str) else to_text(part.value(scope)) for part in self.parts)[:MAX_TEXT]

    def value(self, scope: Scope) -> JsonValue:
        """Like `text`, but a template that is one placeholder gives the value itself, with its type."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Placeholder):
            return self.parts[0].value(scope)
        return self.text(scope)

    def paths(self) -> Iterator[Path]:
        """Every path it reads."""
        return (part.path for part in self.parts if isinstance(part, Placeholder))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(_validate_template)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"type": ["string", "number", "boolean"], "description": "Text; {{path|filter}} is substituted."}


def _placeholder(inside: str) -> Placeholder:
    path, *filters = (part.strip() for part in inside.split("|"))
    if not _PATH.fullmatch(path):
        raise ValueError(f"'{path}' is no path; write names joined by dots, such as {{{{cart.count}}}}")
    for name in filters:
        if name not in FILTERS:
            raise ValueError(f"unknown filter '{name}'; there are {', '.join(FILTERS)}")
    return Placeholder(tuple(path.split(".")), tuple(filters))


def _validate_template(value: object) -> Template:
    if isinstance(value, Template):
        return value
    if isinstance(value, bool | int | float):
        value = to_text(value)
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "Input should be a text")
    try:
        return Template.parse(value)
    except ValueError as error:
        raise PydanticCustomError("bad_template", "{reason}", {"reason": str(error)}) from None


@dataclass(frozen=True, slots=True)
class Value:
    """Any JSON value whose strings are templates (`{{item}}` alone gives the item itself)."""

    source: JsonValue

    def resolve(self, scope: Scope) -> JsonValue:
        """The value with every template in it replaced; a copy, never shared with a variable."""
        return _resolve(self.source, scope)

    def paths(self) -> Iterator[Path]:
        """Every path it reads."""
        return _paths(self.source)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(_validate_value, handler(JsonValue))

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"description": "Any value; strings in it are templates."}


def copied(value: JsonValue) -> JsonValue:
    """A deep copy of a JSON value."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [copied(inner) for inner in value]
    return value


def _resolve(value: JsonValue, scope: Scope) -> JsonValue:
    if isinstance(value, str):
        return copied(Template.parse(value).value(scope)) if "{{" in value else value
    if isinstance(value, dict):
        return {key: _resolve(inner, scope) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, scope) for inner in value]
    return value


def _paths(value: JsonValue) -> Iterator[Path]:
    if isinstance(value, str):
        yield from Template.parse(value).paths()
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _paths(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner)


def _validate_value(value: JsonValue) -> Value:
    try:
        for _ in _paths(value):
            pass
    except ValueError as error:
        raise PydanticCustomError("bad_template", "{reason}", {"reason": str(error)}) from None
    return Value(value)
