"""One adb connection: who gets in, how streams open, flow and close, and what garbage does."""

from __future__ import annotations

from droidfleet_agent.virtual_phone.wire import adbd
from droidfleet_agent.virtual_phone.wire.frames import (
    MAX_PAYLOAD,
    VERSION_SKIP_CHECKSUM,
    VERSION_WITH_CHECKSUM,
    Command,
)

from .wires import BANNER, FakeDevice, FakeHost

AUTH_TOKEN, AUTH_SIGNATURE, AUTH_PUBLIC_KEY = 1, 2, 3


async def test_hello_is_answered_with_the_banner_and_our_limit() -> None:
    answer = FakeHost(FakeDevice()).connect()
    assert answer == (Command.CNXN, VERSION_SKIP_CHECKSUM, MAX_PAYLOAD, BANNER)


async def test_old_host_gets_checksums_in_every_message() -> None:
    host = FakeHost(FakeDevice())
    host.connect(VERSION_WITH_CHECKSUM)
    host.send(Command.OPEN, 1, 0, b"echo:\0", checksum=True)
    host.send(Command.WRTE, 1, 1, b"abc", checksum=True)
    echoed = host.transport.written[-1]
    assert echoed[16:20] == sum(b"abc").to_bytes(4, "little")


async def test_old_host_with_a_wrong_checksum_is_dropped() -> None:
    host = FakeHost(FakeDevice())
    host.connect(VERSION_WITH_CHECKSUM)
    host.send(Command.OPEN, 1, 0, b"echo:\0", checksum=False)
    assert host.transport.aborted


async def test_hello_without_checksum_is_taken_as_from_an_adb_server_that_reconnects() -> None:
    host = FakeHost(FakeDevice())
    host.send(Command.CNXN, VERSION_SKIP_CHECKSUM, 4096, b"host::", checksum=False)
    assert [frame.command for frame in host.received()] == [Command.CNXN]


async def test_unauthorized_host_is_asked_for_a_key_until_somebody_allows_it() -> None:
    device = FakeDevice(authorized=False)
    host = FakeHost(device)
    assert host.connect()[:2] == (Command.AUTH, AUTH_TOKEN)
    host.send(Command.AUTH, AUTH_SIGNATURE, 0, b"signature")
    assert [frame.command for frame in host.received()] == [Command.AUTH]
    host.send(Command.AUTH, AUTH_PUBLIC_KEY, 0, b"key")
    assert host.received() == []
    device.is_authorized = True
    host.connection.authorize()
    assert [frame.command for frame in host.received()] == [Command.CNXN]


async def test_unauthorized_host_cannot_open_a_stream() -> None:
    host = FakeHost(FakeDevice(authorized=False))
    host.connect()
    host.send(Command.OPEN, 1, 0, b"echo:\0")
    assert host.transport.aborted


async def test_echo_and_its_acknowledgement_leave_in_one_piece() -> None:
    host = FakeHost(FakeDevice())
    host.connect()
    host.open("echo:")
    before = len(host.transport.written)
    host.send(Command.WRTE, 1, 1, b"abc")
    assert len(host.transport.written) == before + 1
    assert [frame.command for frame in host.received()] == [Command.WRTE, Command.OKAY]


async def test_unknown_service_is_refused_with_close() -> None:
    host = FakeHost(FakeDevice())
    host.connect()
    host.send(Command.OPEN, 7, 0, b"nonsense:\0")
    assert host.received() == [(Command.CLSE, 0, 7, b"")]


async def test_large_answer_goes_out_one_acknowledged_piece_at_a_time() -> None:
    device = FakeDevice()
    host = FakeHost(device, max_payload=10)
    host.connect()
    local = host.open("echo:")
    device.services[0].stream.write(b"0123456789abcdefghijXYZ")
    assert [frame.payload for frame in host.received()] == [b"0123456789"]
    host.send(Command.OKAY, 1, local)
    assert [frame.payload for frame in host.received()] == [b"abcdefghij"]
    host.send(Command.OKAY, 1, local)
    assert [frame.payload for frame in host.received()] == [b"XYZ"]
    assert device.services[0].drains == 0
    host.send(Command.OKAY, 1, local)
    assert device.services[0].drains == 1


async def test_close_waits_until_everything_written_was_acknowledged() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    local = host.open("echo:")
    device.services[0].stream.write(b"last words")
    device.services[0].stream.close()
    assert [frame.command for frame in host.received()] == [Command.WRTE]
    host.send(Command.OKAY, 1, local)
    assert [frame.command for frame in host.received()] == [Command.CLSE]
    assert device.services[0].closes == 1


async def test_host_close_is_answered_and_told_to_the_service_once() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    local = host.open("echo:")
    host.send(Command.CLSE, 1, local)
    host.send(Command.CLSE, 1, local)
    assert [frame.command for frame in host.received()] == [Command.CLSE]
    assert device.services[0].closes == 1


async def test_lost_connection_closes_every_stream() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    host.open("echo:", host_id=1)
    host.open("echo:", host_id=2)
    host.connection.connection_lost(None)
    assert [service.closes for service in device.services] == [1, 1]
    assert device.gone == 1


async def test_stream_accepted_after_the_host_gave_up_is_closed_at_once() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    host.send(Command.OPEN, 1, 0, b"later:\0")
    host.connection.connection_lost(None)
    late = device.services
    device.open(device.waiting[0], "echo:")
    assert [service.closes for service in late] == [1]


async def test_more_streams_than_the_limit_are_refused() -> None:
    host = FakeHost(FakeDevice())
    host.connect()
    for number in range(adbd.MAX_STREAMS):
        host.open("echo:", host_id=number + 1)
    host.send(Command.OPEN, 9_999, 0, b"echo:\0")
    assert host.received() == [(Command.CLSE, 0, 9_999, b"")]


async def test_stream_that_nobody_acknowledges_ends_at_its_bound() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    host.open("echo:")
    stream = device.services[0].stream
    for _ in range(adbd.MAX_WAITING_BYTES // MAX_PAYLOAD + 2):
        stream.write(bytes(MAX_PAYLOAD))
    assert not stream.alive


async def test_streams_of_one_connection_share_the_bound() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    host.open("echo:", host_id=1)
    host.open("echo:", host_id=2)
    first, second = (service.stream for service in device.services)
    first.write(bytes(MAX_PAYLOAD))
    first.write(bytes(adbd.MAX_WAITING_BYTES - 10))
    second.write(bytes(MAX_PAYLOAD))
    second.write(bytes(20))
    assert (first.alive, second.alive) == (True, False)
    assert host.connection.waiting_bytes == adbd.MAX_WAITING_BYTES - 10


async def test_host_that_reads_nothing_is_not_read_from() -> None:
    host = FakeHost(FakeDevice())
    host.connection.pause_writing()
    assert not host.transport.reading
    host.connection.resume_writing()
    assert host.transport.reading


async def test_garbage_drops_the_connection() -> None:
    host = FakeHost(FakeDevice())
    host.connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert host.transport.aborted


async def test_connection_over_the_phones_limit_is_dropped_and_never_counted() -> None:
    device = FakeDevice()
    device.admits = False
    host = FakeHost(device)
    host.connection.connection_lost(None)
    assert host.transport.aborted
    assert device.gone == 0


async def test_second_hello_starts_afresh() -> None:
    device = FakeDevice()
    host = FakeHost(device)
    host.connect()
    host.open("echo:")
    host.send(Command.CNXN, VERSION_SKIP_CHECKSUM, 4096, b"host::")
    assert [frame.command for frame in host.received()] == [Command.CLSE, Command.CNXN]
    assert device.services[0].closes == 1
