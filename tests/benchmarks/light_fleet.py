"""A controller as a user starts it, and a fleet of light agents in processes of their own, over a real broker."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from benchmarks.light_agents import agent_name, ping_subject
from droidfleet.v1 import execution_pb2_grpc
from droidfleet_controller.app import SERVE_FILE
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.logging import configure_logging
from support.bus import running_link
from support.waiting import until

START_S = 300.0
CALL_S = 300.0
LINE_BYTES = 4 * 1024 * 1024

AGENTS_PER_PROCESS = 5_000
"""Connections of one process: under the limit of open files of most machines."""

DOCUMENT = json.dumps({
    "schemaVersion": 1,
    "taskId": "bench",
    "steps": [{"id": "see", "action": "WAIT", "selector": {"text": "Hello"}}],
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class LightFleet:
    """``asker``: a bus connection of this process, for bare requests; ``agents``: processes and their agents."""

    names: Sequence[str]
    executions: execution_pb2_grpc.ExecutionServiceAsyncStub
    asker: BusLink
    agents: Sequence[tuple[asyncio.subprocess.Process, int]]
    channel: grpc.aio.Channel

    async def ask(self, name: str) -> None:
        """A bare request with the document to the agent's process, over the agent's connection, and its answer."""
        await self.asker.request(ping_subject(name), DOCUMENT.encode(), timeout_s=CALL_S)

    async def accepted_at(self) -> dict[str, float]:
        """Waits until every agent has accepted one execution more and all are done; each one's `time.perf_counter`."""
        for process, count in self.agents:
            assert process.stdin is not None
            process.stdin.write(f"{count}\n".encode())
        found: dict[str, float] = {}
        async with asyncio.timeout(CALL_S):
            for process, _ in self.agents:
                assert process.stdout is not None
                found |= json.loads(await process.stdout.readline())
        return found


@asynccontextmanager
async def light_fleet(count: int) -> AsyncIterator[LightFleet]:
    """``count`` agents that hold their names, each with a connection of its own; everything ends with the block."""
    configure_logging("error")
    folder = Path(tempfile.mkdtemp(prefix="droidfleet-bench-"))
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        where = await _serve(stack, folder / "data")
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(where["api"]))
        agents = [
            await _agents(stack, where["nats"], first, min(AGENTS_PER_PROCESS, count - first))
            for first in range(0, count, AGENTS_PER_PROCESS)
        ]
        async with asyncio.timeout(START_S):
            for process, _ in agents:
                assert process.stdout is not None
                assert await process.stdout.readline() == b"ready\n"
        asker = await stack.enter_async_context(running_link(where["nats"]))
        names = [agent_name(number) for number in range(count)]
        yield LightFleet(names, execution_pb2_grpc.ExecutionServiceStub(channel), asker, agents, channel)


async def _agents(stack: AsyncExitStack, url: str, first: int, count: int) -> tuple[asyncio.subprocess.Process, int]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.light_agents", url, str(first), str(count)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=LINE_BYTES,
    )
    stack.push_async_callback(process.wait)
    stack.callback(_close, process)
    return process, count


def _close(agents: asyncio.subprocess.Process) -> None:
    if agents.stdin is not None:
        agents.stdin.close()


async def _serve(stack: AsyncExitStack, data: Path) -> dict[str, str]:
    """Starts `droidfleet serve`, and says where it listens."""
    program = Path(sys.executable).with_name("droidfleet")
    addresses = ("DROIDFLEET_LISTEN", "DROIDFLEET_HTTP", "DROIDFLEET_BROKER_LISTEN")
    process = await asyncio.create_subprocess_exec(
        program,
        "serve",
        env={**os.environ, **dict.fromkeys(addresses, "127.0.0.1:0"), "DROIDFLEET_DATA": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.push_async_callback(process.wait)
    stack.callback(process.terminate)
    await until((data / SERVE_FILE).exists, within_s=START_S, what="the controller is ready")
    where: dict[str, str] = json.loads((data / SERVE_FILE).read_text())
    return where
