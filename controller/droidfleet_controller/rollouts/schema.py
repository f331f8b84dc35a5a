"""The JSON Schemas (draft 2020-12) of rollout and schedule documents, made from the models.

They describe structure: fields, types, ranges, words. Rules that look at several fields, or at the fleet, are not in
them. ``python -m droidfleet_controller.rollouts.schema [DIRECTORY]`` writes both files (default ``docs``).
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from droidfleet_controller.rollouts.amounts import Count, Percent, duration_text
from droidfleet_controller.rollouts.spec import RolloutSpec, SpecModel
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_shared.protocol.schema import Generator, JsonSchema

FILES: dict[str, type[SpecModel]] = {"rollout.schema.json": RolloutSpec, "schedule.schema.json": ScheduleSpec}


class _Generator(Generator):
    """Defaults stand in it as people write them."""

    def encode_default(self, dft: object) -> object:
        return to_jsonable_python(_written(dft))


def _written(default: object) -> object:
    match default:
        case timedelta():
            return duration_text(default)
        case Percent():
            return str(default)
        case Count():
            return default.value
        case BaseModel():
            return default.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        case tuple():
            return [_written(each) for each in default]
        case _:
            return default


def schema_of(model: type[SpecModel]) -> JsonSchema:
    """The schema of a model, as a tree."""
    described = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **described}


def schema_text(model: type[SpecModel]) -> str:
    """The schema as it is committed."""
    return json.dumps(schema_of(model), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Writes the files."""
    directory = Path(arguments[0] if arguments else "docs")
    for name, model in FILES.items():
        (directory / name).write_text(schema_text(model), encoding="utf-8")
        print(directory / name)


if __name__ == "__main__":
    main(sys.argv[1:])
