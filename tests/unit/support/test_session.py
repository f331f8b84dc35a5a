"""What guards the suite itself: a program that outlives its session is found, named and ended."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest

from support.session import MARK, survivors

ORPHAN = """
import subprocess, sys
idle = [sys.executable, "-c", "import time; time.sleep(60)"]
child = subprocess.Popen(idle, stdout=subprocess.DEVNULL, start_new_session=True)
print(child.pid)
"""


def test_orphan_in_a_session_of_its_own_is_found_named_and_ended(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    mark = f"{os.getpid()}-this"  # not the session's, whose adb server goes on
    monkeypatch.setenv(MARK, mark)
    pid = int(subprocess.run([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, check=True, timeout=30).stdout)
    (orphan,) = survivors(mark, within_s=0)
    assert orphan.process.pid == pid
    assert request.node.name in str(orphan)
    psutil.wait_procs([orphan.process], timeout=10)
    assert not psutil.pid_exists(pid)


def test_processes_of_others_are_left_alone() -> None:
    assert survivors(f"{os.getpid()}-another", within_s=0) == []
