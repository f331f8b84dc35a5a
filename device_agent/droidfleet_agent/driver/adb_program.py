"""The adb program on this machine: where it is, and starting a server with it. Never talks to a server."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
from pathlib import Path

import structlog

from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem
from droidfleet_shared.clock import Clock

START_LIMIT_S = 20.0
"""A cold start takes 2 to 5 s on a small host; adb's own clients allow as much."""

log = structlog.get_logger(__name__)


def adb_binary() -> str:
    """The adb program: ``ADBUTILS_ADB_PATH``, else adb on PATH, else the one in adbutils' wheel (found, not imported).

    Raises:
        AdbError: there is none (``ADB_NOT_INSTALLED``).
    """
    named = os.environ.get("ADBUTILS_ADB_PATH") or shutil.which("adb")
    if named:
        return named
    spec = importlib.util.find_spec("adbutils")
    bundled = Path(spec.origin).parent / "binaries" / "adb" if spec and spec.origin else None
    if bundled and os.access(bundled, os.X_OK):
        return str(bundled)
    raise AdbError(AdbProblem.ADB_NOT_INSTALLED, "no adb program was found")


class AdbStarter:
    """Runs ``adb start-server`` for one port, one at a time.

    A run is never cut off by a caller that cannot wait: the server dies when it cannot tell its starter that it is up.
    The next caller waits for the same run, until `START_LIMIT_S` is over.
    """

    def __init__(self, port: int, *, clock: Clock) -> None:
        self._port = port
        self._clock = clock
        self._turn = asyncio.Lock()
        self._running: asyncio.subprocess.Process | None = None
        self._give_up = clock.deadline(0)

    async def run(self) -> None:
        """Returns when the start is over, well or not: the caller asks the server. A cancelled call leaves it be.

        Raises:
            AdbError: there is no adb program.
        """
        async with self._turn:
            if self._running is not None and self._give_up.passed:
                with contextlib.suppress(ProcessLookupError):
                    self._running.kill()
                await self._running.wait()
                self._running = None
            if self._running is None:
                self._give_up = self._clock.deadline(START_LIMIT_S)
                self._running = await self._launch()
            code = await self._running.wait()
            self._running = None
        log.info("adb_server_start_ended", port=self._port, exit_code=code)

    async def _launch(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                adb_binary(),
                *("-P", str(self._port), "start-server"),
                stdin=asyncio.subprocess.DEVNULL,
                # The server that stays behind inherits these: a pipe would never reach its end.
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise AdbError(AdbProblem.ADB_NOT_INSTALLED, f"adb does not run: {error}") from error
