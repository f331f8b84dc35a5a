"""The fields of the protocol as a model reads them, made from its schema, so that they are never others. Pure."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

from droidfleet_shared.protocol.schema import schema_of
from droidfleet_shared.protocol.task import TaskTemplate

Schema = dict[str, Any]
"""A JSON Schema, or a part of one: a tree of anything."""

_SHORT: Final = {"integer": "int", "boolean": "bool", "string": "text", "object": "object", "number": "number"}
_LEFT_OUT: Final = {"artifacts", "inputValues", "revision", "schemaVersion", "randomSeed"}
"""Of the task: what a model has no business with, or is filled in."""

_PARTS: Final = (
    "Selector",
    "PointSelector",
    "Condition",
    "After",
    "Goto",
    "ExtractField",
    "Offset",
    "KeyName",
    "Attribute",
    "InputDeclaration",
)


@cache
def reference() -> str:
    """One line for the task, each action, the selector, the condition and what stands in them: ``*`` after a field that
    is required, its type or range, ``=`` its default. The same in every language: names and numbers."""
    schema = schema_of(TaskTemplate)
    parts: Schema = schema["$defs"]
    steps = {name: each for name, each in parts.items() if name.endswith("Step")}
    shared = set.intersection(*(set(each["properties"]) for each in steps.values())) - {"action"}
    some_step = next(iter(steps.values()))
    lines = [f"TASK: {_fields(schema, leave=_LEFT_OUT)}", f"EVERY STEP: action*, {_fields(some_step, only=shared)}"]
    for each in steps.values():
        action = each["properties"]["action"]["const"]
        own = _fields(each, leave=(shared - set(each["required"])) | {"action", "id"})
        lines.append(f"{action}: {each['description']}" + (f" Fields: {own}" if own else ""))
    lines += [
        f"{name}: {_fields(parts[name]) if 'properties' in parts[name] else _kind(parts[name])}" for name in _PARTS
    ]
    return "\n".join(lines)


def _fields(schema: Schema, *, only: set[str] | None = None, leave: set[str] | None = None) -> str:
    required = set(schema.get("required", ()))
    return ", ".join(
        f"{name}{'*' * (name in required)}{_told(each)}"
        for name, each in schema["properties"].items()
        if (only is None or name in only) and name not in (leave or ())
    )


def _told(schema: Schema) -> str:
    kind = _kind(schema)
    default = schema.get("default")
    return (f" {kind}" if kind else "") + (f" ={json.dumps(default)}" if default not in (None, {}) else "")


def _kind(schema: Schema) -> str:  # noqa: PLR0911 - one for each kind
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return "|".join(_kind(each) for each in schema["anyOf"])
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    if "oneOf" in schema:
        return "step"
    if schema.get("type") == "array":
        return f"[{_kind(schema['items'])}]"
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']}..{schema['maximum']}"
    return _SHORT.get(schema.get("type", ""), "")
