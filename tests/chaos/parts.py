"""One process of the stack that is killed, paused and started again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chaos.diary import Diary

READY_S = 60.0
POLL_S = 0.05
END_S = 30.0
START_TRIES = 3
LOG_LINES = 30


class PartDownError(Exception):
    """A part does not come up any more."""


@dataclass(frozen=True, slots=True)
class Command:
    """How a part is started. ``ready``: whether it does what it is there for."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    ready: Callable[[], Awaitable[bool]]


class Part:
    """A process with a name. One that ends without having been told to is noted as a crash, and started again."""

    def __init__(self, name: str, command: Command, diary: Diary) -> None:
        self.name = name
        self.crashes: list[str] = []
        self.kills = 0
        self._command = command
        self._diary = diary
        self._process: asyncio.subprocess.Process | None = None
        self._wanted = False
        self._turn = asyncio.Lock()

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts it and waits until it is ready."""
        async with self._turn:
            await self._start()

    async def _start(self) -> None:
        for _ in range(START_TRIES):
            self._process = await self._spawn()
            self._wanted = True
            if await self._came_up(self._process):
                self._diary.note(self.name, f"is up, process {self._process.pid}")
                return
            self._crashed(f"did not come up within {READY_S:.0f} s, or ended before")
            self._signal(signal.SIGKILL)
            await self._process.wait()
        raise PartDownError(self.crashes[-1])

    async def _came_up(self, process: asyncio.subprocess.Process) -> bool:
        """Whether it does what it is there for, before it ends and within its time."""
        try:
            async with asyncio.timeout(READY_S):
                while process.returncode is None:
                    if await self._command.ready():
                        return True
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            pass
        return False

    def _crashed(self, what: str) -> None:
        self._diary.note(self.name, what)
        self.crashes.append(f"{self.name} {what}:\n{self.log_tail()}")

    async def _spawn(self) -> asyncio.subprocess.Process:
        with self._command.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self._command.words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self._command.env),
                cwd=self._command.cwd,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """kill -9, and waits until it is gone."""
        async with self._turn:
            assert self._process is not None
            self._wanted = False
            self._signal(signal.SIGKILL)
            await self._process.wait()
            self.kills += 1

    def pause(self) -> None:
        """Everything in it stands still."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """It goes on; harmless when it does anyway."""
        self._signal(signal.SIGCONT)

    async def watch(self) -> None:
        """Starts it again whenever it ends by itself, until cancelled."""
        while True:
            process = self._process
            assert process is not None
            code = await process.wait()
            async with self._turn:
                if self._wanted and self._process is process:
                    self._crashed(f"ended by itself with {code}")
                    await self._start()
            # Killed otherwise, and started again by whoever killed it.
            await self._other_than(process)

    async def _other_than(self, process: asyncio.subprocess.Process) -> None:
        while self._process is process:  # noqa: ASYNC110  # cheaper than an event for each start
            await asyncio.sleep(POLL_S)  # cheaper than an event for each start

    async def stop(self) -> None:
        """Ends it in good order, at the latest by killing it."""
        self._wanted = False
        process = self._process
        if process is None or process.returncode is not None:
            return
        self.resume()
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            self._diary.note(self.name, f"did not end within {END_S:.0f} s of being told to")
        finally:
            if process.returncode is None:
                self._signal(signal.SIGKILL)
                await process.wait()

    def log_tail(self) -> str:
        """The last that it said."""
        return "\n".join(self._command.log.read_text(errors="replace").splitlines()[-LOG_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)
