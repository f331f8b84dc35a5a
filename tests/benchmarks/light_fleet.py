"""A controller in a process of its own and many real agents with memory phones in this one, over a real broker."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import grpc

from droidfleet.v1 import execution_pb2_grpc
from droidfleet_agent.agent import Agent
from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.presence import AlwaysThere
from droidfleet_agent.reporting import Make
from droidfleet_controller.app import SERVE_FILE
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import Event
from droidfleet_shared.bus.port import BusMessage
from droidfleet_shared.clock import SystemClock
from support.waiting import until

START_S = 60.0

_SCREEN = (
    '<hierarchy rotation="0"><node index="0" text="Hello" resource-id="a:id/hello" class="android.widget.TextView"'
    ' package="com.example.app" content-desc="" checkable="false" checked="false" clickable="true" enabled="true"'
    ' focusable="false" focused="false" scrollable="false" long-clickable="false" password="false" selected="false"'
    ' visible-to-user="true" bounds="[0,0][1080,2400]" /></hierarchy>'
)

DOCUMENT = json.dumps({
    "schemaVersion": 1,
    "taskId": "bench",
    "steps": [{"id": "see", "action": "WAIT", "selector": {"text": "Hello"}}],
})  # fmt: skip


class TimedJournal(MemoryJournal):
    """Notes when an execution was taken on: written down here, from then on the agent answers for it."""

    def __init__(self, accepted_at: dict[str, float]) -> None:
        super().__init__()
        self._accepted_at = accepted_at

    async def take_on(self, attempt: Attempt, make: Make) -> Event:
        event = await super().take_on(attempt, make)
        self._accepted_at[attempt.ref.execution_id] = time.perf_counter()
        return event

    @property
    def held(self) -> int:
        """Attempts that the controller has not receipted."""
        return len(self._attempts)


@dataclass(frozen=True, slots=True)
class LightFleet:
    """``accepted_at``: `time.perf_counter` of each acceptance, by execution. ``asker``: a bus connection of its own."""

    names: Sequence[str]
    executions: execution_pb2_grpc.ExecutionServiceAsyncStub
    asker: BusLink
    accepted_at: dict[str, float]
    journals: Sequence[TimedJournal]

    async def settled(self, execution_ids: Sequence[str]) -> None:
        """Returns when these were accepted, carried out, reported and receipted: nothing is under way any more."""
        await until(lambda: self.accepted_at.keys() >= set(execution_ids), within_s=START_S, what="all accepted")
        await until(lambda: not any(journal.held for journal in self.journals), within_s=START_S, what="all receipted")

    async def ask(self, name: str, payload: bytes) -> None:
        """A bare request to the process of an agent, over that agent's connection, and its answer."""
        await self.asker.request(subjects.rpc(name, "ping"), payload, timeout_s=START_S)


@asynccontextmanager
async def light_fleet(count: int) -> AsyncIterator[LightFleet]:
    """``count`` agents that hold their names, each with a connection of its own; everything ends with the block."""
    _allow_many_files()
    folder = Path(tempfile.mkdtemp(prefix="droidfleet-bench-"))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        where = await _serve(stack, folder / "data")
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(where["api"]))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        accepted_at: dict[str, float] = {}
        journals: list[TimedJournal] = []
        agents: list[Agent] = []
        names = [f"light-{number:04}" for number in range(count)]
        for name in names:
            journals.append(TimedJournal(accepted_at))
            agents.append(_agent(stack, group, name, where["nats"], journals[-1]))
        asker = _link(stack, group, where["nats"], "asker")
        async with asyncio.timeout(START_S):
            await asker.wait_connected(SystemClock().deadline(START_S))
            for agent in agents:
                await agent.granted.wait()
        yield LightFleet(names, execution_pb2_grpc.ExecutionServiceStub(channel), asker, accepted_at, journals)
        for agent in agents:
            agent.stop()


def _agent(stack: AsyncExitStack, group: asyncio.TaskGroup, name: str, url: str, journal: MemoryJournal) -> Agent:
    clock = SystemClock()
    link = _link(stack, group, url, name)

    async def answer(message: BusMessage) -> None:
        await link.publish(message.reply, b"pong")

    link.subscribe(subjects.rpc(name, "ping"), answer)
    agent = Agent(
        Identity(name=name, serial=name, instance=f"i-{name}", host_id="bench"),
        bus=link,
        phone=MemoryPhone({"hello": Page(_SCREEN)}, start="hello", clock=clock, serial=name),
        presence=AlwaysThere(),
        journal=journal,
        clock=clock,
        random=Random(name),
    )
    task = group.create_task(agent.run(), name=name)
    stack.callback(task.cancel)
    return agent


def _link(stack: AsyncExitStack, group: asyncio.TaskGroup, url: str, name: str) -> BusLink:
    link = BusLink(url, name=name, clock=SystemClock(), random=Random(name), inbox_prefix=subjects.inbox_prefix(name))
    task = group.create_task(link.run(), name=f"link {name}")
    stack.callback(task.cancel)
    return link


async def _serve(stack: AsyncExitStack, data: Path) -> dict[str, str]:
    """Starts `droidfleet serve` as a user would, and says where it listens."""
    program = Path(sys.executable).with_name("droidfleet")
    ports = dict.fromkeys(("DROIDFLEET_LISTEN", "DROIDFLEET_HTTP", "DROIDFLEET_BROKER_LISTEN"), "127.0.0.1:0")
    process = subprocess.Popen(  # noqa: ASYNC220  # ended below
        [program, "serve"],
        env={**os.environ, **ports, "DROIDFLEET_DATA": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    await until((data / SERVE_FILE).exists, within_s=START_S, what="the controller is ready")
    where: dict[str, str] = json.loads((data / SERVE_FILE).read_text())
    return where


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
