"""The nats-server process: started, watched, started again when it dies, stopped in good order."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

import structlog

from droidfleet_controller.broker import binary
from droidfleet_controller.broker.config import config_text
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, DroidfleetError, PreconditionError, UnavailableError
from droidfleet_shared.net import Endpoint

log = structlog.get_logger(__name__)

START_TIMEOUT_S = 30.0
"""Recovering a large store after a crash takes seconds."""

STOP_TIMEOUT_S = 10.0
RESTART_BASE_S = 0.2
RESTART_CAP_S = 10.0
STABLE_S = 30.0
"""A server that ran for this long did not fail at its start: the next restart waits briefly again."""

KEPT_LINES = 20
"""Last lines of the server's log in an error."""

_PROC = Path("/proc/self").exists()
"""Linux: what other systems ask of `ps`, which small containers lack, stands in files."""

_LISTENING = re.compile(r"Listening for client connections on (\S+):(\d+)$")
_READY = "Server is ready"
_FROZEN = "critical write error"
"""nats-server could not write to a stream. It takes nothing on that stream any more until it is started again, also
when its disk has room again."""

_LEVELS = {"[FTL]": "error", "[ERR]": "error", "[WRN]": "warning"}


class EmbeddedBroker:
    """One nats-server in ``folder``. ``restarted`` is called whenever it had to be started again."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        folder: Path,
        program: Path | None,
        clock: Clock,
        random: Random,
        restarted: Callable[[], None] = lambda: None,
    ) -> None:
        self.endpoint = endpoint
        self._folder = folder
        self._program = program
        self._clock = clock
        self._random = random
        self._restarted = restarted
        self._process: asyncio.subprocess.Process | None = None
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._frozen = False
        self.failure: DroidfleetError | None = None

    @property
    def url(self) -> str:
        """Where clients connect; final once `start` has returned."""
        return f"nats://{self.endpoint}"

    @property
    def pid(self) -> int | None:
        """The process, while there is one."""
        return self._process.pid if self._process else None

    @property
    def _config(self) -> Path:
        return self._folder / "nats-server.conf"

    @property
    def _pid_file(self) -> Path:
        return self._folder / "nats-server.pid"

    async def start(self) -> None:
        """Starts the server and returns when it takes connections. Ends one that a killed controller left behind.

        Raises:
            ConflictError: ``BROKER_PORT_TAKEN``.
            PreconditionError: the program is missing, or the folder cannot be used.
            UnavailableError: it does not come up.
        """
        program = binary.find(self._program)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            await self._end_orphan()
            self._config.write_text(config_text(self.endpoint, store=self._folder))
        except OSError as error:
            raise PreconditionError(
                "DATA_FOLDER_NOT_WRITABLE",
                f"{self._folder} cannot be written: {error.strerror}.",
                hint="Choose another folder with --data, or correct its owner and mode.",
            ) from error
        self._lines.clear()
        self._frozen = False
        self._process = await self._spawn(program)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await self._until_ready(self._process)
        except TimeoutError:
            await self.stop()
            raise UnavailableError(
                "BROKER_NOT_STARTED",
                f"nats-server is not ready after {START_TIMEOUT_S:.0f} s.",
                hint=f"Its last words: {self._last_words()}",
            ) from None
        except BaseException:
            await self.stop()
            raise
        log.info("broker_started", url=self.url, pid=self._process.pid, program=str(program))

    async def _spawn(self, program: Path) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                str(program),
                "-c",
                str(self._config),
                "-P",
                str(self._pid_file),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # Its own session: Ctrl-C reaches the controller first, which stops its parts in order.
                start_new_session=True,
            )
        except OSError as error:
            raise PreconditionError(
                "NATS_SERVER_NOT_FOUND", f"{program} cannot be run: {error.strerror}.", hint=binary.HINT
            ) from error

    async def _until_ready(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            text = self._take(line)
            if found := _LISTENING.search(text):
                # The port that the system chose is kept over restarts: agents know it.
                self.endpoint = replace(self.endpoint, port=int(found[2]))
            if text.endswith(_READY):
                return
        await process.wait()
        raise self._not_started()

    def _take(self, line: bytes) -> str:
        text = line.decode(errors="replace").rstrip()
        self._lines.append(text)
        level = next((level for mark, level in _LEVELS.items() if mark in text), None)
        self._frozen = self._frozen or _FROZEN in text.lower()
        if level is not None:
            getattr(log, level)("broker_says", line=text)
        return text

    def _last_words(self) -> str:
        severe = [line for line in self._lines if any(mark in line for mark in _LEVELS)]
        return (severe or list(self._lines) or ["(nothing)"])[-1]

    def _not_started(self) -> DroidfleetError:
        words = self._last_words()
        if "address already in use" in words:
            return ConflictError(
                "BROKER_PORT_TAKEN",
                f"another program listens on {self.endpoint}.",
                hint="End it, choose another address with --broker-listen, or point --nats at it if it is one for you.",
            )
        if "storage directory" in words or "permission denied" in words or "read-only" in words:
            return PreconditionError(
                "DATA_FOLDER_NOT_WRITABLE",
                f"the broker cannot use {self._folder}.",
                hint=f"Choose another folder with --data, or correct its owner and mode. It says: {words}",
            )
        return UnavailableError("BROKER_NOT_STARTED", "nats-server ended at its start.", hint=f"It says: {words}")

    async def run(self) -> None:
        """Watches the started server and starts it again when it ends or takes nothing any more, until cancelled."""
        attempt = 0
        while True:
            started = self._clock.monotonic()
            process = self._process
            if process is not None:
                await self._until_useless(process)
                log.error("broker_ended", code=process.returncode, last_words=self._last_words())
                self._process = None
                if self._clock.monotonic() - started > STABLE_S:
                    attempt = 0
            await self._clock.sleep(self._random.uniform(0, min(RESTART_CAP_S, RESTART_BASE_S * 2**attempt)))
            attempt = min(attempt + 1, 10)
            try:
                await self.start()
                self.failure = None
                self._restarted()
            except DroidfleetError as error:
                self.failure = error
                log.error("broker_not_restarted", code=error.code, message=error.message, hint=error.hint)

    async def _until_useless(self, process: asyncio.subprocess.Process) -> None:
        """Until it has ended, by itself or because it has to be started again."""
        assert process.stderr is not None
        while not self._frozen and (line := await process.stderr.readline()):
            self._take(line)
        if self._frozen:
            self.failure = UnavailableError(
                "BROKER_FROZEN",
                f"the broker could not write to {self._folder} and is started again.",
                hint="Make room on its disk.",
            )
            log.error("broker_frozen", hint=self.failure.hint)
            # What it confirmed outlives this, and an orderly end would want to write.
            with suppress(ProcessLookupError):
                process.kill()
        await self._until_end(process)

    async def _until_end(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            self._take(line)
        await process.wait()

    async def stop(self) -> None:
        """Ends the server in good order, at the latest by killing it."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await self._until_end(process)
        except TimeoutError:
            log.warning("broker_killed", pid=process.pid)
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        self._pid_file.unlink(missing_ok=True)
        log.info("broker_stopped")

    async def _end_orphan(self) -> None:
        """A controller that was killed leaves its broker running, which holds the port and the store."""
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return
        if not await self._is_ours(pid):
            self._pid_file.unlink(missing_ok=True)
            return
        log.warning("broker_orphan_found", pid=pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        deadline = self._clock.deadline(STOP_TIMEOUT_S)
        while await self._is_ours(pid):
            if deadline.passed:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                deadline = self._clock.deadline(STOP_TIMEOUT_S)
            await self._clock.sleep(0.05)
        self._pid_file.unlink(missing_ok=True)

    async def _is_ours(self, pid: int) -> bool:
        """Whether ``pid`` is a nats-server with our configuration file: process ids are used again."""
        return str(self._config) in await _command_of(pid)


async def _command_of(pid: int) -> str:
    """The command line of a process; empty when it is gone or cannot be looked at."""
    if _PROC:
        return _command_on_linux(pid)
    try:
        process = await asyncio.create_subprocess_exec(
            "ps", "-o", "command=", "-p", str(pid), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return ""
    output, _ = await process.communicate()
    return output.decode(errors="replace")


def _command_on_linux(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
