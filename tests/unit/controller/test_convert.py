"""The door between records and protobuf: every field arrives, every enum value has its word, results lose nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from droidfleet.v1 import execution_pb2, fleet_pb2
from droidfleet_controller.api import convert, convert_fleet
from droidfleet_controller.dispatch.reading import Detailed
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_controller.store.events import FleetEvent
from droidfleet_controller.tasks.template import StoredTask
from droidfleet_shared.bus.messages import ExecutionRef
from droidfleet_shared.protocol.codes import Detail, StepCode, ValidationCode
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import ArtifactModel, BoundsModel, StepResult, TargetModel, TaskResult
from unit.controller.builders import NOW, beat, device, execution

TARGET = TargetModel(
    text="Pay",
    description="Pay now",
    resource_id="com.example:id/pay",
    class_name="android.widget.Button",
    bounds=BoundsModel(left=1, top=2, right=3, bottom=4),
)
ARTIFACT = ArtifactModel(name="dump", media_type="text/xml", sha256="f" * 64, size_bytes=7, inline="<a/>")
STEP = StepResult(
    id="pay",
    action="CLICK",
    path="/steps/0",
    iteration=1,
    successful=False,
    code=StepCode.TARGET_AMBIGUOUS,
    detail=Detail.VERIFIED,
    message="two of them",
    started_at=NOW,
    duration_ms=1_234,
    looks=2,
    dispatched=1,
    target=TARGET,
    candidates=(TARGET,),
    artifacts=(ARTIFACT,),
)
RESULT = TaskResult(
    task_id="buy",
    revision=3,
    agent_name="phone-01",
    execution_id="x-1",
    successful=True,
    code=StepCode.OK,
    detail=Detail.SEEN,
    message="done",
    failed_step_id="pay",
    failed_screen="com.example.shop/.Basket",
    acted=True,
    agent_restarts=2,
    outputs={"price": "€ 3", "rows": ["a", None, "b"]},
    steps=(STEP,),
    steps_omitted=600,
    random_seed=7,
    started_at=NOW,
    duration_ms=5_000,
)


def unset(message: Message, path: str = "") -> list[str]:
    """The fields, at any depth, that have their default value."""
    missing = []
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        where = f"{path}{field.name}"
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if field.message_type is not None and not is_map and not field.message_type.full_name.startswith("google."):
            items = list(value) if field.is_repeated else [value] * message.HasField(field.name)
            missing += [] if items else [where]
            for item in items:
                missing += unset(item, f"{where}.")
        elif not value and not (field.has_presence and message.HasField(field.name)):
            missing.append(where)
    return missing


def test_every_field_of_an_execution_and_its_result_arrives() -> None:
    record = replace(
        execution(ExecutionState.FAILED, cancel_requested=True),
        reason="TARGET_AMBIGUOUS: two of them",
        steps_done=1,
        current_step_id="pay",
        iteration=4,
        stopped_at=NOW,
        pause_requested=True,
        result=RESULT,
    )
    kept = StoredArtifact(
        execution_id="x-1",
        attempt=1,
        step_id="pay",
        path="/steps/0",
        name="dump",
        media_type="text/xml",
        sha256="f" * 64,
        size_bytes=7,
        stored_at=NOW,
    )
    detailed = convert.detailed_to_pb(Detailed(record, {"item": "tea"}, [kept]))
    # `successful` is false in a failing step, and true beside it in the result; a stored artifact is a file, no text.
    assert unset(detailed) == ["result.steps.successful", "artifacts.artifact.inline_text"]
    assert json.loads(detailed.input_values_json) == {"item": "tea"}


def test_every_field_of_a_device_arrives() -> None:
    seen = device(beat(running=ExecutionRef(execution_id="x-1", attempt=1)))
    message = convert_fleet.device_to_pb(
        seen, state=DeviceState.BUSY, backlog=3, labels={"site": "berlin"}, clock_offset_s=-3.5
    )
    assert unset(message) == []
    assert (message.name, message.serial, message.backlog, message.battery_percent, message.clock_offset_seconds) == (
        "phone-01",
        "emulator-5554",
        3,
        55,
        -3.5,
    )


def test_an_unknown_battery_is_minus_one() -> None:
    seen = device(beat().model_copy(update={"battery_percent": None}))
    message = convert_fleet.device_to_pb(seen, state=DeviceState.ONLINE, backlog=0, labels={}, clock_offset_s=None)
    assert message.battery_percent == -1
    assert not message.HasField("clock_offset_seconds")


def test_every_field_of_an_event_arrives() -> None:
    event = FleetEvent(
        event_id=7,
        occurred_at=NOW,
        recorded_at=NOW,
        kind="StepFinished",
        device="phone-01",
        execution_id="x-1",
        attempt=1,
        sequence=3,
        summary="a step ended",
        payload='{"a": 1}',
    )
    assert unset(convert.event_to_pb(event)) == []


def test_every_field_of_a_task_arrives() -> None:
    task = StoredTask(
        task_id="tea",
        revision=2,
        sha256="a" * 64,
        add_revision=True,
        step_count=3,
        bound_s=10,
        created_at=NOW,
        body="{}",
    )
    assert unset(convert.task_to_pb(task)) == []


def test_every_field_of_an_issue_arrives() -> None:
    issue = Issue("/steps/0", ValidationCode.UNKNOWN_FIELD, "tmeoutMs", "Did you mean timeoutMs?")
    [message] = convert.issues_to_pb([issue])
    assert unset(message) == []
    assert message.code == "UNKNOWN_FIELD"


def test_a_result_comes_back_as_it_was() -> None:
    assert convert.result_from_pb(convert.result_to_pb(RESULT)) == RESULT


@pytest.mark.parametrize("code", StepCode)
def test_every_code_comes_back(code: StepCode) -> None:
    step = STEP.model_copy(update={"code": code})
    assert convert.step_from_pb(convert.step_to_pb(step)) == step


@pytest.mark.parametrize("detail", Detail)
def test_every_detail_comes_back(detail: Detail) -> None:
    step = STEP.model_copy(update={"detail": detail})
    assert convert.step_from_pb(convert.step_to_pb(step)) == step


def test_what_is_absent_stays_absent() -> None:
    step = STEP.model_copy(update={"target": None, "candidates": (), "artifacts": ()})
    result = RESULT.model_copy(update={"failed_step_id": None, "random_seed": None, "outputs": {}, "steps": (step,)})
    assert convert.result_from_pb(convert.result_to_pb(result)) == result
    artifact = ARTIFACT.model_copy(update={"inline": None})
    assert convert.artifact_from_pb(convert.artifact_to_pb(artifact)) == artifact


@given(
    seed=st.integers(-(2**63), 2**63 - 1), duration=st.integers(0, 10**10), moment=st.datetimes(timezones=st.just(UTC))
)
def test_numbers_and_times_come_back(seed: int, duration: int, moment: datetime) -> None:
    result = RESULT.model_copy(update={"random_seed": seed, "duration_ms": duration, "started_at": moment})
    assert convert.result_from_pb(convert.result_to_pb(result)) == result


def _words(enum: EnumDescriptor) -> set[str]:
    return {value.name for value in enum.values if value.number != 0}


@pytest.mark.parametrize("state", ExecutionState)
def test_every_execution_state_comes_back(state: ExecutionState) -> None:
    assert convert.execution_state_from(convert.execution_state(state)) is state


@pytest.mark.parametrize("state", DeviceState)
def test_every_device_state_comes_back(state: DeviceState) -> None:
    assert convert.device_state_from(convert.device_state(state)) is state


def test_the_api_has_no_state_that_we_do_not_know() -> None:
    assert _words(execution_pb2.ExecutionState.DESCRIPTOR) == {f"EXECUTION_STATE_{state}" for state in ExecutionState}
    assert _words(fleet_pb2.DeviceState.DESCRIPTOR) == {f"DEVICE_STATE_{state}" for state in DeviceState}


@pytest.mark.parametrize("value", [0, 99])
def test_a_state_that_is_unspecified_or_of_a_newer_api_is_refused(value: int) -> None:
    with pytest.raises(ValueError):
        convert.execution_state_from(value)  # type: ignore[arg-type]  # what a newer client may send
    with pytest.raises(ValueError):
        convert.device_state_from(value)  # type: ignore[arg-type]  # what a newer client may send


def test_instants_keep_their_microseconds() -> None:
    moment = NOW + timedelta(microseconds=123_456)
    assert convert.instant(convert.timestamp(moment)) == moment
