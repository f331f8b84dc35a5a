"""A host for `Connection` and a stream for services, without any socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from droidfleet_agent.virtual_phone.wire.adbd import Connection, Device, Service, Stream
from droidfleet_agent.virtual_phone.wire.frames import (
    VERSION_SKIP_CHECKSUM,
    Command,
    Frame,
    FrameReader,
    encode,
)

HOST_MAX_PAYLOAD = 1024 * 1024
BANNER = b"device::ro.product.name=x;ro.product.model=y;ro.product.device=z"


class FakeTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = False
        self.reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Recorder(Service):
    """Keeps what it is told; answers with what ``reply`` makes of it."""

    def __init__(self, stream: Stream, reply: Callable[[bytes], bytes] = lambda _: b"") -> None:
        self.stream = stream
        self.reply = reply
        self.heard: list[bytes] = []
        self.drains = 0
        self.closes = 0

    def received(self, data: bytes) -> None:
        self.heard.append(data)
        self.stream.write(self.reply(data))

    def drained(self) -> None:
        self.drains += 1

    def closed(self) -> None:
        self.closes += 1


class FakeDevice(Device):
    """Accepts ``echo:`` and keeps ``later:`` waiting; refuses everything else."""

    def __init__(self, *, authorized: bool = True) -> None:
        self.is_authorized = authorized
        self.admits = True
        self.services: list[Recorder] = []
        self.waiting: list[Stream] = []
        self.gone = 0

    @property
    def banner(self) -> bytes:
        return BANNER

    @property
    def authorized(self) -> bool:
        return self.is_authorized

    def admit(self, connection: Connection) -> bool:
        return self.admits

    def lost(self, connection: Connection) -> None:
        self.gone += 1

    def greet(self, connection: Connection) -> bool:
        return True

    def open(self, stream: Stream, name: str) -> None:
        if name == "echo:":
            service = Recorder(stream, lambda data: data)
            self.services.append(service)
            stream.accept(service)
        elif name == "later:":
            self.waiting.append(stream)
        else:
            stream.refuse()


class FakeHost:
    """The adb server's side of one connection. Must be made within a running loop."""

    def __init__(self, device: Device, *, max_payload: int = HOST_MAX_PAYLOAD) -> None:
        self.connection = Connection(device)
        self.transport = FakeTransport()
        self.connection.connection_made(self.transport)
        self.max_payload = max_payload
        self._reader = FrameReader()
        self._read = 0

    def send(self, command: Command, arg0: int, arg1: int, payload: bytes = b"", *, checksum: bool = False) -> None:
        """One message to the device."""
        self.connection.data_received(encode(command, arg0, arg1, payload, checksum=checksum))

    def received(self) -> list[Frame]:
        """Messages from the device since the last call."""
        data = b"".join(self.transport.written[self._read :])
        self._read = len(self.transport.written)
        return self._reader.feed(data)

    def connect(self, version: int = VERSION_SKIP_CHECKSUM) -> Frame:
        """Says hello; returns the device's answer."""
        self.send(Command.CNXN, version, self.max_payload, b"host::features=shell_v2", checksum=True)
        (answer,) = self.received()
        return answer

    def open(self, name: str, *, host_id: int = 1) -> int:
        """Opens an accepted stream; returns the device's number for it."""
        self.send(Command.OPEN, host_id, 0, name.encode() + b"\0")
        (answer,) = self.received()
        assert answer.command is Command.OKAY
        assert answer.arg1 == host_id
        return answer.arg0


class PlainStream:
    """A stream of a connected host, with what was written to it so far."""

    def __init__(self, *, max_payload: int = HOST_MAX_PAYLOAD) -> None:
        device = FakeDevice()
        self.host = FakeHost(device, max_payload=max_payload)
        self.host.connect()
        self.host.send(Command.OPEN, 1, 0, b"later:\0")
        (self.stream,) = device.waiting
        self.output = b""
        self.closed = False

    def attach(self, service: Service) -> None:
        """Gives the stream its service."""
        self.stream.accept(service)
        self.pump()

    def send(self, data: bytes) -> bytes:
        """Sends data to the service and returns what it wrote, acknowledging all of it."""
        self.host.send(Command.WRTE, 1, 1, data)
        return self.pump()

    def pump(self) -> bytes:
        """Acknowledges until nothing more comes; returns what came."""
        before = len(self.output)
        while frames := self.host.received():
            for frame in frames:
                if frame.command is Command.WRTE:
                    self.output += frame.payload
                    self.host.send(Command.OKAY, 1, frame.arg0)
                elif frame.command is Command.CLSE:
                    self.closed = True
        return self.output[before:]

    def hang_up(self) -> None:
        """The host closes the stream."""
        self.host.send(Command.CLSE, 1, 1)
