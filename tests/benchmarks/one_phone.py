"""A virtual phone in a process of its own behind a private adb server, so that its work is not counted as anybody's."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from support import adb as adb_support

READY_S = 30.0


@dataclass(frozen=True, slots=True)
class ConnectedPhone:
    """Where the phone is: its serial, and the port of the adb server that knows it."""

    serial: str
    adb_port: int


@contextmanager
def connected_phone(*, latency: str) -> Iterator[ConnectedPhone]:
    """The shop on a phone with this latency profile, connected and listed as `device`."""
    with tempfile.TemporaryDirectory() as home, _phone(latency) as phone_port:
        server = adb_support.AdbServer(port=_free_port(), home=Path(home))
        try:
            server.start()
            serial = server.connect(f"127.0.0.1:{phone_port}")
            yield ConnectedPhone(serial, server.port)
        finally:
            server.stop()


@dataclass(frozen=True, slots=True)
class ConnectedPhones:
    """Several phones, and the port of the adb server that knows them."""

    serials: tuple[str, ...]
    adb_port: int


@contextmanager
def connected_phones(count: int) -> Iterator[ConnectedPhones]:
    """Shops without latency, connected and listed as `device`."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ports = [stack.enter_context(_phone("zero")) for _ in range(count)]
        server = adb_support.AdbServer(port=_free_port(), home=home)
        stack.callback(server.stop)
        server.start()
        yield ConnectedPhones(tuple(server.connect(f"127.0.0.1:{port}") for port in ports), server.port)


@contextmanager
def _phone(latency: str) -> Iterator[int]:
    port = _free_port()
    process = subprocess.Popen(
        [
            Path(sys.executable).parent / "droidfleet-phone",
            *("--scenario", "shop", "--port", str(port), "--latency", latency),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        adb_support.wait_for(lambda: _listens(port), timeout_s=READY_S, what=f"the phone on port {port}")
        yield port
    finally:
        process.terminate()
        process.wait(READY_S)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
