"""Fleet events about executions: what each kind says to people and keeps for programs. Pure."""

from __future__ import annotations

import json
from datetime import datetime
from typing import assert_never

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.progress import Label
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.bus.messages import (
    ArtifactStored,
    Event,
    ExecutionAccepted,
    ExecutionContinued,
    ExecutionFinished,
    ExecutionPaused,
    ExecutionRejected,
    ExecutionResumed,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)

_KEPT_ELSEWHERE = {"v", "agent", "execution_id", "attempt", "sequence", "at", "kind"}
"""Fields of a bus event that have a column of their own."""

MAX_SUMMARY = 500
"""Characters of a sentence for people; messages of agents can be longer."""


def happening(kind: str, execution: Execution, *, now: datetime) -> FleetEvent:
    """What the controller itself did to an execution."""
    reason = f" ({execution.reason})" if execution.reason else ""
    return FleetEvent(
        occurred_at=now,
        recorded_at=now,
        kind=kind,
        device=execution.device,
        execution_id=execution.execution_id,
        attempt=execution.attempt,
        summary=_cut(f"{execution.task_id} on {execution.device}: {execution.state}{reason}"),
        payload=json.dumps({
            "state": execution.state,
            "taskId": execution.task_id,
            "revision": execution.revision,
            "runId": execution.run_id,
            "reason": execution.reason,
        }),
    )  # fmt: skip


def reported(event: Event, label: Label, *, now: datetime) -> FleetEvent:
    """What an agent reported. What is kept beside the log is left out here: a result's steps, an artifact's content."""
    exclude: dict[str, bool | set[str]] = dict.fromkeys(_KEPT_ELSEWHERE, True)
    if isinstance(event, ExecutionFinished):
        exclude["result"] = {"steps"}
    if isinstance(event, ArtifactStored):
        exclude["data"] = True
    payload = event.model_dump_json(by_alias=True, exclude_none=True, exclude=exclude)
    if label:
        payload = json.dumps({**json.loads(payload), "label": label.value}, ensure_ascii=False)
    sentence = f"{event.agent}: {_sentence(event)}"
    return FleetEvent(
        occurred_at=event.at,
        recorded_at=now,
        kind=event.kind,
        device=event.agent,
        execution_id=event.execution_id,
        attempt=event.attempt,
        sequence=event.sequence,
        summary=_cut(f"{sentence} [{label}: not counted]" if label else sentence),
        payload=payload,
    )


def unreadable(subject: str, device: str, *, sequence: int, size: int, error: str, now: datetime) -> FleetEvent:
    """A message that cannot be read; its content is not repeated, since nobody knows what is in it."""
    return FleetEvent(
        occurred_at=now,
        recorded_at=now,
        kind="BadMessage",
        device=device,
        summary=_cut(f"message {sequence} on {subject} cannot be read: {error}"),
        payload=json.dumps({"subject": subject, "streamSequence": sequence, "sizeBytes": size, "error": error}),
    )


def _sentence(event: Event) -> str:
    match event:
        case ExecutionAccepted() | ExecutionStarted() | ExecutionResumed() | ExecutionPaused() | ExecutionContinued():
            return event.kind.removeprefix("Execution").lower()
        case ExecutionRejected():
            return f"rejected, {event.code}: {event.message}"
        case StepStarted():
            return f"step {event.step_id} started"
        case ArtifactStored():
            return f"step {event.step_id} kept {event.artifact.name} ({event.artifact.size_bytes} bytes)"
        case StepFinished():
            return f"step {event.result.id} ended, {_how(event.result.code, event.result.detail, event.result.message)}"
        case ExecutionFinished():
            return f"finished, {_how(event.result.code, event.result.detail, event.result.message)}"
        case _:
            assert_never(event)


def _how(code: str, detail: str, message: str) -> str:
    return code + (f" ({detail})" if detail else "") + (f": {message}" if message else "")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY else text[: MAX_SUMMARY - 1] + "…"
