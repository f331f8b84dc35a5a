"""Looking at a device and acting on it through the API: a real controller and broker, an agent with a memory phone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from droidfleet.v1 import device_pb2
from droidfleet_agent.agent import Agent
from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.presence import AlwaysThere
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.clock import SystemClock
from support.assignments import AGENT, TAP_TEA, WAIT_FOR_NOTHING, task_text
from support.controller import CALL_S, Api, running_controller
from support.memory_agent import memory_agent
from support.shop import shop
from support.waiting import until

pytestmark = pytest.mark.integration


@asynccontextmanager
async def fleet(folder: Path) -> AsyncIterator[tuple[Api, MemoryPhone]]:
    """A controller, and one agent whose name it has granted."""
    async with running_controller(folder) as api, memory_agent(api.nats, AGENT) as phone:
        yield api, phone


async def opened(api: Api, *, ttl_s: int = 30, holder: str = "anna") -> str:
    request = device_pb2.OpenSessionRequest(device=AGENT, holder=holder, ttl=Duration(seconds=ttl_s))
    return (await api.devices.OpenSession(request, timeout=CALL_S)).session_id


def step(session_id: str, body: dict[str, object], *, request_id: str = "") -> device_pb2.RunStepRequest:
    return device_pb2.RunStepRequest(
        device=AGENT, session_id=session_id, step_json=json.dumps(body), request_id=request_id
    )


async def refusal(call: Awaitable[object]) -> tuple[str, grpc.StatusCode]:
    """The code of a call that is refused, and its status."""
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    metadata = dict(refused.value.trailing_metadata() or ())
    return str(metadata["droidfleet-code"]), refused.value.code()


async def test_a_tree_and_a_picture_come_without_a_session(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, _):
        tree = await api.devices.GetTree(device_pb2.GetTreeRequest(device=AGENT, with_xml=True), timeout=CALL_S)
        (tea,) = [node for node in tree.nodes if node.text == "Tea"]
        assert json.loads(tea.offered[0].selector_json) == {"text": "Tea"}
        assert tree.xml.startswith("<?xml")
        picture = await api.devices.GetScreenshot(device_pb2.GetScreenshotRequest(device=AGENT), timeout=CALL_S)
        assert (picture.media_type, picture.data[:2]) == ("image/jpeg", b"\xff\xd8")


async def test_a_step_is_run_once_under_a_session(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, phone):
        session_id = await opened(api)
        for _ in range(2):
            ran = await api.devices.RunStep(step(session_id, TAP_TEA, request_id="one"), timeout=CALL_S)
            assert (ran.result.successful, ran.result.steps[0].action) == (True, "CLICK")
        assert [each.call for each in phone.done] == ["tap"]


async def test_refusals_have_their_codes(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, _):
        session_id = await opened(api)
        unknown = device_pb2.GetTreeRequest(device="phone-1")
        assert await refusal(api.devices.GetTree(unknown)) == ("DEVICE_NOT_FOUND", grpc.StatusCode.NOT_FOUND)
        busy = device_pb2.OpenSessionRequest(device=AGENT, holder="ben")
        assert await refusal(api.devices.OpenSession(busy)) == ("DEVICE_BUSY", grpc.StatusCode.FAILED_PRECONDITION)
        endless = device_pb2.OpenSessionRequest(device=AGENT, holder="ben", ttl=Duration(seconds=9999))
        assert await refusal(api.devices.OpenSession(endless)) == ("BAD_TTL", grpc.StatusCode.INVALID_ARGUMENT)
        nobody = device_pb2.OpenSessionRequest(device=AGENT)
        assert await refusal(api.devices.OpenSession(nobody)) == ("BAD_HOLDER", grpc.StatusCode.INVALID_ARGUMENT)
        bad = step(session_id, {"id": "x", "action": "CLIK"})
        assert await refusal(api.devices.RunStep(bad)) == ("INVALID_STEP", grpc.StatusCode.INVALID_ARGUMENT)
        lost = step("guessed", TAP_TEA)
        assert await refusal(api.devices.RunStep(lost)) == ("LEASE_LOST", grpc.StatusCode.FAILED_PRECONDITION)
        gone = device_pb2.RenewSessionRequest(device=AGENT, session_id="guessed")
        assert await refusal(api.devices.RenewSession(gone)) == ("LEASE_LOST", grpc.StatusCode.FAILED_PRECONDITION)


async def test_an_execution_waits_for_a_session_whose_holder_was_killed_and_then_runs(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, _):
        await opened(api, ttl_s=2)
        started = await api.run(task_text(TAP_TEA, agent=AGENT), AGENT)
        (execution,) = started.executions
        await api.until_state(execution.execution_id, "ACCEPTED")
        done = await api.until_state(execution.execution_id, "SUCCEEDED")
        begun = done.result.started_at.ToDatetime() - execution.created_at.ToDatetime()
        assert begun.total_seconds() > 1


async def test_no_session_is_opened_while_an_execution_runs(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, _):
        started = await api.run(task_text(WAIT_FOR_NOTHING, agent=AGENT), AGENT)
        execution_id = started.executions[0].execution_id
        await api.until_state(execution_id, "RUNNING")
        busy = device_pb2.OpenSessionRequest(device=AGENT, holder="ben")
        assert (await refusal(api.devices.OpenSession(busy)))[0] == "DEVICE_BUSY"
        looked = await api.devices.GetTree(device_pb2.GetTreeRequest(device=AGENT), timeout=CALL_S)
        assert looked.nodes


async def test_a_session_that_is_closed_is_free_and_may_be_closed_again(tmp_path: Path) -> None:
    async with fleet(tmp_path) as (api, _):
        session_id = await opened(api, holder="anna")
        for _ in range(2):
            await api.devices.CloseSession(
                device_pb2.CloseSessionRequest(device=AGENT, session_id=session_id), timeout=CALL_S
            )
        assert await opened(api, holder="ben")


async def test_a_device_that_went_away_is_said_to_be_offline(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data", heartbeat_s=0.2) as api:
        clock = SystemClock()
        async with asyncio.TaskGroup() as group:
            link = BusLink(api.nats, name=AGENT, clock=clock, random=Random(1))
            agent = Agent(
                Identity(name=AGENT, serial="memory", instance="i1", host_id="h1"),
                bus=link,
                phone=shop(clock),
                presence=AlwaysThere(),
                journal=MemoryJournal(),
                clock=clock,
                random=Random(1),
            )
            bus = group.create_task(link.run(), name="bus")
            task = group.create_task(agent.run(), name="agent")
            await until(agent.granted.is_set)
            agent.stop()
            await task
            bus.cancel()
        assert (await refusal(api.devices.GetTree(device_pb2.GetTreeRequest(device=AGENT))))[0] == "DEVICE_OFFLINE"
