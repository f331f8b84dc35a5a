"""One agent process as the supervisor sees it: commands in, news out, and its end."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress

import structlog
from pydantic import ValidationError

from droidfleet_agent.options import HostOptions
from droidfleet_agent.supervisor.wire import MAX_LINE_BYTES, NEWS, Command, Configure, News, StartAgent, StopAgent

log = structlog.get_logger(__name__)

END_S = 20.0
"""For a process to end in order: its agents take up to 15 s to stop what runs and to report it."""

TERMINATE_S = 2.0

_MODULE = "droidfleet_agent.supervisor.process"


class Child:
    """One process with the phones that it serves."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._closed = False
        self.serials: set[str] = set()

    @classmethod
    async def spawn(cls, options: HostOptions) -> Child:
        """Starts a process that serves nobody yet."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", _MODULE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=MAX_LINE_BYTES,
        )
        child = cls(process)
        child._send(Configure(options=options))
        log.info("process_started", pid=process.pid)
        return child

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def takes_more(self) -> bool:
        """Whether it is there and was not told to end."""
        return not self._closed and self._process.returncode is None

    def start_agent(self, name: str, serial: str) -> None:
        """Tells it to serve a phone."""
        self.serials.add(serial)
        self._send(StartAgent(name=name, serial=serial))

    def stop_agent(self, serial: str) -> None:
        """Tells it to end a phone's agent in order."""
        self._send(StopAgent(serial=serial))

    def close(self) -> None:
        """Tells it to end in order, with all its agents."""
        assert self._process.stdin is not None
        self._closed = True
        self._process.stdin.close()

    async def follow(self, news: Callable[[News], None]) -> None:
        """Hands over its news until it is gone."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            try:
                told = NEWS.validate_json(line)
            except ValidationError:
                log.error("news_unreadable", pid=self.pid, line=line[:200].decode(errors="replace"))
                continue
            news(told)
        code = await self._process.wait()
        log.log(logging.WARNING if code else logging.INFO, "process_ended", pid=self.pid, code=code)

    async def end(self) -> None:
        """Ends it: in order, else by force. Bounded by some seconds more than `END_S`."""
        self.close()
        for wait_s, force in ((END_S, self._process.terminate), (TERMINATE_S, self._process.kill)):
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._process.wait()
                return
            log.warning("process_end_forced", pid=self.pid)
            with suppress(ProcessLookupError):
                force()
        await self._process.wait()

    def _send(self, command: Command) -> None:
        assert self._process.stdin is not None
        # Commands are small and few: they fit the pipe. To a process that is gone they do not matter any more.
        with suppress(ConnectionError):
            self._process.stdin.write(command.line())
