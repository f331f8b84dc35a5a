"""A controller as a user starts it, and a fleet of light agents: each a process of its own, over a real broker."""

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

START_S = 60.0
CALL_S = 60.0
LINE_BYTES = 4 * 1024 * 1024

DOCUMENT = json.dumps({
    "schemaVersion": 1,
    "taskId": "bench",
    "steps": [{"id": "see", "action": "WAIT", "selector": {"text": "Hello"}}],
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class LightFleet:
    """``asker``: a bus connection of this process, for bare requests."""

    names: Sequence[str]
    executions: execution_pb2_grpc.ExecutionServiceAsyncStub
    asker: BusLink
    agents: asyncio.subprocess.Process

    async def ask(self, name: str) -> None:
        """A bare request with the document to the agent's process, over the agent's connection, and its answer."""
        await self.asker.request(ping_subject(name), DOCUMENT.encode(), timeout_s=CALL_S)

    async def accepted_at(self, count: int) -> dict[str, float]:
        """Waits until ``count`` more executions were accepted and all are done; each one's `time.perf_counter`."""
        assert self.agents.stdin is not None
        assert self.agents.stdout is not None
        self.agents.stdin.write(f"{count}\n".encode())
        async with asyncio.timeout(CALL_S):
            found: dict[str, float] = json.loads(await self.agents.stdout.readline())
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
        agents = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.light_agents", where["nats"], str(count)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=LINE_BYTES,
        )
        stack.push_async_callback(agents.wait)
        stack.callback(_close, agents)
        assert agents.stdout is not None
        async with asyncio.timeout(START_S):
            assert await agents.stdout.readline() == b"ready\n"
        asker = await stack.enter_async_context(running_link(where["nats"]))
        names = [agent_name(number) for number in range(count)]
        yield LightFleet(names, execution_pb2_grpc.ExecutionServiceStub(channel), asker, agents)


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
