"""Executions that are held and let go on: API, database, a real broker, and a real agent on a phone in memory."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import execution_pb2
from support.assignments import SEE_SHOP, TAP_TEA
from support.controller import CALL_S, Api, running_controller, scripted_agent
from support.memory_agent import memory_agent

pytestmark = pytest.mark.integration

NAME = "phone-01"
WAITS: dict[str, object] = {
    "id": "wait",
    "action": "WAIT",
    "selector": {"text": "never"},
    "timeoutMs": 5_000,
    "optional": True,
}
TASK = json.dumps({"schemaVersion": 1, "taskId": "tea", "steps": [WAITS, TAP_TEA]})
LOOK = json.dumps({"schemaVersion": 1, "taskId": "look", "steps": [SEE_SHOP]})


async def pause(api: Api, execution_id: str) -> execution_pb2.Execution:
    request = execution_pb2.PauseExecutionRequest(execution_id=execution_id, reason="look")
    return (await api.executions.PauseExecution(request, timeout=CALL_S)).execution


async def resume(api: Api, execution_id: str) -> execution_pb2.Execution:
    request = execution_pb2.ResumeExecutionRequest(execution_id=execution_id)
    return (await api.executions.ResumeExecution(request, timeout=CALL_S)).execution


async def test_a_running_execution_is_paused_and_goes_on_as_its_agent_confirms(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, memory_agent(api.nats, NAME) as phone:
        execution_id = (await api.run(TASK, NAME)).executions[0].execution_id
        await api.until_state(execution_id, "RUNNING")
        asked = await pause(api, execution_id)
        assert (asked.pause_requested, asked.reason) == (True, "PAUSE_REQUESTED: look")
        paused = await api.until_state(execution_id, "PAUSED")
        assert paused.current_step_id in {"wait", ""}
        assert (await pause(api, execution_id)).version == paused.version
        assert not (await resume(api, execution_id)).pause_requested
        await api.until_state(execution_id, "RUNNING")
        ended = await api.until_state(execution_id, "SUCCEEDED", within_s=20)
        assert [step.id for step in ended.result.steps] == ["wait", "tea"]
        assert len(phone.done) == 1
        kinds = [event.kind for event in await api.events(execution_id=execution_id)]
        assert [kind for kind in kinds if "Pause" in kind or "Resume" in kind or "Continued" in kind] == [
            "PauseRequested",
            "ExecutionPaused",
            "ResumeRequested",
            "ExecutionContinued",
        ]


async def test_what_waits_for_its_turn_does_not_begin_while_it_is_to_be_held(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api:
        async with memory_agent(api.nats, NAME):
            pass  # now it is known
        execution_id = (await api.run(TASK, NAME)).executions[0].execution_id
        await pause(api, execution_id)
        async with memory_agent(api.nats, NAME) as phone:
            held = await api.until_state(execution_id, "ACCEPTED")
            assert held.pause_requested
            # What comes behind it does begin.
            other = (await api.run(LOOK, NAME)).executions[0].execution_id
            await api.until_state(other, "SUCCEEDED", within_s=20)
            assert await api.state(execution_id) == "ACCEPTED"
            await resume(api, execution_id)
            await api.until_state(execution_id, "SUCCEEDED", within_s=20)
            assert len(phone.done) == 1


async def test_what_has_ended_can_be_neither_paused_nor_resumed(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, NAME) as agent:
        execution_id = (await api.run(TASK, NAME)).executions[0].execution_id
        await agent.assigned(execution_id)
        await agent.accept(execution_id)
        await agent.start(execution_id)
        await agent.finish(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")
        for call in (pause(api, execution_id), resume(api, execution_id)):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
