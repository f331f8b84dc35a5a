"""Schedules through the real API, timer, rollouts, database and broker, over real time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc, schedule_pb2, schedule_pb2_grpc, task_pb2
from droidfleet_shared.bus.messages import Wanted
from droidfleet_shared.protocol.codes import StepCode
from support.controller import CALL_S, Api, document, running_controller, scripted_agent
from support.nats import NatsServer
from support.waiting import until

pytestmark = pytest.mark.integration

T = TypeVar("T")
NAME = "phone-01"
WITHIN_S, READ_AGAIN_S = 20.0, 0.05
SOON = timedelta(seconds=5)
"""Until an occurrence: long enough to store its schedule, and to look at it before."""

LATE = timedelta(seconds=10)
"""How late it may be decided on a busy machine."""

STARTED = schedule_pb2.OCCURRENCE_STATE_STARTED


def service(api: Api) -> schedule_pb2_grpc.ScheduleServiceAsyncStub:
    stub: schedule_pb2_grpc.ScheduleServiceAsyncStub = schedule_pb2_grpc.ScheduleServiceStub(api.channel)
    return stub


def local(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}"


async def create(api: Api, **when: object) -> schedule_pb2.Schedule:
    """Stores the task and a schedule of it for the one phone."""
    await api.tasks.SaveTask(task_pb2.SaveTaskRequest(document_json=document()), timeout=CALL_S)
    rollout = {"task": "tea", "target": {"devices": [NAME]}}
    request = schedule_pb2.CreateScheduleRequest(
        spec_json=json.dumps({"name": "soon", "rollout": rollout, "when": when})
    )
    return (await service(api).CreateSchedule(request, timeout=CALL_S)).schedule


async def occurrences(api: Api) -> list[schedule_pb2.Occurrence]:
    request = schedule_pb2.ListOccurrencesRequest(schedule="soon")
    return list((await service(api).ListOccurrences(request, timeout=CALL_S)).occurrences)


async def rollouts(api: Api) -> list[rollout_pb2.Rollout]:
    stub: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(api.channel)
    return list((await stub.ListRollouts(rollout_pb2.ListRolloutsRequest(), timeout=CALL_S)).rollouts)


async def reading(read: Callable[[], Awaitable[list[T]]], fits: Callable[[T], bool]) -> T:
    """Reads again and again until there is one, and it fits."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            found = await read()
            if found and fits(found[0]):
                assert len(found) == 1
                return found[0]
            await asyncio.sleep(READ_AGAIN_S)


async def until_begun(api: Api) -> schedule_pb2.Occurrence:
    """Waits until the occurrence is on record."""
    return await reading(lambda: occurrences(api), lambda _: True)


async def until_state(api: Api, state: rollout_pb2.RolloutState.ValueType) -> rollout_pb2.Rollout:
    """Waits for the one rollout."""
    return await reading(lambda: rollouts(api), lambda each: each.state == state)


async def test_an_occurrence_runs_on_the_phone_at_its_time(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, NAME) as agent:
        due = datetime.now(UTC).replace(microsecond=0) + SOON
        created = await create(api, once=local(due))
        assert created.next.at.ToDatetime(UTC) == due
        begun = await until_begun(api)
        assert (begun.state, begun.intended_at.ToDatetime(UTC)) == (STARTED, due)
        assert begun.decided_at.ToDatetime(UTC) - due < LATE
        await until(lambda: agent.assignments, what="the execution")
        await agent.run(next(iter(agent.assignments)))
        ended = await until_state(api, rollout_pb2.ROLLOUT_STATE_SUCCEEDED)
        assert ended.rollout_id == begun.rollout_id
        assert len(await occurrences(api)) == 1


async def test_an_occurrence_that_was_missed_is_made_up_for_once(tmp_path: Path, nats_server: NatsServer) -> None:
    data = tmp_path / "data"
    async with scripted_agent(nats_server.url, NAME, hello=False) as agent:
        async with running_controller(data, nats=nats_server.url) as api:
            assert (await agent.hello()).granted
            due = datetime.now(UTC).replace(microsecond=0) + SOON
            await create(api, once=local(due))
        await until(lambda: datetime.now(UTC) > due, what="the time of the occurrence")
        for _ in range(2):
            async with running_controller(data, nats=nats_server.url) as api:
                begun = await until_begun(api)
                assert (begun.state, begun.intended_at.ToDatetime(UTC)) == (STARTED, due)
                assert [each.rollout_id for each in await rollouts(api)] == [begun.rollout_id]


async def test_the_stop_of_a_window_cancels_the_rollout(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, NAME) as agent:
        start = datetime.now(UTC).replace(microsecond=0) + SOON
        await create(api, window={"start": local(start), "stop": local(start + SOON)})
        begun = await until_begun(api)
        assert begun.stop_at.ToDatetime(UTC) == start + SOON
        await until(lambda: agent.assignments, what="the execution")
        execution_id = next(iter(agent.assignments))
        await agent.accept(execution_id)
        await agent.start(execution_id)
        await agent.assigned(execution_id, wanted=Wanted.CANCEL)
        await agent.finish(execution_id, code=StepCode.CANCELLED)
        ended = await until_state(api, rollout_pb2.ROLLOUT_STATE_CANCELLED)
        assert ended.reason_code == "WINDOW_CLOSED"
        assert not (await occurrences(api))[0].HasField("stop_at")
