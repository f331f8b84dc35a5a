"""Tasks, assignments and documents for tests of agents."""

from __future__ import annotations

import json
from collections.abc import Sequence

from droidfleet_shared.bus.messages import Assignment, DesiredState, ExecutionRef, Wanted

AGENT = "phone-01"

WAIT_FOR_NOTHING: dict[str, object] = {
    "id": "wait",
    "action": "WAIT",
    "selector": {"text": "never there"},
    "timeoutMs": 30_000,
}
TAP_TEA: dict[str, object] = {"id": "tea", "action": "CLICK", "selector": {"text": "Tea"}}
SEE_SHOP: dict[str, object] = {"id": "shop", "action": "WAIT", "selector": {"text": "Shop"}}


def task_text(*steps: dict[str, object], agent: str = AGENT, task_id: str = "task", **fields: object) -> str:
    """A task document with further ``fields``; without steps one that succeeds on the home page of `support.shop`."""
    body = {"schemaVersion": 1, "taskId": task_id, "assignedAgentName": agent, "steps": list(steps) or [SEE_SHOP]}
    return json.dumps(body | fields)


def assignment(
    execution_id: str,
    *,
    attempt: int = 1,
    wanted: Wanted = Wanted.RUN,
    reason: str = "",
    task: str | None = None,
    start_within_s: float | None = None,
) -> Assignment:
    """An assigned execution."""
    return Assignment(
        execution_id=execution_id,
        attempt=attempt,
        wanted=wanted,
        reason=reason,
        task=task_text() if task is None else task,
        start_within_s=start_within_s,
    )


def document(
    generation: int,
    *assignments: Assignment,
    recorded: Sequence[ExecutionRef] = (),
    agent: str = AGENT,
    epoch: str = "",
    host_id: str = "",
) -> DesiredState:
    """A desired-state document."""
    return DesiredState(
        agent=agent,
        epoch=epoch,
        generation=generation,
        host_id=host_id,
        executions=assignments,
        recorded=tuple(recorded),
    )


def ref(execution_id: str, attempt: int = 1) -> ExecutionRef:
    """The name of an attempt."""
    return ExecutionRef(execution_id=execution_id, attempt=attempt)
