"""What began is known to the next process."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from droidfleet_agent.journal import begun as module
from droidfleet_agent.journal.begun import BegunLog, UnwritableError
from support.assignments import ref

_WORDS = ("id", "attempt", "end")
"""Of one line."""


async def test_what_was_added_is_known_here_and_to_the_next_process(tmp_path: Path) -> None:
    log = BegunLog(tmp_path / "begun")
    assert ref("a") not in log
    await log.add(ref("a"))
    assert ref("a") in log
    assert ref("a") in BegunLog(tmp_path / "begun")


async def test_attempts_are_told_apart(tmp_path: Path) -> None:
    log = BegunLog(tmp_path / "begun")
    await log.add(ref("a", 1))
    assert ref("a", 2) not in log
    assert ref("a1", 1) not in log


@pytest.mark.parametrize("execution_id", ["x y", "a\nb", "\\", "é", " "])
async def test_any_id_stays_one_name(tmp_path: Path, execution_id: str) -> None:
    await BegunLog(tmp_path / "begun").add(ref(execution_id))
    again = BegunLog(tmp_path / "begun")
    assert ref(execution_id) in again
    assert ref("a") not in again


async def test_a_line_that_a_crash_cut_off_is_no_name(tmp_path: Path) -> None:
    file = tmp_path / "begun"
    await BegunLog(file).add(ref("a", 12))
    file.write_text(file.read_text()[:3])
    log = BegunLog(file)
    assert ref("a", 1) not in log
    await log.add(ref("b"))
    assert ref("b") in BegunLog(file)


async def test_the_file_is_private_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    file = tmp_path / "begun"
    log = BegunLog(file)
    for name in "abc":
        await log.add(ref(name))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    log = BegunLog(file)
    assert [ref(name) in log for name in "abc"] == [False, True, True]
    assert len(file.read_text().split()) == 2 * len(_WORDS)


async def test_a_line_that_the_disk_takes_in_parts_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr("droidfleet_agent.journal.begun.os.write", lambda descriptor, data: write(descriptor, data[:3]))
    await BegunLog(tmp_path / "begun").add(ref("execution"))
    assert ref("execution") in BegunLog(tmp_path / "begun")


async def test_what_cannot_be_written_has_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = BegunLog(tmp_path / "begun")
    monkeypatch.setattr("droidfleet_agent.journal.begun.os.write", full)
    with pytest.raises(UnwritableError, match="No space left on device"):
        await log.add(ref("a"))
    assert ref("a") not in log
