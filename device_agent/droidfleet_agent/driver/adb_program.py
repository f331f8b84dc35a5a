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


async def start_program(port: int) -> None:
    """Runs ``adb start-server``, which returns when a server answers at ``port``. Ended when the caller is cancelled.

    Raises:
        AdbError: there is no adb program, or it could not start a server.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            adb_binary(),
            *("-P", str(port), "start-server"),
            stdin=asyncio.subprocess.DEVNULL,
            # The server that stays behind inherits these: a pipe would never reach its end.
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise AdbError(AdbProblem.ADB_NOT_INSTALLED, f"adb does not run: {error}") from error
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    if code != 0:
        raise AdbError(AdbProblem.ADB_UNREACHABLE, f"`adb start-server` ended with code {code}")
    log.info("adb_server_started", port=port)
