"""The JSON Schema (draft 2020-12) of a task and of a task template, made from the models.

It describes structure: fields, types, ranges, patterns. Rules that look at several fields are the validator's alone.
``python -m droidfleet_shared.protocol.schema [DIRECTORY]`` writes both files (default ``docs/protocol``).
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from droidfleet_shared.protocol.task import Task, TaskTemplate

JsonSchema = dict[str, Any]
"""A JSON Schema, or a part of one: a tree of anything."""

FILES: dict[str, type[TaskTemplate]] = {"task.schema.json": Task, "template.schema.json": TaskTemplate}


class Generator(GenerateJsonSchema):
    """An optional field is left out, never null; names have a form; titles that only repeat the name are noise."""

    schema_dialect = "https://json-schema.org/draft/2020-12/schema"

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if described.get("default", 0) is None:
            del described["default"]
        return described

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        described = super().dict_schema(schema)
        if "patternProperties" in described:
            described["additionalProperties"] = False
        return described

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


@lru_cache
def schema_of(model: type[TaskTemplate]) -> JsonSchema:
    """The schema of a model, as a tree. Shared: do not change it."""
    described = model.model_json_schema(by_alias=True, schema_generator=Generator)
    return {"$schema": Generator.schema_dialect, **described}


def schema_text(model: type[TaskTemplate]) -> str:
    """The schema as it is committed."""
    return json.dumps(schema_of(model), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Writes the files."""
    directory = Path(arguments[0] if arguments else "docs/protocol")
    for name, model in FILES.items():
        (directory / name).write_text(schema_text(model), encoding="utf-8")
        print(directory / name)


if __name__ == "__main__":
    main(sys.argv[1:])
