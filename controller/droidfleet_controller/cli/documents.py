"""What programs read: each message as a plain document of the shape that docs/cli.md promises.

Field names are protocol v1's (camelCase); times are ISO 8601 in UTC, durations milliseconds, enum values bare words,
what is not known ``null``. A field once released keeps its name and meaning. Pure.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeVar

from droidfleet.v1 import execution_pb2, fleet_pb2, task_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from google.protobuf.duration_pb2 import Duration
    from google.protobuf.timestamp_pb2 import Timestamp

Document = dict[str, object]
V = TypeVar("V", bound=int)

TERMINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT", "EXPIRED", "REJECTED", "LOST"})


def word_of(name: Callable[[V], str], value: V, prefix: str) -> str:
    """The bare word of an enum's value (``name`` is its `Name`); one newer than this program as its number."""
    try:
        return name(value).removeprefix(prefix)
    except ValueError:
        return str(value)


def state_of(execution: execution_pb2.Execution) -> str:
    """The state's bare word, ``SUCCEEDED``; a state newer than this program as its number."""
    return word_of(execution_pb2.ExecutionState.Name, execution.state, "EXECUTION_STATE_")


def device_state_of(device: fleet_pb2.Device) -> str:
    """The state's bare word, ``PHONE_OFFLINE``."""
    return word_of(fleet_pb2.DeviceState.Name, device.state, "DEVICE_STATE_")


def device_document(device: fleet_pb2.Device) -> Document:
    """A device."""
    return {
        "name": device.name,
        "state": device_state_of(device),
        "serial": device.serial,
        "model": device.model,
        "androidVersion": device.android_version,
        "agentVersion": device.agent_version,
        "host": device.host,
        "batteryPercent": device.battery_percent if device.battery_percent >= 0 else None,
        "foregroundPackage": device.foreground_package or None,
        "runningExecutionId": device.running_execution_id or None,
        "backlog": device.backlog,
        "lastSeenAt": time_of(device.last_seen_at),
        "clockOffsetMs": round(device.clock_offset_seconds * 1000) if device.HasField("clock_offset_seconds") else None,
        "capabilities": list(device.capabilities),
        "labels": dict(sorted(device.labels.items())),
    }


def event_document(event: fleet_pb2.FleetEvent) -> Document:
    """A fleet event with its payload as an object."""
    return {
        "eventId": event.event_id,
        "occurredAt": time_of(event.occurred_at),
        "kind": event.kind,
        "device": event.device or None,
        "executionId": event.execution_id or None,
        "attempt": event.attempt or None,
        "summary": event.summary,
        "payload": object_of(event.payload_json),
    }


def task_document(task: task_pb2.TaskTemplate) -> Document:
    """A stored task; ``documentJson`` holds its text exactly as it was saved, ``null`` in lists."""
    return {
        "taskId": task.task_id,
        "revision": task.revision,
        "stepCount": task.step_count,
        "sha256": task.sha256,
        "createdAt": time_of(task.created_at),
        "documentJson": task.document_json or None,
    }


class IssueLike(Protocol):
    """A validation issue, the validator's own or the API's."""

    @property
    def path(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str: ...


def issue_documents(issues: Iterable[IssueLike]) -> list[Document]:
    """Validation issues, in document order."""
    return [
        {"path": issue.path, "code": str(issue.code), "message": issue.message, "hint": issue.hint or None}
        for issue in issues
    ]


def execution_document(execution: execution_pb2.Execution) -> Document:
    """An execution; ``result`` is the protocol's TaskResult, ``null`` until it was reported."""
    return {
        "executionId": execution.execution_id,
        "runId": execution.run_id,
        "device": execution.device,
        "taskId": execution.task_id,
        "revision": execution.revision,
        "state": state_of(execution),
        "attempt": execution.attempt,
        "stepsDone": execution.steps_done,
        "stepCount": execution.step_count,
        "currentStepId": execution.current_step_id or None,
        "iteration": execution.iteration,
        "cancelRequested": execution.cancel_requested,
        "pauseRequested": execution.pause_requested,
        "reason": execution.reason or None,
        "createdAt": time_of(execution.created_at),
        "updatedAt": time_of(execution.updated_at),
        "expiresAt": time_of(execution.expires_at),
        "version": execution.version,
        "priority": execution.priority,
        "tryNumber": execution.try_number,
        "stoppedAt": time_of(execution.stopped_at),
        "inputValues": values_of(execution),
        "artifacts": [stored_artifact_document(artifact) for artifact in execution.artifacts],
        "result": result_document(execution.result) if execution.HasField("result") else None,
    }


def result_document(result: execution_pb2.TaskResult) -> Document:
    """A task's result (protocol section 3)."""
    return {
        "taskId": result.task_id,
        "revision": result.revision,
        "agentName": result.agent_name,
        "executionId": result.execution_id,
        "successful": result.successful,
        "code": result.code,
        "detail": result.detail,
        "message": result.message,
        "failedStepId": result.failed_step_id or None,
        "failedScreen": result.failed_screen,
        "acted": result.acted if result.HasField("acted") else None,
        "outputs": outputs_of(result),
        "steps": [_step(step) for step in result.steps],
        "stepsOmitted": result.steps_omitted,
        "agentRestarts": result.agent_restarts,
        "randomSeed": result.random_seed if result.HasField("random_seed") else None,
        "startedAt": time_of(result.started_at),
        "durationMs": milliseconds(result.duration),
    }


def stored_artifact_document(stored: execution_pb2.StoredArtifact) -> Document:
    """An artifact of an execution, as the controller has it."""
    artifact = stored.artifact
    return {
        "name": artifact.name,
        "mediaType": artifact.media_type,
        "sha256": artifact.sha256,
        "sizeBytes": artifact.size_bytes,
        "attempt": stored.attempt,
        "stepId": stored.step_id,
        "path": stored.path,
        "storedAt": time_of(stored.stored_at),
        "available": stored.available,
    }


def values_of(execution: execution_pb2.Execution) -> Mapping[str, object]:
    """The values that it was run with, by input; secrets are hidden. Known in GetExecution only."""
    return object_of(execution.input_values_json)


def outputs_of(result: execution_pb2.TaskResult) -> Mapping[str, object]:
    """What the task extracted, by output field."""
    return object_of(result.outputs_json)


def milliseconds(duration: Duration) -> int:
    """A duration in whole milliseconds."""
    return duration.ToMilliseconds()


def instant(timestamp: Timestamp) -> datetime | None:
    """A timestamp as an aware UTC datetime; ``None`` when it was not set."""
    return timestamp.ToDatetime(tzinfo=UTC) if timestamp.seconds or timestamp.nanos else None


def _step(step: execution_pb2.StepResult) -> Document:
    return {
        "id": step.id,
        "action": step.action,
        "path": step.path,
        "iteration": step.iteration,
        "successful": step.successful,
        "code": step.code,
        "detail": step.detail,
        "message": step.message,
        "startedAt": time_of(step.started_at),
        "durationMs": milliseconds(step.duration),
        "looks": step.looks,
        "dispatched": step.dispatched,
        "target": _target(step.target) if step.HasField("target") else None,
        "candidates": [_target(candidate) for candidate in step.candidates],
        "artifacts": [_artifact(artifact) for artifact in step.artifacts],
    }


def _target(target: execution_pb2.Target) -> Document:
    bounds = target.bounds
    return {
        "text": target.text,
        "description": target.description,
        "resourceId": target.resource_id,
        "className": target.class_name,
        "bounds": {"left": bounds.left, "top": bounds.top, "right": bounds.right, "bottom": bounds.bottom},
    }


def _artifact(artifact: execution_pb2.Artifact) -> Document:
    return {
        "name": artifact.name,
        "mediaType": artifact.media_type,
        "sha256": artifact.sha256,
        "sizeBytes": artifact.size_bytes,
        "inline": artifact.inline_text or None,
    }


def time_of(timestamp: Timestamp) -> str | None:
    """ISO 8601 with milliseconds in UTC; an unset timestamp is not the year 1970."""
    at = instant(timestamp)
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def object_of(text: str) -> Mapping[str, object]:
    """JSON text of an object; what is not one (a newer controller's choice) becomes empty."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
