"""Children of the demo: none is left running, and one that fails shows what it wrote last."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from droidfleet_demo.processes import PartFailedError, Parts

WITHIN_S = 10.0


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    yield made
    made.stop_all()


def test_part_that_ends_shows_its_last_lines(parts: Parts) -> None:
    part = parts.start("broken", [sys.executable, "-c", "print('no port'); raise SystemExit(7)"], env=os.environ)
    with pytest.raises(PartFailedError, match="broken: ended with exit code 7") as failed:
        part.wait_until(lambda: False, within_s=WITHIN_S, what="ready")
    assert failed.value.log == "no port"


def test_part_that_is_never_ready_is_given_up(parts: Parts) -> None:
    part = parts.start("idle", [sys.executable, "-c", "import time; time.sleep(60)"], env=os.environ)
    with pytest.raises(PartFailedError, match=r"idle: ready: not within 0\.2 s"):
        part.wait_until(lambda: False, within_s=0.2, what="ready")


def test_program_that_does_not_exist_is_named(parts: Parts) -> None:
    with pytest.raises(PartFailedError, match="missing: cannot run /nowhere/program"):
        parts.start("missing", ["/nowhere/program"], env=os.environ)


def test_stop_ends_grandchildren_that_ignore_the_request(parts: Parts, tmp_path: Path) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    parent = f"import subprocess, sys; sys.exit(subprocess.Popen([sys.executable, '-c', {stubborn!r}]).wait())"
    part = parts.start("family", [sys.executable, "-c", parent], env=os.environ)
    part.wait_until(lambda: "up" in (tmp_path / "family.log").read_text(), within_s=WITHIN_S, what="up")
    children = psutil.Process(part.process.pid).children(recursive=True)
    parts.stop_all()
    assert len(children) == 1
    _, alive = psutil.wait_procs(children, timeout=WITHIN_S)
    assert alive == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps a port that nobody listens on")
def test_kept_ports_are_in_a_row_and_free_for_the_parts_alone(parts: Parts) -> None:
    ports = parts.keep_ports(3)
    assert ports == list(range(ports[0], ports[0] + 3))
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", ports[1]))
    parts.stop_all()
    with socket.socket() as next_user:
        next_user.bind(("127.0.0.1", ports[1]))


def test_ports_in_a_row_leave_out_those_in_use(parts: Parts) -> None:
    with ExitStack() as stack:
        held = {stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(200)}
        assert held.isdisjoint(parts.keep_ports(5))
