"""What a test session owns: a home and a folder for temporary files, and every process that it or those started.

Each pytest process (with xdist: each worker) is a session of its own. Its environment carries a mark that all its
descendants inherit, also those that leave their parents, as adb's server does; what still runs at the end is ended,
and fails the session. Never looks at processes without the mark.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import psutil
import pytest

MARK = "PYTEST_SESSION_MARK"
"""Not of the prefixes that the demo and the end-to-end tests keep from their programs."""

TEST = "PYTEST_CURRENT_TEST"
"""Set by pytest: a process keeps the one that it was started in."""

FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")

END_S = 5.0
"""For processes that have been told to end, such as an adb server, which confirms before it does."""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that should have ended, and the test that started it or its ancestor."""

    process: psutil.Process
    command: str
    test: str

    def __str__(self) -> str:
        return f"{self.process.pid} {self.command} (started in {self.test})"


def running(mark: str) -> list[Survivor]:
    """The processes that carry this mark, without this one."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get(MARK) == mark and process.pid != os.getpid():
                found.append(Survivor(process, " ".join(process.cmdline()), environment.get(TEST, "no test")))
        except psutil.Error:  # it has ended, or belongs to somebody else
            continue
    return found


def survivors(mark: str, *, within_s: float = END_S) -> list[Survivor]:
    """The processes that carry this mark and do not end within this time; they are killed."""
    found = running(mark)
    psutil.wait_procs([each.process for each in found], timeout=within_s)
    left = running(mark)
    for each in left:
        try:
            each.process.kill()
        except psutil.NoSuchProcess:
            continue
    return left


@pytest.fixture(scope="session", autouse=True)
def session_mark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The mark of this session's processes. Programs find their home, and room for temporary files, in its folder."""
    mark = f"{os.getpid()}-{uuid4().hex}"
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts `make test &` so, and programs that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(MARK, mark)
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        environment.setenv("TMPDIR", str(tmp_path_factory.mktemp("tmp")))
        for folder in FOLDERS:
            environment.delenv(folder, raising=False)
        yield mark
    left = survivors(mark)
    if left:
        pytest.fail("still running at the session's end:\n" + "\n".join(map(str, left)), pytrace=False)
