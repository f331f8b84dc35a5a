"""The inside of an agent process: takes commands on standard input, runs agents, tells news on standard output.

Ends when its input ends: the supervisor asked for it, or is gone. Standard output carries news alone, and stderr logs.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog
from pydantic import ValidationError

from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.host import run_agent
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.options import HostOptions
from droidfleet_agent.presence import AdbPresence
from droidfleet_agent.supervisor.wire import (
    COMMANDS,
    MAX_LINE_BYTES,
    AgentEnded,
    AgentOnline,
    Configure,
    News,
    StartAgent,
    StopAgent,
)
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.logging import configure_logging

log = structlog.get_logger(__name__)


class _Process:
    def __init__(self, options: HostOptions) -> None:
        self._options = options
        self._clock = SystemClock()
        self._adb = AdbServer(options.adb_host, options.adb_port, clock=self._clock)
        self._presence = AdbPresence(self._adb, clock=self._clock)
        self._stops: dict[str, asyncio.Event] = {}

    async def run(self, commands: asyncio.StreamReader) -> None:
        async with asyncio.TaskGroup() as group:
            presence = group.create_task(self._presence.run(), name="presence")
            async with asyncio.TaskGroup() as agents:
                while line := await commands.readline():
                    self._obey(line, agents)
                for stop in self._stops.values():
                    stop.set()
            presence.cancel()

    def _obey(self, line: bytes, agents: asyncio.TaskGroup) -> None:
        try:
            command = COMMANDS.validate_json(line)
        except ValidationError:
            log.error("command_unreadable", line=line[:200].decode(errors="replace"))
            return
        match command:
            case StartAgent(name=name, serial=serial):
                if serial not in self._stops:
                    stop = self._stops[serial] = asyncio.Event()
                    agents.create_task(self._serve(name, serial, stop), name=f"agent {name}")
            case StopAgent(serial=serial):
                if serial in self._stops:
                    self._stops[serial].set()
            case Configure():
                log.error("command_unexpected", command="configure")

    async def _serve(self, name: str, serial: str, stop: asyncio.Event) -> None:
        """One agent; whatever ends it ends no other."""
        with structlog.contextvars.bound_contextvars(agent=name):
            ended = AgentEnded(serial=serial)
            try:
                await run_agent(
                    name,
                    serial,
                    options=self._options,
                    adb=self._adb,
                    presence=self._presence,
                    clock=self._clock,
                    stop=stop,
                    online=lambda identity: _tell(_online(identity)),
                )
            except DroidfleetError as error:
                ended = AgentEnded(serial=serial, code=error.code, message=error.message)
            except Exception as error:
                log.exception("agent_broke")
                ended = AgentEnded(serial=serial, code="INTERNAL", message=f"a defect: {type(error).__name__}.")
            finally:
                del self._stops[serial]
            _tell(ended)


def _online(identity: Identity) -> AgentOnline:
    return AgentOnline(name=identity.name, serial=identity.serial, instance=identity.instance)


def _tell(news: News) -> None:
    # A supervisor that is gone reads no news; its end shows on the input.
    try:
        sys.stdout.buffer.write(news.line())
        sys.stdout.buffer.flush()
    except (BrokenPipeError, ValueError):
        log.debug("news_unread")


async def _main() -> None:
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    # A Ctrl-C reaches the whole group of processes; the supervisor alone decides what it means.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    loop.add_signal_handler(signal.SIGTERM, commands.feed_eof)
    configure = COMMANDS.validate_json(await commands.readline() or b"{}")
    if not isinstance(configure, Configure):
        raise SystemExit("the first command must be `configure`.")
    configure_logging(configure.options.log_level)
    await _Process(configure.options).run(commands)


if __name__ == "__main__":
    asyncio.run(_main())
