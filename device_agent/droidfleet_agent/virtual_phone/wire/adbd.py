"""The device side of one adb connection: handshake, streams, flow control.

It knows nothing of what streams carry: a `Device` decides who may connect and what each service leads to. Everything
runs in callbacks of the event loop, so that one answer costs no task and leaves in the same TCP segment as its OKAY.
Bounds: streams of one connection, bytes waiting to go out on one stream, bytes of one payload. A peer that reads
nothing is not read from either.
"""

from __future__ import annotations

import asyncio
import secrets
from abc import ABC, abstractmethod
from typing import cast

import structlog

from droidfleet_agent.virtual_phone.wire.frames import (
    MAX_PAYLOAD,
    VERSION_SKIP_CHECKSUM,
    Command,
    Frame,
    FrameError,
    FrameReader,
    encode,
)

HANDSHAKE_S = 10.0
"""Seconds within which a peer must send CNXN. adb itself gives up after ten."""

MAX_STREAMS = 256
"""Streams of one connection. The stock client opens one for each call and at most a few at once."""

MAX_WAITING_BYTES = 32 * 1024 * 1024
"""Bytes that all streams of one connection may hold for a peer that does not acknowledge. The largest single answer is
a PNG of a big screen."""

_AUTH_TOKEN = 1
_AUTH_SIGNATURE = 2
_AUTH_PUBLIC_KEY = 3
_TOKEN_BYTES = 20

log = structlog.get_logger(__name__)


class Service(ABC):
    """What a stream leads to. Called from the event loop's thread; must not block and must not raise."""

    @abstractmethod
    def received(self, data: bytes) -> None:
        """Bytes from the host. They are acknowledged when this returns."""

    def drained(self) -> None:  # noqa: B027  # most services write little and need no pump
        """Everything written so far was acknowledged: more may be written."""

    def closed(self) -> None:  # noqa: B027  # most services hold nothing
        """The stream is gone, whoever closed it. Called once, and only for a stream that was accepted."""


class Device(ABC):
    """The phone behind the connections: who may connect, and what a service name leads to."""

    @property
    @abstractmethod
    def banner(self) -> bytes:
        """The text of the device's CNXN: ``device::ro.product.name=...;ro.product.model=...;features=...``."""

    @property
    @abstractmethod
    def authorized(self) -> bool:
        """Whether a host is let in without a key. False: every host shows as `unauthorized`."""

    @abstractmethod
    def admit(self, connection: Connection) -> bool:
        """Whether this connection may stay; called once when it was made."""

    @abstractmethod
    def lost(self, connection: Connection) -> None:
        """An admitted connection is gone."""

    @abstractmethod
    def greet(self, connection: Connection) -> bool:
        """A host says hello. False: it gets no answer (the device may also have dropped the connection)."""

    @abstractmethod
    def open(self, stream: Stream, name: str) -> None:
        """A host wants a service. Call `Stream.accept` or `Stream.refuse`, now or later; neither is a hang."""


class Stream:
    """One stream of a connection. Made by `Connection`; used by services."""

    __slots__ = ("_closing", "_connection", "_in_flight", "_local", "_remote", "_service", "_waiting", "alive")

    def __init__(self, connection: Connection, local: int, remote: int) -> None:
        self._connection = connection
        self._local = local
        self._remote = remote
        self._service: Service | None = None
        self._waiting = bytearray()
        self._in_flight = False
        self._closing = False
        self.alive = True
        """Whether the stream still exists; writing to a dead one does nothing."""

    def accept(self, service: Service) -> None:
        """Tells the host that the service is there."""
        if not self.alive:
            service.closed()
            return
        self._service = service
        self._connection.send(Command.OKAY, self._local, self._remote)

    def refuse(self) -> None:
        """Tells the host that there is no such service; it sees an error `closed`."""
        if self.alive:
            self._connection.send(Command.CLSE, 0, self._remote)
            self._end()

    def write(self, data: bytes) -> None:
        """Sends in order, one unacknowledged message at a time. Past `MAX_WAITING_BYTES` the stream ends."""
        if not self.alive or self._closing:
            return
        limit = self._connection.max_payload
        if not self._in_flight and not self._waiting and len(data) <= limit:
            if data:
                self._in_flight = True
                self._connection.send(Command.WRTE, self._local, self._remote, data)
            return
        self._waiting += data
        self._connection.waiting_bytes += len(data)
        if self._connection.waiting_bytes > MAX_WAITING_BYTES:
            log.warning("stream_overflow", waiting_bytes=len(self._waiting))
            self.abort()
        elif not self._in_flight:
            self._send_next()

    def close(self) -> None:
        """Ends the stream once everything written was acknowledged."""
        if self.alive and not self._closing:
            self._closing = True
            if not self._in_flight and not self._waiting:
                self.abort()

    def abort(self) -> None:
        """Ends the stream now; what was not sent is lost."""
        if self.alive:
            self._connection.send(Command.CLSE, self._local, self._remote)
            self._end()

    def on_received(self, data: bytes) -> None:
        """A WRTE arrived."""
        if self._service is not None and not self._closing:
            self._service.received(data)
        # After the service has spoken: the answer is then not held up by the host's work on the OKAY.
        if self.alive:
            self._connection.send(Command.OKAY, self._local, self._remote)

    def on_acknowledged(self) -> None:
        """An OKAY arrived."""
        self._in_flight = False
        if self._waiting:
            self._send_next()
        elif self._closing:
            self.abort()
        elif self._service is not None:
            self._service.drained()

    def on_closed(self) -> None:
        """A CLSE arrived, or the connection was lost."""
        if self.alive:
            self._connection.send(Command.CLSE, self._local, self._remote)
            self._end()

    def _send_next(self) -> None:
        limit = self._connection.max_payload
        chunk = bytes(self._waiting[:limit])
        del self._waiting[:limit]
        self._connection.waiting_bytes -= len(chunk)
        self._in_flight = True
        self._connection.send(Command.WRTE, self._local, self._remote, chunk)

    def _end(self) -> None:
        self.alive = False
        self._connection.waiting_bytes -= len(self._waiting)
        self._waiting.clear()
        self._connection.forget(self._local)
        service, self._service = self._service, None
        if service is not None:
            service.closed()


class Connection(asyncio.Protocol):
    """One TCP connection from an adb server."""

    def __init__(self, device: Device, *, version: int = VERSION_SKIP_CHECKSUM, max_payload: int = MAX_PAYLOAD) -> None:
        self._device = device
        self._version = version
        self.max_payload = max_payload
        """Bytes of one payload: ours until the host has said its own, then the smaller."""
        self.waiting_bytes = 0
        """What its streams hold for the host; kept by the streams."""
        self._own_max_payload = max_payload
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._corked = False
        self._checksum = True
        self._online = False
        self._admitted = False
        self._host_hello: Frame | None = None
        self._handshake: asyncio.TimerHandle | None = None
        self._streams: dict[int, Stream] = {}
        self._next_local = 1

    # -- asyncio.Protocol

    @property
    def online(self) -> bool:
        """Whether both sides have said hello."""
        return self._online

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._admitted = self._device.admit(self)
        if not self._admitted:
            self._transport.abort()
            return
        self._handshake = asyncio.get_running_loop().call_later(HANDSHAKE_S, self.abort)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        self._corked = True
        try:
            for frame in self._reader.feed(data):
                self._on_frame(frame)
        except FrameError as error:
            log.info("adb_garbage", reason=str(error))
            self.abort()
        finally:
            self._corked = False
            self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._online = False
        if self._handshake is not None:
            self._handshake.cancel()
        self._close_streams()
        if self._admitted:
            self._admitted = False
            self._device.lost(self)

    def pause_writing(self) -> None:
        # The host reads more slowly than we answer: stop hearing its requests until it has caught up.
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    # -- for Stream and Device

    def send(self, command: Command, arg0: int, arg1: int, payload: bytes = b"") -> None:
        """Queues one message; messages made while one batch of input is handled leave together."""
        if self._transport is None:
            return
        self._out.append(encode(command, arg0, arg1, payload, checksum=self._checksum))
        if not self._corked:
            self._flush()

    def forget(self, local: int) -> None:
        """The stream of this number has ended."""
        self._streams.pop(local, None)

    def authorize(self) -> None:
        """Lets in a host that was kept waiting as `unauthorized`."""
        if self._host_hello is not None and not self._online:
            self._go_online(self._host_hello)

    def abort(self) -> None:
        """Drops the connection as if the cable were pulled."""
        self._out.clear()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    # -- messages

    def _flush(self) -> None:
        if self._out and self._transport is not None:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._transport.write(data)

    def _on_frame(self, frame: Frame) -> None:
        command, arg0, arg1, payload = frame
        if command is Command.CNXN:
            self._on_hello(frame)
        elif command is Command.AUTH:
            self._on_auth(arg0)
        elif not self._online:
            raise FrameError(f"{command.name} before the connection was agreed")
        elif command is Command.OPEN:
            self._on_open(arg0, payload)
        elif (stream := self._streams.get(arg1)) is None:
            return  # closed here already while this message was on its way
        elif command is Command.WRTE:
            stream.on_received(payload)
        elif command is Command.OKAY:
            stream.on_acknowledged()
        elif command is Command.CLSE:
            stream.on_closed()

    def _on_hello(self, frame: Frame) -> None:
        if self._handshake is not None:
            self._handshake.cancel()
        # A second CNXN starts the connection afresh, as on a phone.
        self._close_streams()
        self._online = False
        self._checksum = True
        self._reader.verify_checksum = False
        if not self._device.greet(self):
            return
        self._host_hello = frame
        if self._device.authorized:
            self._go_online(frame)
        else:
            self._ask_for_key()

    def _on_auth(self, kind: int) -> None:
        if self._online or self._host_hello is None:
            return
        if kind == _AUTH_SIGNATURE:
            # No key is known here. Asked once more, the host sends its public key and shows `unauthorized` meanwhile.
            self._ask_for_key()
        elif kind == _AUTH_PUBLIC_KEY and self._device.authorized:
            self._go_online(self._host_hello)

    def _ask_for_key(self) -> None:
        self.send(Command.AUTH, _AUTH_TOKEN, 0, secrets.token_bytes(_TOKEN_BYTES))

    def _go_online(self, hello: Frame) -> None:
        version = min(self._version, hello.arg0)
        self.max_payload = min(self._own_max_payload, max(1, hello.arg1))
        self.send(Command.CNXN, version, self._own_max_payload, self._device.banner)
        self._checksum = self._reader.verify_checksum = version < VERSION_SKIP_CHECKSUM
        self._online = True

    def _on_open(self, remote: int, payload: bytes) -> None:
        local = self._next_local
        self._next_local = local % 0x7FFFFFFF + 1
        stream = Stream(self, local, remote)
        self._streams[local] = stream
        if len(self._streams) > MAX_STREAMS:
            log.warning("too_many_streams", streams=MAX_STREAMS)
            stream.refuse()
            return
        self._device.open(stream, payload.rstrip(b"\0").decode("utf-8", errors="replace"))

    def _close_streams(self) -> None:
        for stream in list(self._streams.values()):
            stream.on_closed()
