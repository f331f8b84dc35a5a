"""`droidfleet-agent` as a process of its own: started, read, signalled and ended by tests."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from support.waiting import until

END_S = 30.0
PROGRAM = str(Path(sys.executable).parent / "droidfleet-agent")

_numbers = itertools.count(1)


class AgentProcess:
    """A running command; ``news`` are the JSON objects that it printed."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self.news: list[Mapping[str, object]] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What it wrote to standard error."""
        return self._log.read_text()

    def of(self, event: str, name: str) -> list[Mapping[str, object]]:
        """Its news of one kind about one agent."""
        return [each for each in self.news if each["event"] == event and each["name"] == name]

    async def online(self, name: str, *, times: int = 1, within_s: float = 30.0) -> int:
        """Waits until an agent got its name for the nth time; returns the process that it lives in."""
        await until(
            lambda: len(self.of("agent_online", name)) >= times or self._process.returncode is not None,
            within_s=within_s,
            what=f"{name} online",
        )
        assert len(self.of("agent_online", name)) >= times, self.log
        return int(str(self.of("agent_online", name)[-1]["pid"]))

    async def read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.news.append(json.loads(line))

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Waits for the end; returns the exit code."""
        async with asyncio.timeout(END_S):
            return await self._process.wait()


@asynccontextmanager
async def agent_process(
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = (PROGRAM,),
) -> AsyncIterator[AgentProcess]:
    """Runs the command while the block lasts, with a state folder in ``folder`` and JSON on standard output."""
    log = folder / f"agent-{next(_numbers)}.log"
    env = {**os.environ, "DROIDFLEET_STATE": str(folder / "state"), **(environment or {})}
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *program, *arguments, stdout=asyncio.subprocess.PIPE, stderr=stderr, env=env
        )
    running = AgentProcess(process, log)
    async with asyncio.TaskGroup() as group:
        group.create_task(running.read(), name="news")
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await running.ended()
            except TimeoutError:
                process.kill()


def alive(pid: int) -> bool:
    """Whether a process is there (and not a zombie that nobody waits for)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"
