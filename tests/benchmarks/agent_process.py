"""What an agent costs its host: memory of its process, time to its first heartbeat, size of its installation.

The agents run as users run them, on virtual phones behind a private adb server and a real broker; this process plays
the controller. Memory is resident memory after each agent has run a task, so with everything loaded that one needs.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.one_phone import connected_phones
from support.agent_process import AgentProcess, agent_process
from support.assignments import assignment, task_text
from support.nats import NatsServer
from support.stub_controller import StubController, stub_controller
from support.waiting import until

MOST_MEMORY_MB = 60.0
MOST_PER_PHONE_MB = 6.0
MOST_START_S = 1.5
MOST_INSTALLED_MB = 80.0

STARTS = 5
SHARING = 11
"""Phones in one process; ten of them are further ones."""

MB = 1024 * 1024
READY_S = 60.0
BACK: dict[str, object] = {"id": "back", "action": "BACK"}


async def figures() -> list[Figure]:
    """Memory, start-up time and installed size."""
    with tempfile.TemporaryDirectory() as folder, _broker(Path(folder)) as server, connected_phones(SHARING) as phones:
        os.environ["ANDROID_ADB_SERVER_PORT"] = str(phones.adb_port)
        async with stub_controller(server) as controller:
            run_mb, starts = await _one_phone(controller, server, phones.serials[0], Path(folder))
            alone_mb = await _sharing(controller, server, 1, phones.serials, Path(folder))
            shared_mb = await _sharing(controller, server, SHARING, phones.serials, Path(folder))
    further_mb = (shared_mb - alone_mb) / (SHARING - 1)
    return [
        Figure("agent process, memory", run_mb, "MB", MOST_MEMORY_MB, note="droidfleet-agent run, after a task"),
        Figure(
            "further phone in the process",
            further_mb,
            "MB",
            MOST_PER_PHONE_MB,
            note=f"{SHARING} phones {shared_mb:.0f} MB, 1 phone {alone_mb:.0f} MB",
        ),
        Figure(
            "agent start to first heartbeat",
            statistics.median(starts),
            "s",
            MOST_START_S,
            note=f"{STARTS} starts, {min(starts):.2f} to {max(starts):.2f} s",
        ),
        Figure(
            "base install", _installed_mb(), "MB", MOST_INSTALLED_MB, note="files of droidfleet and what it requires"
        ),
    ]


@contextmanager
def _broker(folder: Path) -> Iterator[NatsServer]:
    server = NatsServer(folder / "nats")
    server.start()
    try:
        yield server
    finally:
        server.stop()


async def _one_phone(
    controller: StubController, server: NatsServer, serial: str, folder: Path
) -> tuple[float, list[float]]:
    """Memory after a task, and seconds from the start of the process to its first heartbeat, several times."""
    starts: list[float] = []
    memory_mb = 0.0
    for number in range(STARTS):
        heard = len(controller.beats)
        started = time.monotonic()
        async with _agent("run", "--name", serial, "--serial", serial, server=server, folder=folder) as agent:
            await until(lambda before=heard: len(controller.beats) > before, within_s=READY_S)  # type: ignore[misc]
            starts.append(time.monotonic() - started)
            if number == 0:
                memory_mb = await _used(controller, agent.pid, [serial], "run")
    return memory_mb, starts


async def _sharing(
    controller: StubController, server: NatsServer, count: int, serials: tuple[str, ...], folder: Path
) -> float:
    """Memory of one process that serves ``count`` phones, each of which ran a task."""
    others = [word for serial in serials for word in ("--name", f"{serial}={serial}")]
    options = ("--phones-per-process", str(count), *others)
    async with _agent("supervise", *options, server=server, folder=folder) as supervisor:
        pid = await supervisor.online(serials[0], within_s=READY_S)
        mates = [serial for serial in serials if await supervisor.online(serial, within_s=READY_S) == pid]
        return await _used(controller, pid, mates, f"share{count}")


@asynccontextmanager
async def _agent(*arguments: str, server: NatsServer, folder: Path) -> AsyncIterator[AgentProcess]:
    environment = {"DROIDFLEET_LOG_LEVEL": "warning", "DROIDFLEET_OUTPUT": "json", "DROIDFLEET_NATS": server.url}
    async with agent_process(*arguments, folder=folder, environment=environment) as agent:
        yield agent


async def _used(controller: StubController, pid: int, agents: list[str], run: str) -> float:
    """Resident memory in MB once each of ``agents`` has run a task."""
    for agent in agents:
        execution_id = f"{run}-{agents.index(agent)}"
        await controller.assign(assignment(execution_id, task=task_text(BACK, agent=agent)), agent=agent)
        await controller.ended(execution_id, within_s=READY_S)
    status = await asyncio.to_thread(Path(f"/proc/{pid}/status").read_text)
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    return int(resident[1]) / 1024


# The installation, without installing: the files of the distributions that the base install brings.


def _installed_mb() -> float:
    total = sum(_size(name) for name in sorted(_required("droidfleet") - {"droidfleet"}))
    sources = Path(__file__).resolve().parents[2]
    own = sum(
        file.stat().st_size
        for folder in ("shared", "device_agent", "controller")
        for file in (sources / folder).rglob("*")
        if file.is_file()
    )
    return (total + own) / MB


def _required(name: str, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """The distribution and everything that it requires on this machine, without extras."""
    from packaging.requirements import Requirement

    known = known | {name}
    for text in importlib.metadata.requires(name) or []:
        requirement = Requirement(text)
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name.lower() not in known:
            known = _required(requirement.name.lower(), known)
    return known


def _size(name: str) -> int:
    files = importlib.metadata.files(name) or []
    inside = (Path(str(file.locate())) for file in files if not str(file).startswith(".."))
    return sum(file.stat().st_size for file in inside if file.exists())


if sys.platform != "linux":
    raise ImportError("memory is read from /proc: Linux only")
