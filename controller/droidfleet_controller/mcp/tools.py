"""Which tools a client is told of: the designer's own on a leased phone, and the fleet's. Pure, but for a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import JsonValue

from droidfleet_controller.mcp import arguments as given
from droidfleet_designer.model.port import ToolSpec
from droidfleet_designer.observation.quoting import FROM_THE_SCREEN
from droidfleet_designer.tools import catalogue
from droidfleet_designer.tools.arguments import Arguments

LEASE = "lease"
_LEASE_FIELD: dict[str, JsonValue] = {"type": "string", "description": "The id that lease_device returned."}

_ON_NO_PHONE = ("list_devices", "list_groups")

OWN: Mapping[str, type[Arguments]] = {
    "lease_device": given.LeaseDevice,
    "release_device": given.ReleaseDevice,
    "tree": given.Tree,
    "screenshot": given.Screenshot,
    "validate_task": given.ValidateTask,
    "run_task": given.RunTask,
    "list_tasks": given.ListTasks,
    "get_task": given.GetTask,
    "list_executions": given.ListExecutions,
    "get_execution": given.GetExecution,
    "protocol_reference": given.ProtocolReference,
}
"""The fleet's tools. There are none for schedules and rollouts: what goes to many phones is a person's to begin."""

ACTING = frozenset({"open_app", "stop_app", "tap", "long_press", "type_text", "press_key", "back", "scroll", "swipe"})
"""Tools that make a phone do something."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. ``leased``: it works a phone under a lease; ``acts``: it makes a phone do something."""

    spec: ToolSpec
    leased: bool
    acts: bool


@cache
def tools() -> Mapping[str, Tool]:
    """All tools, by name."""
    made: dict[str, Tool] = {}
    for name, model in OWN.items():
        made[name] = Tool(_own(name, model), leased=False, acts=name == "run_task")
    for spec in catalogue.specs("en", allow_points=False):
        if spec.name == catalogue.SUBMIT:
            continue
        leased = spec.name not in _ON_NO_PHONE
        made[spec.name] = Tool(_leased(spec) if leased else spec, leased=leased, acts=spec.name in ACTING)
    return made


def _leased(spec: ToolSpec) -> ToolSpec:
    parameters = dict(spec.parameters)
    properties, required = parameters.get("properties"), parameters.get("required", [])
    assert isinstance(properties, dict)  # the catalogue writes it so
    assert isinstance(required, list)
    parameters["properties"] = {LEASE: _LEASE_FIELD, **properties}
    parameters["required"] = [LEASE, *required]
    return ToolSpec(spec.name, f"{spec.description} {FROM_THE_SCREEN}", parameters)


def _own(name: str, model: type[Arguments]) -> ToolSpec:
    text = _words()[name]
    described = dict(re.findall(r"^- `(\w+)`: (.+)$", text, re.MULTILINE))
    return ToolSpec(name, text.partition("\n\n- `")[0].strip(), catalogue.parameters_of(model, described))


@cache
def _words() -> Mapping[str, str]:
    text = (files("droidfleet_controller.mcp") / "tools.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^# (\w+)\n(.*?)(?=^# |\Z)", text, re.MULTILINE | re.DOTALL))


def names() -> Sequence[str]:
    """Their names, as they are listed."""
    return tuple(tools())
