"""Documents to import, and what is looked at in the outcome."""

from __future__ import annotations

import json
from pathlib import Path

from droidfleet_controller.importing.generic import import_generic
from droidfleet_controller.importing.maestro import import_maestro
from droidfleet_controller.importing.report import Entry, Imported, What
from droidfleet_shared.protocol.pointers import Json
from droidfleet_shared.protocol.validate import validate_template

DATA = Path(__file__).parents[2] / "data" / "importing"

Object = dict[str, Json]
OK: Object = {"selector_type": "text", "selector_value": "OK"}
CLICK: Object = {"id": "a", "type": "click", "params": OK}


def generic(*steps: Json, **fields: Json) -> Imported:
    """The import of a generic document with these steps."""
    document: Object = {"name": "t", "task_type": "generic_steps", "params": {"steps": [*steps]}}
    return checked(import_generic({**document, **fields}))


def generic_with_points(*steps: Json) -> Imported:
    """The same, where points are allowed."""
    return checked(import_generic({"name": "t", "params": {"steps": [*steps]}}, allow_points=True))


def step(kind: str, **params: Json) -> Object:
    """A generic step."""
    return {"id": "a", "type": kind, "params": params}


def flow(commands: str, config: str = "appId: com.example.shop", *, allow_points: bool = False) -> Imported:
    """The import of a Maestro flow."""
    return checked(import_maestro(f"{config}\n---\n{commands}\n", allow_points=allow_points))


def checked(imported: Imported) -> Imported:
    """The outcome, after what holds for every one: no document with a refusal, and else a valid one."""
    assert (imported.document is None) == (imported.count(What.REFUSED) > 0)
    if imported.document is not None:
        assert validate_template(json.dumps(imported.document)).errors == ()
    return imported


def steps_of(imported: Imported) -> list[Json]:
    """The steps of the new task without their ids, at every depth."""
    assert imported.document is not None, refusals(imported)
    steps = imported.document["steps"]
    assert isinstance(steps, list)
    return [_without_id(each) for each in steps]


def refusals(imported: Imported) -> list[tuple[str, str]]:
    """Code and place of everything that was refused."""
    return [(entry.code, entry.place) for entry in imported.report if entry.what is What.REFUSED]


def the_refusal(imported: Imported) -> Entry:
    """The one thing that was refused."""
    (entry,) = (entry for entry in imported.report if entry.what is What.REFUSED)
    return entry


def notes(imported: Imported) -> set[str]:
    """The codes of what was normalised."""
    return {entry.code for entry in imported.report if entry.what is What.NORMALISED}


def _without_id(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_id(each) for key, each in value.items() if key != "id"}
    return [_without_id(each) for each in value] if isinstance(value, list) else value
