"""Steps of a tree, in short; the conditions are those of the shop."""

from __future__ import annotations

from collections.abc import Mapping

from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.result import TaskResult

Json = Mapping[str, object]

BACK: Json = {"action": "BACK"}
SHOWN: Json = {"visible": {"text": "Shop"}}
NOT_SHOWN: Json = {"visible": {"text": "Never"}}
FAILS: Json = {"action": "CLICK", "selector": {"text": "Never"}, "timeoutMs": 100}
AMBIGUOUS: Json = {"action": "CLICK", "selector": {"text": "Delete"}}


def back(name: str, **more: object) -> Json:
    """A step that leaves a trace and needs no screen."""
    return {"id": name, **BACK, **more}


def fails(name: str, **more: object) -> Json:
    """A step that fails in a way that may be passed over."""
    return {"id": name, **FAILS, **more}


def group(name: str, *steps: Json, **more: object) -> Json:
    return {"id": name, "action": "GROUP", "steps": list(steps), **more}


def repeat(name: str, *steps: Json, **more: object) -> Json:
    return {"id": name, "action": "REPEAT", "steps": list(steps), **more}


def if_(name: str, condition: Json, then: list[Json], otherwise: list[Json] | None = None, **more: object) -> Json:
    alternative = {} if otherwise is None else {"else": otherwise}
    return {"id": name, "action": "IF", "condition": condition, "then": then, **alternative, **more}


def branch(name: str, condition: Json, goto: str, **more: object) -> Json:
    return {"id": name, "action": "BRANCH", "condition": condition, "goto": goto, **more}


def ran(task: TaskResult) -> list[str]:
    """The ids of the steps in the order in which they ended."""
    return [step.id for step in task.steps]


def details(task: TaskResult) -> dict[str, Detail]:
    return {step.id: step.detail for step in task.steps}
