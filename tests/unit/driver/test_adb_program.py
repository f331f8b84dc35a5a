"""Finding and running the adb program, with a script in its place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from droidfleet_agent.driver import adb_program
from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem
from droidfleet_agent.driver.adb_program import AdbStarter, adb_binary
from droidfleet_shared.clock import SystemClock

PORT = 15_037


@pytest.fixture
def adb_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a shell script in adb's place; returns the file in which it may note what it did."""

    def write(body: str) -> Path:
        program, notes = tmp_path / "adb", tmp_path / "notes"
        program.write_text(f"#!/bin/sh\n{body}\n".replace("NOTES", str(notes)))
        program.chmod(0o755)
        monkeypatch.setenv("ADBUTILS_ADB_PATH", str(program))
        return notes

    return write


async def test_server_is_started_at_the_port(adb_script: Callable[[str], Path]) -> None:
    notes = adb_script('echo "$@" >> NOTES')
    await AdbStarter(PORT, clock=SystemClock()).run()
    assert notes.read_text() == f"-P {PORT} start-server\n"


async def test_start_outlives_a_caller_that_cannot_wait_and_the_next_one_waits_for_it(
    adb_script: Callable[[str], Path],
) -> None:
    notes = adb_script("echo begun >> NOTES; sleep 0.4; echo ended >> NOTES")
    starter = AdbStarter(PORT, clock=SystemClock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await starter.run()
    await starter.run()
    assert notes.read_text() == "begun\nended\n"


async def test_start_that_never_ends_is_given_up(
    adb_script: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adb_program, "START_LIMIT_S", 0.05)
    adb_script("exec sleep 60")
    starter = AdbStarter(PORT, clock=SystemClock())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await starter.run()
    notes = adb_script("echo begun >> NOTES")
    await starter.run()
    assert notes.read_text() == "begun\n"


async def test_machine_without_adb_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADBUTILS_ADB_PATH", "/nowhere/adb")
    with pytest.raises(AdbError) as caught:
        await AdbStarter(PORT, clock=SystemClock()).run()
    assert caught.value.problem is AdbProblem.ADB_NOT_INSTALLED
    assert "platform-tools" in caught.value.hint


def test_adb_program_is_the_one_named_then_the_one_on_path_then_the_one_in_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ADBUTILS_ADB_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert adb_binary().endswith(os.path.join("adbutils", "binaries", "adb"))  # noqa: PTH118  # a suffix, no path
    program = tmp_path / "adb"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert adb_binary() == str(program)
    monkeypatch.setenv("ADBUTILS_ADB_PATH", "/opt/adb")
    assert adb_binary() == "/opt/adb"
