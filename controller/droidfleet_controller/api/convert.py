"""Between records and protobuf messages, both ways; the one place that knows both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Protocol

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from droidfleet.v1 import execution_pb2, fleet_pb2, task_pb2
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.reading import Detailed
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_controller.store.events import FleetEvent
from droidfleet_controller.tasks.template import StoredTask
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import ArtifactModel, BoundsModel, StepResult, TargetModel, TaskResult


def timestamp(instant: datetime) -> Timestamp:
    """An instant."""
    message = Timestamp()
    message.FromDatetime(instant)
    return message


def instant(message: Timestamp) -> datetime:
    """An instant, aware UTC."""
    return message.ToDatetime(tzinfo=UTC)


def _duration(milliseconds: int) -> Duration:
    message = Duration()
    message.FromMilliseconds(milliseconds)
    return message


# Enums: the API's words are ours with a prefix.


def execution_state(state: ExecutionState) -> execution_pb2.ExecutionState.ValueType:
    """A state as the API spells it."""
    return execution_pb2.ExecutionState.Value(f"EXECUTION_STATE_{state.value}")


def execution_state_from(value: execution_pb2.ExecutionState.ValueType) -> ExecutionState:
    """A state of the API.

    Raises:
        ValueError: unspecified, or of a newer API.
    """
    return ExecutionState(execution_pb2.ExecutionState.Name(value).removeprefix("EXECUTION_STATE_"))


def device_state(state: DeviceState) -> fleet_pb2.DeviceState.ValueType:
    """A state as the API spells it."""
    return fleet_pb2.DeviceState.Value(f"DEVICE_STATE_{state.value}")


def device_state_from(value: fleet_pb2.DeviceState.ValueType) -> DeviceState:
    """A state of the API.

    Raises:
        ValueError: unspecified, or of a newer API.
    """
    return DeviceState(fleet_pb2.DeviceState.Name(value).removeprefix("DEVICE_STATE_"))


# Fleet.


def event_to_pb(event: FleetEvent) -> fleet_pb2.FleetEvent:
    """A stored event."""
    return fleet_pb2.FleetEvent(
        event_id=event.event_id,
        occurred_at=timestamp(event.occurred_at),
        kind=event.kind,
        device=event.device,
        execution_id=event.execution_id,
        attempt=event.attempt,
        summary=event.summary,
        payload_json=event.payload,
    )


# Tasks.


def task_to_pb(task: StoredTask) -> task_pb2.TaskTemplate:
    """A stored task."""
    return task_pb2.TaskTemplate(
        task_id=task.task_id,
        revision=task.revision,
        document_json=task.body,
        sha256=task.sha256,
        step_count=task.step_count,
        created_at=timestamp(task.created_at),
    )


class IssueLike(Protocol):
    """An issue of a document, whoever found it."""

    @property
    def path(self) -> str: ...
    @property
    def code(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str: ...


def issues_to_pb(issues: Iterable[IssueLike]) -> list[task_pb2.ValidationIssue]:
    """What validation found."""
    return [
        task_pb2.ValidationIssue(path=issue.path, code=issue.code, message=issue.message, hint=issue.hint)
        for issue in issues
    ]


# Executions.


def execution_to_pb(execution: Execution) -> execution_pb2.Execution:
    """An execution, with its result where it has one."""
    message = execution_pb2.Execution(
        execution_id=execution.execution_id,
        device=execution.device,
        task_id=execution.task_id,
        revision=execution.revision,
        state=execution_state(execution.state),
        attempt=execution.attempt,
        steps_done=execution.steps_done,
        step_count=execution.step_count,
        current_step_id=execution.current_step_id,
        cancel_requested=execution.cancel_requested,
        reason=execution.reason,
        created_at=timestamp(execution.created_at),
        updated_at=timestamp(execution.updated_at),
        expires_at=timestamp(execution.expires_at),
        run_id=execution.run_id,
        version=execution.version,
        iteration=execution.iteration,
        priority=execution.priority,
        try_number=execution.try_number,
        pause_requested=execution.pause_requested,
        stopped_at=None if execution.stopped_at is None else timestamp(execution.stopped_at),
    )
    if execution.result is not None:
        message.result.CopyFrom(result_to_pb(execution.result))
    return message


def detailed_to_pb(detailed: Detailed) -> execution_pb2.Execution:
    """An execution with its values and artifacts."""
    message = execution_to_pb(detailed.execution)
    message.input_values_json = json.dumps(detailed.values, ensure_ascii=False)
    message.artifacts.extend(stored_artifact_to_pb(artifact) for artifact in detailed.artifacts)
    return message


def stored_artifact_to_pb(artifact: StoredArtifact) -> execution_pb2.StoredArtifact:
    """An artifact that the controller has."""
    return execution_pb2.StoredArtifact(
        artifact=execution_pb2.Artifact(
            name=artifact.name,
            media_type=artifact.media_type,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
        ),
        attempt=artifact.attempt,
        step_id=artifact.step_id,
        path=artifact.path,
        stored_at=timestamp(artifact.stored_at),
        available=artifact.available,
    )


def result_to_pb(result: TaskResult) -> execution_pb2.TaskResult:
    """A result with its steps."""
    return execution_pb2.TaskResult(
        task_id=result.task_id,
        revision=result.revision,
        agent_name=result.agent_name,
        execution_id=result.execution_id,
        successful=result.successful,
        code=result.code,
        detail=result.detail,
        message=result.message,
        failed_step_id=result.failed_step_id or "",
        outputs_json=json.dumps(result.outputs, ensure_ascii=False),
        steps=[step_to_pb(step) for step in result.steps],
        steps_omitted=result.steps_omitted,
        random_seed=result.random_seed,
        started_at=timestamp(result.started_at),
        duration=_duration(result.duration_ms),
        failed_screen=result.failed_screen,
        acted=result.acted,
        agent_restarts=result.agent_restarts,
    )


def result_from_pb(message: execution_pb2.TaskResult) -> TaskResult:
    """A result as it was reported."""
    return TaskResult(
        task_id=message.task_id,
        revision=message.revision,
        agent_name=message.agent_name,
        execution_id=message.execution_id,
        successful=message.successful,
        code=StepCode(message.code),
        detail=Detail(message.detail),
        message=message.message,
        failed_step_id=message.failed_step_id or None,
        outputs=json.loads(message.outputs_json or "{}"),
        steps=tuple(step_from_pb(step) for step in message.steps),
        steps_omitted=message.steps_omitted,
        random_seed=message.random_seed if message.HasField("random_seed") else None,
        started_at=instant(message.started_at),
        duration_ms=message.duration.ToMilliseconds(),
        failed_screen=message.failed_screen,
        acted=message.acted if message.HasField("acted") else None,
        agent_restarts=message.agent_restarts,
    )


def step_to_pb(step: StepResult) -> execution_pb2.StepResult:
    """A step's result."""
    return execution_pb2.StepResult(
        id=step.id,
        action=step.action,
        path=step.path,
        iteration=step.iteration,
        successful=step.successful,
        code=step.code,
        detail=step.detail,
        message=step.message,
        started_at=timestamp(step.started_at),
        duration=_duration(step.duration_ms),
        looks=step.looks,
        dispatched=step.dispatched,
        target=None if step.target is None else target_to_pb(step.target),
        candidates=[target_to_pb(candidate) for candidate in step.candidates],
        artifacts=[artifact_to_pb(artifact) for artifact in step.artifacts],
    )


def step_from_pb(message: execution_pb2.StepResult) -> StepResult:
    """A step's result."""
    return StepResult(
        id=message.id,
        action=message.action,
        path=message.path,
        iteration=message.iteration,
        successful=message.successful,
        code=StepCode(message.code),
        detail=Detail(message.detail),
        message=message.message,
        started_at=instant(message.started_at),
        duration_ms=message.duration.ToMilliseconds(),
        looks=message.looks,
        dispatched=message.dispatched,
        target=target_from_pb(message.target) if message.HasField("target") else None,
        candidates=tuple(target_from_pb(candidate) for candidate in message.candidates),
        artifacts=tuple(artifact_from_pb(artifact) for artifact in message.artifacts),
    )


def target_to_pb(target: TargetModel) -> execution_pb2.Target:
    """A node as it was seen."""
    bounds = target.bounds
    return execution_pb2.Target(
        text=target.text,
        description=target.description,
        resource_id=target.resource_id,
        class_name=target.class_name,
        bounds=execution_pb2.Bounds(left=bounds.left, top=bounds.top, right=bounds.right, bottom=bounds.bottom),
    )


def target_from_pb(message: execution_pb2.Target) -> TargetModel:
    """A node as it was seen."""
    bounds = message.bounds
    return TargetModel(
        text=message.text,
        description=message.description,
        resource_id=message.resource_id,
        class_name=message.class_name,
        bounds=BoundsModel(left=bounds.left, top=bounds.top, right=bounds.right, bottom=bounds.bottom),
    )


def artifact_to_pb(artifact: ArtifactModel) -> execution_pb2.Artifact:
    """Something kept beside a result."""
    return execution_pb2.Artifact(
        name=artifact.name,
        media_type=artifact.media_type,
        sha256=artifact.sha256,
        size_bytes=artifact.size_bytes,
        inline_text=artifact.inline or "",
    )


def artifact_from_pb(message: execution_pb2.Artifact) -> ArtifactModel:
    """Something kept beside a result."""
    return ArtifactModel(
        name=message.name,
        media_type=message.media_type,
        sha256=message.sha256,
        size_bytes=message.size_bytes,
        inline=message.inline_text or None,
    )
