"""An agent with a memory phone on a real nats-server, and the controller's side played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity, NameTakenError
from droidfleet_agent.presence import AlwaysThere
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.credentials import BusCredentials
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import Wanted
from droidfleet_shared.clock import SystemClock
from support.assignments import AGENT, TAP_TEA, WAIT_FOR_NOTHING, assignment, ref, task_text
from support.nats import NatsServer
from support.shop import shop
from support.stub_controller import stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration

SEE_TEA: dict[str, object] = {"id": "detail", "action": "WAIT", "selector": {"text": "Green tea"}}
WAIT_A_SECOND = {**WAIT_FOR_NOTHING, "timeoutMs": 1_500, "optional": True}


class Running:
    """An agent with what the test wants to look at."""

    def __init__(self, agent: Agent, phone: MemoryPhone, link: BusLink) -> None:
        self.agent = agent
        self.phone = phone
        self.link = link
        self.refused: NameTakenError | None = None

    async def run(self) -> None:
        try:
            await self.agent.run()
        except NameTakenError as error:
            self.refused = error


@asynccontextmanager
async def running_agent(server: NatsServer, *, instance: str = "i1", host_id: str = "h1") -> AsyncIterator[Running]:
    clock = SystemClock()
    link = BusLink(
        server.url,
        name=AGENT,
        clock=clock,
        random=Random(1),
        inbox_prefix=subjects.inbox_prefix(AGENT),
        credentials=lambda: BusCredentials(user=AGENT, password=AGENT) if server.permissions else None,
    )
    phone = shop(clock)
    agent = Agent(
        Identity(name=AGENT, serial="memory", instance=instance, host_id=host_id),
        bus=link,
        phone=phone,
        presence=AlwaysThere(),
        journal=MemoryJournal(),
        clock=clock,
        random=Random(1),
        settings=AgentSettings(heartbeat_s=0.2, stop_s=5.0),
    )
    running = Running(agent, phone, link)
    async with asyncio.TaskGroup() as group:
        bus = group.create_task(link.run(), name="bus")
        task = group.create_task(running.run(), name="agent")
        try:
            yield running
        finally:
            agent.stop()
            await task
            bus.cancel()


async def test_a_document_is_run_and_reported(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server) as running:
        await controller.assign(assignment("a", task=task_text(TAP_TEA)))
        assert await controller.ended("a") == "OK"
        assert controller.kinds("a") == [
            "ExecutionAccepted",
            "ExecutionStarted",
            "StepStarted",
            "StepFinished",
            "ExecutionFinished",
        ]
        assert len(running.phone.done) == 1
        assert (await controller.heard(AGENT)).model == "Memory"


async def test_the_agents_own_permissions_are_enough_for_a_whole_run(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "guarded", permissions={AGENT: subjects.agent_permissions(AGENT)})
    server.start()
    async with stub_controller(server) as controller, running_agent(server):
        await controller.heard(AGENT)
        await controller.assign(assignment("a"))
        assert await controller.ended("a") == "OK"
        controller.holder = "pid 7 on host-b"
        await until(lambda: controller.beats[-1].agent == AGENT)
    server.stop()


@pytest.fixture
def late_server(tmp_path: Path, kept_port: int) -> Iterator[NatsServer]:
    """A server that is not running yet, with a port that it will have."""
    server = NatsServer(tmp_path / "late")
    server.port = kept_port
    yield server
    server.stop()


async def test_a_broker_that_is_down_at_the_start_is_waited_for(late_server: NatsServer) -> None:
    async with running_agent(late_server) as running:
        await until(lambda: running.link._reason)
        await asyncio.to_thread(late_server.start)
        async with stub_controller(late_server) as controller:
            await controller.assign(assignment("a"))
            assert await controller.ended("a") == "OK"


async def test_a_broker_killed_in_mid_task_loses_nothing_and_repeats_nothing(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server) as running:
        await controller.assign(
            assignment("a", task=task_text(WAIT_A_SECOND, TAP_TEA)), assignment("b", task=task_text(WAIT_A_SECOND))
        )
        await until(lambda: "StepStarted" in controller.kinds("a"))
        await asyncio.to_thread(nats_server.kill)
        # The task goes on without the broker, to its end.
        await until(lambda: running.phone.done)
        await asyncio.to_thread(nats_server.start)
        assert await controller.ended("a") == "OK"
        assert await controller.ended("b") == "OK"
        for execution_id, last in (("a", 7), ("b", 5)):
            assert {event.sequence for event in controller.of(execution_id)} == set(range(1, last + 1))
        assert len(running.phone.done) == 1


async def test_a_document_delivered_twice_and_out_of_order_runs_once(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server) as running:
        first = await controller.assign(assignment("a", task=task_text(TAP_TEA)))
        assert await controller.ended("a") == "OK"
        await controller.assign(assignment("b", task=task_text(SEE_TEA)), recorded=[ref("a")])
        assert await controller.ended("b") == "OK"
        await controller.repeat(first)
        await controller.assign(assignment("c", task=task_text(SEE_TEA)))
        assert await controller.ended("c") == "OK"
        assert len(running.phone.done) == 1
        assert controller.kinds("a").count("ExecutionStarted") == 1


async def test_a_cancel_ends_a_wait(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server):
        waiting = task_text(WAIT_FOR_NOTHING)
        await controller.assign(assignment("a", task=waiting))
        await until(lambda: "StepStarted" in controller.kinds("a"))
        await controller.assign(assignment("a", task=waiting, wanted=Wanted.CANCEL))
        assert await controller.ended("a", within_s=20) == "CANCELLED"


async def test_a_task_for_another_name_is_refused(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server) as running:
        await controller.assign(assignment("a", task=task_text(TAP_TEA, agent="phone-02")))
        assert await controller.ended("a") == "AGENT_MISMATCH"
        assert running.phone.done == []


async def test_a_name_that_is_held_elsewhere_ends_the_agent(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller:
        controller.holder = "pid 7 on host-b"
        await controller.assign(assignment("a"))
        async with running_agent(nats_server) as running:
            await until(lambda: running.refused)
        assert running.refused is not None
        assert "pid 7 on host-b" in running.refused.message
        assert "ExecutionStarted" not in controller.kinds("a")


async def test_a_lost_stream_of_documents_stops_nothing(nats_server: NatsServer) -> None:
    async with stub_controller(nats_server) as controller, running_agent(nats_server):
        await controller.assign(assignment("a", task=task_text(WAIT_A_SECOND)))
        await until(lambda: "StepStarted" in controller.kinds("a"))
        await asyncio.to_thread(nats_server.stop)
        await asyncio.to_thread(nats_server.lose_store)
        await asyncio.to_thread(nats_server.start)
        assert await controller.ended("a") == "OK"
