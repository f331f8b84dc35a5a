"""Tasks through the real API, database and broker to scripted agents and back."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import execution_pb2, fleet_pb2, task_pb2
from droidfleet_shared.bus.messages import Wanted
from droidfleet_shared.protocol.codes import StepCode
from support.controller import CALL_S, Api, document, running_controller, scripted_agent

pytestmark = pytest.mark.integration


async def watched(api: Api, request: execution_pb2.WatchExecutionsRequest) -> list[execution_pb2.Execution]:
    """All versions that a watch sends, to its end."""
    return [item.execution async for item in api.executions.WatchExecutions(request, timeout=CALL_S)]


async def test_a_document_reaches_the_agent_and_its_result_comes_back(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        begun = await api.run(document(), "phone-01")
        execution_id = begun.executions[0].execution_id
        await agent.run(execution_id)
        ended = await api.until_state(execution_id, "SUCCEEDED")
        assert [step.id for step in ended.result.steps] == ["back-0", "back-1"]
        assert ended.result.successful
        await agent.until_recorded(execution_id)
        kinds = [event.kind for event in await api.events(execution_id=execution_id)]
        assert kinds == [
            "ExecutionCreated",
            "ExecutionAccepted",
            "ExecutionStarted",
            *["StepStarted", "StepFinished"] * 2,
            "ExecutionFinished",
        ]


async def test_a_watch_follows_a_run_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data") as api,
        scripted_agent(api.nats, "a") as first,
        scripted_agent(api.nats, "b") as second,
    ):
        begun = await api.run(document(), "a", "b")
        request = execution_pb2.WatchExecutionsRequest(run_id=begun.run_id)
        seen: dict[str, list[int]] = {"a": [], "b": []}
        async for item in api.executions.WatchExecutions(request, timeout=CALL_S):
            seen[item.execution.device].append(item.execution.version)
            if all(seen.values()) and sum(map(len, seen.values())) == 2:
                await first.run(begun.executions[0].execution_id)
                await second.run(begun.executions[1].execution_id)
        assert all(versions == sorted(set(versions)) for versions in seen.values())
        ended = await watched(api, request)
        assert [each.state for each in ended] == [execution_pb2.EXECUTION_STATE_SUCCEEDED] * 2
        assert all(len(each.result.steps) == 2 for each in ended)


async def test_a_running_execution_is_cancelled_through_its_agent(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.assigned(execution_id)
        await agent.accept(execution_id)
        await agent.start(execution_id)
        await api.until_state(execution_id, "RUNNING")
        request = execution_pb2.CancelExecutionRequest(execution_id=execution_id, reason="wrong task")
        asked = (await api.executions.CancelExecution(request, timeout=CALL_S)).execution
        assert asked.cancel_requested
        await agent.assigned(execution_id, wanted=Wanted.CANCEL)
        await agent.finish(execution_id, code=StepCode.CANCELLED)
        await api.until_state(execution_id, "CANCELLED")


async def test_lists_come_in_pages_newest_first(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01"):
        ids = [(await api.run(document(), "phone-01")).executions[0].execution_id for _ in range(5)]
        found: list[str] = []
        token = ""
        while True:
            request = execution_pb2.ListExecutionsRequest(page_size=2, page_token=token, device="phone-01")
            page = await api.executions.ListExecutions(request, timeout=CALL_S)
            found += [each.execution_id for each in page.executions]
            token = page.next_page_token
            if not token:
                break
        assert found == list(reversed(ids))
        queued = execution_pb2.ListExecutionsRequest(states=[execution_pb2.EXECUTION_STATE_QUEUED])
        assert len((await api.executions.ListExecutions(queued, timeout=CALL_S)).executions) == 1


async def test_tasks_are_validated_saved_listed_and_run(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        checked = await api.tasks.ValidateTask(task_pb2.ValidateTaskRequest(document_json="{"), timeout=CALL_S)
        assert not checked.valid
        assert [issue.code for issue in checked.errors] == ["BAD_JSON"]
        saved = await api.tasks.SaveTask(task_pb2.SaveTaskRequest(document_json=document()), timeout=CALL_S)
        assert (saved.created, saved.task.revision, saved.task.document_json) == (True, 1, document())
        listed = await api.tasks.ListTasks(task_pb2.ListTasksRequest(), timeout=CALL_S)
        assert [(task.task_id, task.document_json) for task in listed.tasks] == [("tea", "")]
        got = await api.tasks.GetTask(task_pb2.GetTaskRequest(task_id="tea"), timeout=CALL_S)
        assert got.task.document_json == document()
        execution_id = (await api.run("", "phone-01", ref=("tea", 0))).executions[0].execution_id
        await agent.run(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")


async def test_devices_are_listed_with_their_state(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data") as api,
        scripted_agent(api.nats, "a"),
        scripted_agent(api.nats, "b"),
    ):
        await api.run(document(), "a")
        first = await api.fleet.ListDevices(fleet_pb2.ListDevicesRequest(page_size=1), timeout=CALL_S)
        rest = await api.fleet.ListDevices(
            fleet_pb2.ListDevicesRequest(page_size=1, page_token=first.next_page_token), timeout=CALL_S
        )
        assert [(device.name, device.backlog) for device in (*first.devices, *rest.devices)] == [("a", 1), ("b", 0)]
        assert rest.next_page_token == ""
        assert first.devices[0].state == fleet_pb2.DEVICE_STATE_ONLINE


async def test_events_are_followed_as_they_happen(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        request = fleet_pb2.WatchEventsRequest(after_event_id=-1, follow=True)
        stream = api.fleet.WatchEvents(request, timeout=CALL_S)
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.run(execution_id)
        kinds: list[str] = []
        async for item in stream:
            kinds.append(item.event.kind)
            if item.event.kind == "ExecutionFinished":
                break
        assert kinds[-1] == "ExecutionFinished"
        assert "StepStarted" in kinds


async def test_an_error_bears_its_code_hint_and_issues(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await api.run(document(), "phone-01")
        metadata = dict(caught.value.trailing_metadata())
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        assert caught.value.details() == "DEVICE_NOT_FOUND: unknown device: 'phone-01'."
        assert metadata["droidfleet-code"] == "DEVICE_NOT_FOUND"
        assert metadata["droidfleet-hint"] == "No agent has ever reported. Start one: droidfleet-agent supervise"
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await api.run('{"schemaVersion": 1, "schemaVersion": 1}', "phone-01")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert b'"BAD_JSON"' in dict(caught.value.trailing_metadata())["droidfleet-issues-bin"]


@pytest.mark.parametrize("size", [10_000_000, 1_000_000])
async def test_a_document_that_is_far_too_large_is_an_invalid_document(tmp_path: Path, size: int) -> None:
    async with running_controller(tmp_path / "data") as api:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await api.run(document(label="x" * size), "phone-01")
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert dict(caught.value.trailing_metadata())["droidfleet-code"] == "INVALID_TASK"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (execution_pb2.WatchExecutionsRequest(), "BAD_WATCH"),
        (execution_pb2.WatchExecutionsRequest(execution_ids=["x"], run_id="r"), "BAD_WATCH"),
        (execution_pb2.WatchExecutionsRequest(execution_ids=["x-none"]), "EXECUTION_NOT_FOUND"),
        (execution_pb2.WatchExecutionsRequest(run_id="r-none"), "RUN_NOT_FOUND"),
    ],
)
async def test_a_watch_that_cannot_be_is_refused(
    tmp_path: Path, request_: execution_pb2.WatchExecutionsRequest, code: str
) -> None:
    async with running_controller(tmp_path / "data") as api:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watched(api, request_)
        assert dict(caught.value.trailing_metadata())["droidfleet-code"] == code
