"""RunTask: all or none, once for one request id, in order behind what waits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from droidfleet_controller.dispatch.reading import LEFT, waiting_reason
from droidfleet_controller.dispatch.runs import TaskRef
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_shared.bus.messages import WINDOW, ExecutionRef, PhoneState
from droidfleet_shared.errors import ConflictError, DroidfleetError, InvalidInputError, NotFoundError
from droidfleet_shared.protocol.validate import validate_task
from support.controller import document
from unit.controller.builders import beat
from unit.controller.dispatching import HEARTBEAT_S, dispatching
from unit.controller.said import accepted, started

S = ExecutionState


async def test_one_execution_for_each_device_in_the_order_asked(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b", "c") as dispatch:
        begun = await dispatch.run("c", "a", "b")
        assert [each.device for each in begun.executions] == ["c", "a", "b"]
        assert {each.state for each in begun.executions} == {S.ASSIGNED}
        assert {each.run_id for each in begun.executions} == {begun.run_id}
        task = validate_task(dispatch.document("a").executions[0].task).require()
        assert task.assigned_agent_name == "a"


async def test_what_does_not_fit_into_the_window_waits_in_order(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [(await dispatch.run("phone-01")).executions[0].execution_id for _ in range(WINDOW + 2)]
        states = [(await dispatch.get(execution_id)).state for execution_id in ids]
        assert states == [S.ASSIGNED] * WINDOW + [S.QUEUED] * 2
        assert [each.execution_id for each in dispatch.document().executions] == ids[:WINDOW]
        assert (await dispatch.get(ids[-1])).reason.startswith("QUEUED_BEHIND: ")


async def test_unknown_devices_are_all_named_and_nothing_is_created(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "phone-01", "phone-02") as dispatch:
        with pytest.raises(NotFoundError) as caught:
            await dispatch.run("phone-01", "phone-03", "fone-02")
        assert caught.value.code == "DEVICE_NOT_FOUND"
        assert "'phone-03', 'fone-02'" in caught.value.message
        assert "'phone-02'" in caught.value.hint
        assert await dispatch.all() == []
        assert dispatch.publisher.submitted == []


async def test_an_unknown_device_of_an_empty_fleet_hints_at_starting_an_agent(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(NotFoundError) as caught:
            await dispatch.run("zebra")
        assert caught.value.hint == "List the devices with: droidfleet devices"


async def test_the_same_request_has_the_same_answer(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        first = await dispatch.run("a", "b", request_id="req-1")
        second = await dispatch.run("a", "b", request_id="req-1")
        assert second.run_id == first.run_id
        assert [each.execution_id for each in second.executions] == [each.execution_id for each in first.executions]
        assert len(await dispatch.all()) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("a",)},
        {"names": ("b", "a")},
        {"text": document("coffee")},
        {"expires_in": timedelta(hours=2)},
    ],
)
async def test_the_same_request_id_for_another_call_is_a_conflict(tmp_path: Path, change: dict[str, object]) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        await dispatch.run("a", "b", request_id="req-1")
        names = change.pop("names", ("a", "b"))
        with pytest.raises(ConflictError) as caught:
            await dispatch.run(*names, request_id="req-1", **change)  # type: ignore[arg-type, misc]  # cases
        assert caught.value.code == "REQUEST_ID_REUSED"


async def test_calls_without_a_request_id_are_all_new(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        assert (await dispatch.run("phone-01")).run_id != (await dispatch.run("phone-01")).run_id


async def test_a_document_runs_on_the_agent_that_it_names(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        begun = await dispatch.run(text=document(agent="phone-01"))
        assert [each.device for each in begun.executions] == ["phone-01"]
        assert dispatch.document().executions[0].task == document(agent="phone-01")
        assert (await dispatch.run("phone-01", text=document(agent="phone-01"))).executions


async def test_a_document_that_names_another_agent_is_refused(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        for names in (("b",), ("a", "b")):
            with pytest.raises(InvalidInputError) as caught:
                await dispatch.run(*names, text=document(agent="a"))
            assert caught.value.code == "DEVICE_CONFLICT"


@pytest.mark.parametrize(
    ("names", "code"),
    [((), "BAD_DEVICES"), (("a", "a"), "BAD_DEVICES"), (("",), "DEVICE_NOT_FOUND")],
)
async def test_devices_that_cannot_be_are_refused(tmp_path: Path, names: tuple[str, ...], code: str) -> None:
    async with dispatching(tmp_path, "a") as dispatch:
        with pytest.raises(DroidfleetError) as caught:
            await dispatch.run(*names)
        assert caught.value.code == code


@pytest.mark.parametrize("expires_in", [timedelta(0), timedelta(seconds=-1), timedelta(days=400)])
async def test_an_expiry_that_cannot_be_is_refused(tmp_path: Path, expires_in: timedelta) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(InvalidInputError) as caught:
            await dispatch.run("phone-01", expires_in=expires_in)
        assert caught.value.code == "BAD_EXPIRY"


async def test_an_invalid_document_is_refused_with_all_its_issues(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(InvalidInputError) as caught:
            await dispatch.run("phone-01", text='{"schemaVersion": 2, "taskId": "", "steps": [], "x": 1}')
        assert caught.value.code == "INVALID_TASK"
        assert len(caught.value.issues) >= 4


async def test_a_stored_task_runs_with_the_revision_that_the_library_gave(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(document(steps=1), actor="test")
        await dispatch.library.save(document(steps=2), actor="test")
        begun = await dispatch.run("phone-01", text=TaskRef(task_id="tea"))
        assert begun.executions[0].revision == 2
        task = validate_task(dispatch.document().executions[0].task).require()
        assert (task.revision, len(task.steps)) == (2, 2)
        older = await dispatch.run("phone-01", text=TaskRef(task_id="tea", revision=1))
        assert older.executions[0].revision == 1


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        (TaskRef(task_id="tee"), "Did you mean 'tea'?"),
        (TaskRef(task_id="tea", revision=7), "The newest is 1."),
        (TaskRef(task_id="quite different"), "List the stored tasks with: droidfleet task list"),
    ],
)
async def test_a_task_that_is_not_stored_is_not_found(tmp_path: Path, reference: TaskRef, hint: str) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.library.save(document(), actor="test")
        with pytest.raises(NotFoundError) as caught:
            await dispatch.run("phone-01", text=reference)
        assert (caught.value.code, caught.value.hint) == ("TASK_NOT_FOUND", hint)


async def test_every_execution_has_its_event(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "a", "b") as dispatch:
        begun = await dispatch.run("a", "b")
        created = [event for event in await dispatch.log() if event.kind == "ExecutionCreated"]
        assert [event.execution_id for event in created] == [each.execution_id for each in begun.executions]


async def test_an_offline_device_is_accepted_and_its_execution_says_why_it_waits(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        dispatch.clock.advance(3 * HEARTBEAT_S)
        begun = await dispatch.run("phone-01")
        found = await dispatch.get(begun.executions[0].execution_id)
        assert found.state is S.ASSIGNED
        assert found.reason.startswith("DEVICE_OFFLINE: ")


async def test_with_the_broker_down_an_execution_is_accepted_and_says_so(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        dispatch.bus.disconnect()
        begun = await dispatch.run("phone-01")
        found = await dispatch.get(begun.executions[0].execution_id)
        assert found.state is S.ASSIGNED
        assert found.reason.startswith("BROKER_UNAVAILABLE: ")


async def test_a_phone_that_is_unplugged_is_the_reason_of_waiting(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.heard(beat(phone=PhoneState.OFFLINE))
        begun = await dispatch.run("phone-01")
        found = await dispatch.get(begun.executions[0].execution_id)
        assert found.reason.startswith("PHONE_OFFLINE: ")


async def test_what_an_agent_left_as_it_ended_says_who_goes_on_with_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        execution_id = (await dispatch.run("phone-01")).executions[0].execution_id
        await dispatch.deliver(accepted(execution_id), started(execution_id))
        running = ExecutionRef(execution_id=execution_id, attempt=1)
        await dispatch.heard(beat(running=running))
        assert (await dispatch.get(execution_id)).reason == ""
        await dispatch.heard(beat(running=running).model_copy(update={"leaving": True}))
        found = await dispatch.get(execution_id)
        assert (found.state, found.reason) == (S.RUNNING, LEFT)
        await dispatch.heard(beat())
        assert (await dispatch.get(execution_id)).reason == ""


def test_an_execution_that_should_start_right_away_has_no_reason_to_wait() -> None:
    assert waiting_reason(S.ASSIGNED, device=DeviceState.ONLINE, broker=True) == ""


async def test_a_recorded_reason_is_kept(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        begun = await dispatch.run("phone-01")
        dispatch.bus.disconnect()
        assert dispatch.reading.explained(replace(begun.executions[0], reason="why")).reason == "why"
