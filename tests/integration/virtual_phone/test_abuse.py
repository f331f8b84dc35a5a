"""Strangers on the port, clients that give up, and floods: a phone stays up and its real host keeps it."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from droidfleet_agent.virtual_phone.wire.adbd import MAX_WAITING_BYTES
from droidfleet_agent.virtual_phone.wire.device import MAX_CONNECTIONS
from droidfleet_agent.virtual_phone.wire.files import JAR_PATH
from droidfleet_agent.virtual_phone.wire.frames import VERSION_SKIP_CHECKSUM, Command, encode
from support.adb import AdbServer, RunningPhone, wait_for

pytestmark = pytest.mark.integration


def connect(phone: RunningPhone) -> socket.socket:
    return socket.create_connection(("127.0.0.1", phone.port), timeout=30)


def works(adb: AdbServer, phone: RunningPhone) -> bool:
    return adb.run("-s", phone.address, "shell", "echo works") == "works\n"


@pytest.fixture
def raw_host(phone: RunningPhone) -> Iterator[socket.socket]:
    """A host of our own that has said hello."""
    with closing(connect(phone)) as connection:
        connection.sendall(encode(Command.CNXN, VERSION_SKIP_CHECKSUM, 1 << 20, b"host::", checksum=True))
        assert connection.recv(4) == b"CNXN"
        yield connection


@pytest.mark.parametrize("seed", range(5))
def test_garbage_ends_its_own_connection_only(adb_server: AdbServer, phone: RunningPhone, seed: int) -> None:
    with closing(connect(phone)) as stranger:
        stranger.sendall(random.Random(seed).randbytes(4_000))
        assert stranger.recv(1_000) == b""
    assert works(adb_server, phone)


def test_garbage_after_a_proper_hello_ends_its_own_connection_only(
    adb_server: AdbServer, phone: RunningPhone, raw_host: socket.socket
) -> None:
    raw_host.sendall(b"\xff" * 64)
    while raw_host.recv(1_000):
        pass
    assert works(adb_server, phone)


def test_a_thousand_silent_connections_keep_nobody_out(adb_server: AdbServer, phone: RunningPhone) -> None:
    with ExitStack() as stack:
        for _ in range(1_000):
            stack.enter_context(closing(connect(phone)))
        assert works(adb_server, phone)
        adb_server.disconnect(phone.address)
        adb_server.connect(phone.address)
        assert works(adb_server, phone)


def test_hosts_beyond_the_bound_are_dropped(phone: RunningPhone) -> None:
    hello = encode(Command.CNXN, VERSION_SKIP_CHECKSUM, 1 << 20, b"host::", checksum=True)
    with ExitStack() as stack:
        answers = []
        for _ in range(MAX_CONNECTIONS + 5):
            host = stack.enter_context(closing(connect(phone)))
            try:
                host.sendall(hello)
                answers.append(host.recv(4))
            except ConnectionError:
                answers.append(b"")
    assert answers.count(b"CNXN") == MAX_CONNECTIONS - 1  # one is the adb server


def test_half_open_streams_end_with_their_connection(
    adb_server: AdbServer, phone: RunningPhone, raw_host: socket.socket
) -> None:
    for number in range(1, 101):
        raw_host.sendall(encode(Command.OPEN, number, 0, b"shell:sleep 1000\0"))
    wait_for(lambda: phone.do(lambda handle: handle.tasks) >= 100, timeout_s=30, what="the commands to run")
    raw_host.close()
    wait_for(lambda: phone.do(lambda handle: handle.tasks) == 0, timeout_s=30, what="the commands to end")
    assert works(adb_server, phone)


def test_host_that_never_acknowledges_costs_a_bounded_amount(
    adb_server: AdbServer, phone: RunningPhone, raw_host: socket.socket
) -> None:
    for number in range(1, 100):
        raw_host.sendall(encode(Command.OPEN, number, 0, f"shell:cat {JAR_PATH}\0".encode()))
    assert works(adb_server, phone)
    assert phone.do(lambda handle: handle.waiting_bytes) <= MAX_WAITING_BYTES


def test_message_that_stops_in_the_middle_is_dropped_with_its_connection(
    adb_server: AdbServer, phone: RunningPhone, raw_host: socket.socket
) -> None:
    raw_host.sendall(struct.pack("<6I", Command.OPEN, 1, 0, 100, 0, Command.OPEN ^ 0xFFFFFFFF) + b"shell:")
    raw_host.close()
    assert works(adb_server, phone)
