"""The JSON Schema of scenario files, for editors. Run as a module with a file name it writes the file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import JsonValue
from pydantic.json_schema import GenerateJsonSchema

from droidfleet_agent.virtual_phone.scenario.actions import VERBS
from droidfleet_agent.virtual_phone.scenario.models import Scenario

_CONDITIONS = {"var": "Compare", "all": "All", "any": "AnyOf", "not": "Not"}


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def scenario_schema() -> dict[str, JsonValue]:
    """The schema as a document.

    Widgets, actions and conditions are told apart by ``if``/``then`` and not by ``oneOf``: a validator would try
    every branch of every level, and its time would grow with a power of the depth.
    """
    schema: dict[str, JsonValue] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Scenario.model_json_schema(schema_generator=_Generator),
    }
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)  # pydantic puts every model there
    definitions["Widget"] = _by_type(definitions["Widget"])
    definitions["Action"] = _by_key({verb: model.__name__ for verb, model in VERBS.items()})
    definitions["Condition"] = {"if": {"type": "string"}, "then": _truth(definitions), "else": _by_key(_CONDITIONS)}
    return schema


def _by_type(union: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(union, dict)  # the definition of a union of models
    discriminator = union["discriminator"]
    assert isinstance(discriminator, dict)  # a union told apart by a field has one
    mapping = discriminator["mapping"]
    assert isinstance(mapping, dict)  # from the field's values to models
    branches: list[JsonValue] = [
        {"if": {"properties": {"type": {"const": kind}}}, "then": {"$ref": reference}}
        for kind, reference in sorted(mapping.items())
    ]
    kinds: list[JsonValue] = [*sorted(mapping)]
    return {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": kinds}},
        "allOf": branches,
    }


def _by_key(models: dict[str, str]) -> dict[str, JsonValue]:
    branches: list[JsonValue] = [
        {"if": {"required": [key]}, "then": {"$ref": f"#/$defs/{model}"}} for key, model in models.items()
    ]
    one_of_them: list[JsonValue] = [{"required": [key]} for key in models]
    return {"type": "object", "anyOf": one_of_them, "allOf": branches}


def _truth(definitions: dict[str, JsonValue]) -> JsonValue:
    union = definitions["Condition"]
    assert isinstance(union, dict)  # the definition of a union
    branches = union["oneOf"]
    assert isinstance(branches, list)  # its branches
    return next(branch for branch in branches if isinstance(branch, dict) and branch.get("type") == "string")


def schema_text() -> str:
    """The schema as the committed file has it: one line for each definition, which keeps differences readable."""
    schema = scenario_schema()
    definitions = schema.pop("$defs")
    assert isinstance(definitions, dict)  # pydantic puts every model there
    head = json.dumps(schema, ensure_ascii=False, sort_keys=True)
    lines = [f"{json.dumps(name)}: {json.dumps(definitions[name], ensure_ascii=False)}" for name in sorted(definitions)]
    return f'{head[:-1]}, "$defs": {{\n' + ",\n".join(lines) + "\n}}\n"


def main(arguments: list[str]) -> None:
    """Writes the schema to the one file that is named."""
    (target,) = arguments
    Path(target).write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
