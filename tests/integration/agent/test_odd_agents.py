"""Real agents on hosts whose wall clock is a day wrong, and of another version, with a real controller."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from droidfleet.v1 import execution_pb2, fleet_pb2
from support.adb import ConnectedPhones
from support.agent_process import agent_process
from support.assignments import AGENT
from support.controller import Api, running_controller
from support.odd_agent import PROGRAM, environment

pytestmark = pytest.mark.integration

DAY_S = 86_400.0
END_S = 40.0


def _task(*, rest_ms: int) -> str:
    """Two presses of a key with a rest between them, in a bound that is far below a day."""
    steps: list[dict[str, object]] = [
        {"id": "back", "action": "BACK"},
        {"id": "rest", "action": "DELAY", "minMs": rest_ms},
        {"id": "again", "action": "BACK"},
    ]
    return json.dumps({"schemaVersion": 1, "taskId": "rest", "maxDurationMs": 60_000, "steps": steps})


def _arguments(api: Api, serial: str) -> tuple[str, ...]:
    options = ("--name", AGENT, "--serial", serial, "--nats", api.nats, "--heartbeat", "0.5", "--output", "json")
    return ("run", *options)


async def _event(api: Api, kind: str, *, about: str = "") -> fleet_pb2.FleetEvent:
    """Waits for an event whose summary names something."""
    request = fleet_pb2.WatchEventsRequest(device=AGENT, follow=True)
    async for item in api.fleet.WatchEvents(request, timeout=END_S):
        if item.event.kind == kind and about in item.event.summary:
            return item.event
    raise AssertionError(f"no {kind} {about}")


@pytest.mark.parametrize("clock_s", [DAY_S, -DAY_S])
async def test_a_clock_that_is_a_day_wrong_is_shown_and_changes_nothing(
    clock_s: float, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with (
        running_controller(tmp_path / "data", heartbeat_s=0.5) as api,
        agent_process(
            *_arguments(api, phone.address), folder=tmp_path, program=PROGRAM, environment=environment(clock_s=clock_s)
        ) as agent,
    ):
        await agent.online(AGENT)
        before = datetime.now(UTC)
        answer = await api.run(_task(rest_ms=200), AGENT)
        execution_id = answer.executions[0].execution_id
        ended = await api.until_state(execution_id, "SUCCEEDED", within_s=END_S)
        times = [ended.created_at, ended.updated_at]
        instants = [before, *(each.ToDatetime(UTC) for each in times), datetime.now(UTC)]
        assert instants == sorted(instants)
        assert timedelta(milliseconds=200) <= ended.result.duration.ToTimedelta() < timedelta(seconds=END_S)

        kinds = [event.kind for event in await api.events(execution_id=execution_id)]
        step = ["StepStarted", "StepFinished"]
        run = ["ExecutionCreated", "ExecutionAccepted", "ExecutionStarted", *step * 3, "ExecutionFinished"]
        assert kinds == run

        device = await api.device(AGENT)
        assert device.clock_offset_seconds == pytest.approx(clock_s, abs=2.0)
        alarm = await _event(api, "ClockWrong")
        assert alarm.device == AGENT
        assert "droidfleet_agent_clocks_wrong 1.0" in (await api.get("/metrics"))[1]
    assert len([effect for effect in phone.effects.all() if effect.kind == "key"]) == 2


async def test_an_agent_that_is_upgraded_in_mid_task_goes_on_though_the_clock_was_set(
    phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    old, new = environment(version="0.0.9"), environment(version="99.0.0", clock_s=DAY_S)
    async with running_controller(tmp_path / "data", heartbeat_s=0.5) as api:
        arguments = _arguments(api, phone.address)
        async with agent_process(*arguments, folder=tmp_path, program=PROGRAM, environment=old) as agent:
            await agent.online(AGENT)
            execution_id = (await api.run(_task(rest_ms=3_000), AGENT)).executions[0].execution_id
            await _event(api, "StepStarted", about="rest")
            assert (await api.device(AGENT)).agent_version == "0.0.9"
            agent.signal(signal.SIGTERM)
            assert await agent.ended() == 0
        left = await api.execution(execution_id)
        assert left.state == execution_pb2.EXECUTION_STATE_RUNNING
        async with agent_process(*arguments, folder=tmp_path, program=PROGRAM, environment=new) as agent:
            ended = await api.until_state(execution_id, "SUCCEEDED", within_s=END_S)
            assert (await api.device(AGENT)).agent_version == "99.0.0"
    assert ended.result.agent_restarts == 1
    assert ended.result.duration.ToTimedelta() < timedelta(seconds=60)
    assert len([effect for effect in phone.effects.all() if effect.kind == "key"]) == 2
