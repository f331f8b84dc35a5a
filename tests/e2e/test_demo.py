"""The demo as a user runs it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.console import COLUMNS, Typed, first_missing, steps
from support.workplace import CHECKOUT, eventually, left_running

pytestmark = pytest.mark.e2e

DEMO_S = 180.0
"""It takes some 40 s on two idle cores; here other tests run beside it."""

STOP_S = 30.0

# `-o` keeps make from installing while tests run; nothing else differs from what the README says.
DEMO = ["make", "--no-print-directory", "-o", ".venv/.installed", "demo"]


@contextmanager
def demo(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """The demo as a foreground program of a terminal session of its own; its output goes to ``tmp_path/out``."""
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            [*DEMO, *words],
            cwd=CHECKOUT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": COLUMNS},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(STOP_S)
        for left in left_running(tmp_path):
            left.kill()


def test_demo_is_as_expected_and_leaves_nothing(tmp_path: Path) -> None:
    with demo(tmp_path) as process:
        code = process.wait(DEMO_S)
        written = (tmp_path / "out").read_text()
        assert code == 0, written
        assert left_running(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    shown = next(
        step.shown for step in steps(CHECKOUT / "README.md") if isinstance(step, Typed) and step.command == "make demo"
    )
    assert first_missing(shown, written) is None, written


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with demo(tmp_path) as process:
        eventually(lambda: len(left_running(tmp_path)) >= 4, within_s=DEMO_S, what="parts are running")
        os.killpg(process.pid, number)
        process.wait(STOP_S)
        eventually(lambda: left_running(tmp_path) == [], within_s=STOP_S, what="everything has ended")
    assert "Stopping everything." in (tmp_path / "out").read_text()


def test_kept_demo_stays_until_ctrl_c(tmp_path: Path) -> None:
    with demo(tmp_path, "KEEP=1") as process:
        out = tmp_path / "out"
        eventually(lambda: "Ctrl-C here ends everything" in out.read_text(), within_s=DEMO_S, what="it waits")
        assert "export PATH=" in out.read_text()
        os.killpg(process.pid, signal.SIGINT)
        process.wait(STOP_S)
        eventually(lambda: left_running(tmp_path) == [], within_s=STOP_S, what="everything has ended")
