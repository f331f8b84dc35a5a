"""Rollouts through the real API, database and broker, over agents that run what they are assigned."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import rollout_pb2, rollout_pb2_grpc, task_pb2
from support.controller import CALL_S, Api, ScriptedAgent, document, running_controller, scripted_agent
from support.nats import NatsServer
from support.waiting import until

pytestmark = pytest.mark.integration

NAMES = tuple(f"phone-{number:02}" for number in range(1, 5))
TURN_S = 0.05
END_S = 30.0


async def working(agent: ScriptedAgent) -> None:
    """Runs whatever the agent is assigned, one after the other, for ever."""
    done: set[str] = set()
    while True:
        for execution_id in [each for each in agent.assignments if each not in done]:
            done.add(execution_id)
            await agent.accept(execution_id)
            await agent.start(execution_id)
            await agent.finish(execution_id)
        await agent.beat()
        await asyncio.sleep(TURN_S)


@asynccontextmanager
async def agents(url: str, *names: str) -> AsyncIterator[dict[str, ScriptedAgent]]:
    """Agents that are granted and idle."""
    async with AsyncExitStack() as stack:
        yield {name: await stack.enter_async_context(scripted_agent(url, name)) for name in names}


@asynccontextmanager
async def at_work(*some: ScriptedAgent) -> AsyncIterator[None]:
    """The agents work meanwhile."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(working(agent), name=agent.name) for agent in some]
        yield
        for task in tasks:
            task.cancel()


def service(api: Api) -> rollout_pb2_grpc.RolloutServiceAsyncStub:
    stub: rollout_pb2_grpc.RolloutServiceAsyncStub = rollout_pb2_grpc.RolloutServiceStub(api.channel)
    return stub


async def start(api: Api, **fields: object) -> rollout_pb2.Rollout:
    """Stores the task and starts a rollout of it over all phones."""
    await api.tasks.SaveTask(task_pb2.SaveTaskRequest(document_json=document()), timeout=CALL_S)
    spec = {"task": "tea", "target": {"devices": NAMES}, "order": "LISTED", **fields}
    request = rollout_pb2.StartRolloutRequest(spec_json=json.dumps(spec))
    return (await service(api).StartRollout(request, timeout=CALL_S)).rollout


async def get(api: Api, rollout_id: str) -> rollout_pb2.Rollout:
    request = rollout_pb2.GetRolloutRequest(rollout_id=rollout_id)
    return (await service(api).GetRollout(request, timeout=CALL_S)).rollout


async def until_ended(api: Api, rollout_id: str) -> list[rollout_pb2.Rollout]:
    """Every view until the rollout has ended."""
    request = rollout_pb2.WatchRolloutRequest(rollout_id=rollout_id)
    return [item.rollout async for item in service(api).WatchRollout(request, timeout=END_S)]


async def test_a_rollout_runs_in_waves_and_is_watched_to_its_end(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, agents(api.nats, *NAMES) as fleet:
        async with at_work(*fleet.values()):
            rollout = await start(api, waves=[{"size": 1}, {"size": "50%"}, {}])
            views = await until_ended(api, rollout.rollout_id)
        last = views[-1]
        assert last.state == rollout_pb2.ROLLOUT_STATE_SUCCEEDED
        assert [sum(count.count for count in wave.outcomes) for wave in last.waves] == [1, 2, 1]
        assert [view.wave for view in views] == sorted(view.wave for view in views)
        request = rollout_pb2.ListRolloutMembersRequest(rollout_id=rollout.rollout_id)
        members = (await service(api).ListRolloutMembers(request, timeout=CALL_S)).members
        assert [(each.device, each.tries) for each in members] == [(name, 1) for name in NAMES]
        _, metrics = await api.get("/metrics")
        assert 'droidfleet_rollout_members_total{outcome="succeeded"} 4.0' in metrics
        assert 'droidfleet_rollouts{state="running"} 0.0' in metrics


async def test_a_rollout_goes_on_over_a_restart_with_results_that_came_meanwhile(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    data = tmp_path / "data"
    async with AsyncExitStack() as stack:
        fleet = {
            name: await stack.enter_async_context(scripted_agent(nats_server.url, name, hello=False)) for name in NAMES
        }
        async with running_controller(data, nats=nats_server.url) as api:
            for agent in fleet.values():
                assert (await agent.hello()).granted
            rollout = await start(api, waves=[{"size": 1}, {}])
            await until(lambda: bool(fleet["phone-01"].assignments), what="the first wave")
        async with at_work(*fleet.values()):
            first = fleet["phone-01"]
            await until(lambda: (next(iter(first.assignments)), 1) in first.sequences, what="the first wave's end")
            async with running_controller(data, nats=nats_server.url) as api:
                views = await until_ended(api, rollout.rollout_id)
                assert views[-1].state == rollout_pb2.ROLLOUT_STATE_SUCCEEDED
                request = rollout_pb2.ListRolloutMembersRequest(rollout_id=rollout.rollout_id)
                members = (await service(api).ListRolloutMembers(request, timeout=CALL_S)).members
                assert [each.tries for each in members] == [1, 1, 1, 1]


async def test_an_abort_takes_the_work_from_the_agents(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, agents(api.nats, *NAMES) as fleet:
        rollout = await start(api)
        await until(lambda: all(agent.assignments for agent in fleet.values()), what="all are assigned")
        seen = await get(api, rollout.rollout_id)
        request = rollout_pb2.ControlRolloutRequest(
            rollout_id=rollout.rollout_id, control=rollout_pb2.ROLLOUT_CONTROL_ABORT, version=seen.version
        )
        after = (await service(api).ControlRollout(request, timeout=CALL_S)).rollout
        assert after.state == rollout_pb2.ROLLOUT_STATE_ABORTED
        await until(lambda: not any(agent.assignments for agent in fleet.values()), what="nothing is assigned")
        for agent in fleet.values():
            await agent.beat()
        await until_confirmed(api, rollout.rollout_id)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await service(api).ControlRollout(request, timeout=CALL_S)
        assert caught.value.code() is grpc.StatusCode.ABORTED


async def until_confirmed(api: Api, rollout_id: str) -> None:
    """Waits until every agent has shown that it is not at it any more."""
    async with asyncio.timeout(END_S):
        while True:
            confirmation = (await get(api, rollout_id)).confirmation
            if confirmation.confirmed == confirmation.asked == len(NAMES):
                return
            await asyncio.sleep(TURN_S)
