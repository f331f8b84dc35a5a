"""One adb server over its smart-socket protocol, on asyncio: devices, shells, pushes and forwarded ports.

The only module that talks to an adb server. Every request is one TCP connection with a total deadline, is cancellable,
and fails with `AdbError` and a stable code. Why not adbutils: it blocks, its effective limit is 600 s for each read,
and importing it costs every agent 13 MB and 0.1 s; only the adb binary in its wheel is used (docs/decisions).
Protocol: https://android.googlesource.com/platform/packages/modules/adb/+/refs/heads/main/docs/dev/services.md
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import structlog

from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem, refusal
from droidfleet_agent.driver.adb_program import START_LIMIT_S, AdbStarter
from droidfleet_shared.bus.messages import PhoneState
from droidfleet_shared.clock import Clock, Deadline, SystemClock
from droidfleet_shared.errors import InvalidInputError, UnavailableError

DEFAULT_PORT = 5037
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
ONLINE = "device"
"""adb's word for a phone that can be used."""
ABSENT = "absent"
"""Our word for a phone that adb does not list."""

HANDSHAKE_S = 5.0
"""Limit of a request that is no part of a caller's deadline; a healthy server answers in milliseconds."""
TRACK_RETRY_S = (0.2, 5.0)
"""First and longest pause before tracking again after the server went away."""
MAX_OUTPUT_BYTES = 32 * 1024 * 1024
"""Bound on what one shell command may print: a PNG of a large display is 10 MB."""
SYNC_CHUNK_BYTES = 64 * 1024
"""The largest DATA block of the sync protocol (SYNC_DATA_MAX)."""
END_OF_OUTPUT = "droidfleet-end-of-output"
"""Printed after each command: the stream of a command that ended and of a phone that was unplugged end alike."""
TAIL_BYTES = 8 * 1024
"""What is kept of a long-lived shell's output, for error messages."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Forward:
    """One forwarded port, as the server lists it: ``local`` and ``remote`` like ``tcp:40001``."""

    serial: str
    local: str
    remote: str


def phone_state(word: str) -> PhoneState:
    """What adb's word for a device means for a fleet."""
    if word == ONLINE:
        return PhoneState.ONLINE
    if word in {"unauthorized", "authorizing"}:
        return PhoneState.UNAUTHORIZED
    return PhoneState.OFFLINE


_NO_ANSWER = frozenset({AdbProblem.ADB_SILENT, AdbProblem.ADB_UNREACHABLE})
"""Ends of a conversation that say nothing of what became of a request."""


class CommandUnknownError(UnavailableError):
    """A command was sent, and nobody knows whether it ran."""


class ShellStream(asyncio.Protocol):
    """A shell that stays open. Its output is always read, so that the phone never blocks on it; the tail is kept."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._received = bytearray()
        self._status = asyncio.Event()
        self._accepted = False
        self.closed = asyncio.Event()

    @property
    def tail(self) -> str:
        """The last output."""
        return self._received.decode(errors="replace").strip()

    async def accepted(self, serial: str) -> None:
        """Waits until the phone has taken the command; raises its refusal."""
        await self._status.wait()
        if not self._accepted:
            raise refusal(serial, self._received[8:].decode(errors="replace"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._status.is_set():
            if not self._received.startswith(b"OKAY"):
                return  # A refusal is complete when adb closes, which it does at once.
            self._accepted = True
            del self._received[:4]
            self._status.set()
        del self._received[:-TAIL_BYTES]

    def connection_lost(self, exc: Exception | None) -> None:
        self._status.set()
        self.closed.set()

    def close(self) -> None:
        """Ends the command: adb hangs up on the phone's side."""
        self._writer.close()


class _Conversation:
    """One connection to the server: one request about it, or a switch to a phone and then one request to that phone."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, serial: str) -> None:
        self.reader = reader
        self.writer = writer
        self._serial = serial

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.writer.close()

    async def ask(self, request: str) -> None:
        """Sends a request and reads its ``OKAY``."""
        self.send(request)
        await self.expect_okay()

    def send(self, request: str) -> None:
        """Sends a request; small, so it never waits."""
        data = request.encode()
        self.writer.write(b"%04x" % len(data) + data)

    async def expect_okay(self) -> None:
        """Reads the status of a request; raises the reason of a ``FAIL``."""
        answer = await self.reader.readexactly(4)
        if answer == b"FAIL":
            raise refusal(self._serial, await self.block())
        if answer != b"OKAY":
            raise AdbError(AdbProblem.ADB_REFUSED, f"adb answered {answer!r} where OKAY was expected")

    async def block(self) -> str:
        """A text with its length in four hexadecimal digits before it."""
        length = int(await self.reader.readexactly(4), 16)
        return (await self.reader.readexactly(length)).decode(errors="replace")

    async def rest(self) -> bytes:
        """Everything until the other side closes."""
        output = bytearray()
        while chunk := await self.reader.read(SYNC_CHUNK_BYTES):
            output += chunk
            if len(output) > MAX_OUTPUT_BYTES:
                raise AdbError(AdbProblem.ADB_REFUSED, f"a command printed more than {MAX_OUTPUT_BYTES} bytes")
        return bytes(output)


class AdbServer:
    """One adb server. Address: the arguments, else ``ANDROID_ADB_SERVER_HOST`` and ``_PORT``, else 127.0.0.1:5037.

    Every method raises `AdbError` and nothing else; those with a ``deadline`` end by it (``ADB_SILENT``). Safe to share
    between tasks of one event loop: requests do not share connections.
    """

    def __init__(self, host: str | None = None, port: int | None = None, *, clock: Clock | None = None) -> None:
        self.host = host or os.environ.get("ANDROID_ADB_SERVER_HOST") or "127.0.0.1"
        self.port = port or _port_from_environment()
        self._clock = clock or SystemClock()
        self._starter = AdbStarter(self.port, clock=self._clock)

    @property
    def address(self) -> str:
        """``host:port``, for people."""
        return f"{self.host}:{self.port}"

    async def start(self, *, deadline: Deadline) -> None:
        """Starts the server unless it answers already. Only a server of this machine can be started."""
        async with self._limits(deadline):
            try:
                await self._ask("host:version")
            except OSError:
                if self.host not in LOOPBACK_HOSTS:
                    raise
                await self._starter.run()
                # Its exit code says little: when several programs start a server at once, one wins and all have one.
                await self._ask("host:version")

    async def devices(self, *, deadline: Deadline) -> Mapping[str, str]:
        """Every device that the server lists: serial to adb's word (``device``, ``offline``, ``unauthorized``, ...)."""
        async with self._limits(deadline):
            return _device_list(await self._ask("host:devices"))

    async def state(self, serial: str, *, deadline: Deadline) -> str:
        """adb's word for one phone; `ABSENT` when it is not listed. `phone_state` says what it means for a fleet."""
        return (await self.devices(deadline=deadline)).get(serial, ABSENT)

    async def connect(self, address: str, *, deadline: Deadline) -> str:
        """``adb connect``: asks the server to look for a phone at ``host:port``. Returns its sentence, good or bad."""
        async with self._limits(deadline):
            return await self._ask(f"host:connect:{address}")

    async def track(self) -> AsyncGenerator[Mapping[str, str]]:
        """The full device list at once and at every change, for ever: serial to adb's word.

        Starts the server when it does not run, and starts over when it goes away. A restart itself yields nothing;
        after it phones come back one by one, so a caller gives one some seconds before believing that it is gone.
        """
        first, longest = TRACK_RETRY_S
        pause = first
        while True:
            try:
                await self.start(deadline=self._clock.deadline(START_LIMIT_S))
                async with contextlib.aclosing(self._track_once()) as lists:
                    async for devices in lists:
                        pause = first
                        yield devices
            except AdbError as error:
                log.warning("adb_tracking_lost", address=self.address, code=error.code, reason=error.message)
            await self._clock.sleep(pause)
            pause = min(longest, pause * 2)

    async def _track_once(self) -> AsyncGenerator[Mapping[str, str]]:
        async with contextlib.AsyncExitStack() as stack:
            async with self._limits(self._clock.deadline(HANDSHAKE_S)):
                conversation = await stack.enter_async_context(await self._dial())
                await conversation.ask("host:track-devices")
            while True:
                try:
                    # No deadline: a change may take a week. A server that dies closes the connection.
                    devices = _device_list(await conversation.block())
                except (OSError, EOFError, ValueError) as error:
                    raise self._unreachable(error) from error
                yield devices

    async def shell(self, serial: str, command: str, *, deadline: Deadline) -> bytes:
        """Runs a command on a phone. Returns what it printed, errors mixed in (shell protocol 1).

        An output that was cut because the phone went away is never returned: ``STREAM_CUT``.
        """
        async with self._limits(deadline), await self._dial(serial) as conversation:
            await conversation.ask(f"host:transport:{serial}")
            await conversation.ask(f"shell:{command}; echo {END_OF_OUTPUT}")
            output, marker, _ = (await conversation.rest()).rpartition(END_OF_OUTPUT.encode())
            if not marker:
                raise AdbError(AdbProblem.STREAM_CUT, f"{serial} went away while it ran `{command}`")
            return output

    async def run_once(self, serial: str, command: str, *, deadline: Deadline) -> bytes:
        """Like `shell`, for a command that does something.

        Raises:
            CommandUnknownError: it was sent, and nobody knows whether it ran.
            AdbError: it was not sent, or refused before it ran.
        """
        sent = accepted = False
        try:
            async with self._limits(deadline), await self._dial(serial) as conversation:
                await conversation.ask(f"host:transport:{serial}")
                conversation.send(f"shell:{command}; echo {END_OF_OUTPUT}")
                sent = True
                await conversation.expect_okay()
                accepted = True
                output, marker, _ = (await conversation.rest()).rpartition(END_OF_OUTPUT.encode())
                if not marker:
                    raise AdbError(AdbProblem.STREAM_CUT, f"{serial} went away while it ran `{command}`")
                return output
        except AdbError as error:
            if accepted or (sent and not await self._is_refusal(serial, error, deadline)):
                raise CommandUnknownError(error.code, error.message, hint=error.hint) from error
            raise

    async def _is_refusal(self, serial: str, error: AdbError, deadline: Deadline) -> bool:
        """Whether an error in place of a stream's acceptance says that the phone did not take it."""
        if error.problem is not AdbProblem.STREAM_REFUSED:
            return error.problem not in _NO_ANSWER
        # adb says "closed", too, when it lost the phone before the answer came, and the command may run by then.
        try:
            return await self.state(serial, deadline=deadline) == ONLINE
        except AdbError:
            return False

    async def open_shell(self, serial: str, command: str, *, deadline: Deadline) -> ShellStream:
        """Starts a command on a phone that runs until the stream is closed, by either side."""
        async with self._limits(deadline):
            conversation = await self._dial(serial)
            try:
                await conversation.ask(f"host:transport:{serial}")
                # adb is silent until the next request, so no byte can be lost between the two readers.
                stream = ShellStream(conversation.writer)
                conversation.writer.transport.set_protocol(stream)
                conversation.send(f"shell:{command}")
                await stream.accepted(serial)
            except BaseException:
                conversation.writer.close()
                raise
            return stream

    async def push(self, serial: str, content: bytes, target: str, *, mode: int, deadline: Deadline) -> None:
        """Writes a file on a phone; ``mode`` are its permission bits."""
        async with self._limits(deadline), await self._dial(serial) as conversation:
            await conversation.ask(f"host:transport:{serial}")
            await conversation.ask("sync:")
            destination = f"{target},{stat.S_IFREG | mode}".encode()
            conversation.writer.write(_sync_frame(b"SEND", destination))
            for start in range(0, len(content), SYNC_CHUNK_BYTES):
                conversation.writer.write(_sync_frame(b"DATA", content[start : start + SYNC_CHUNK_BYTES]))
                await conversation.writer.drain()
            conversation.writer.write(struct.pack("<4sI", b"DONE", int(self._clock.now().timestamp())))
            answer, length = struct.unpack("<4sI", await conversation.reader.readexactly(8))
            if answer != b"OKAY":
                reason = (await conversation.reader.readexactly(length)).decode(errors="replace")
                raise AdbError(AdbProblem.ADB_REFUSED, f"{serial} did not take {target}: {reason}")

    async def forward(self, serial: str, remote: str, *, deadline: Deadline) -> int:
        """Forwards a free local port to ``remote`` (like ``tcp:9008``) on a phone. Returns the port."""
        async with self._limits(deadline), await self._dial(serial) as conversation:
            await conversation.ask(f"host-serial:{serial}:forward:tcp:0;{remote}")
            await conversation.expect_okay()
            return int(await conversation.block())

    async def forwards(self, *, deadline: Deadline) -> Sequence[Forward]:
        """Every forwarded port of every phone on this server."""
        async with self._limits(deadline):
            lines = (await self._ask("host:list-forward")).splitlines()
            return [Forward(*fields) for line in lines if len(fields := line.split()) == len(Forward.__slots__)]

    async def remove_forward(self, forward: Forward, *, deadline: Deadline) -> None:
        """Removes a forwarded port. adb looks at the local port alone, so the caller makes sure that it is its own."""
        async with self._limits(deadline), await self._dial(forward.serial) as conversation:
            await conversation.ask(f"host-serial:{forward.serial}:killforward:{forward.local}")

    async def _ask(self, request: str) -> str:
        async with await self._dial() as conversation:
            await conversation.ask(request)
            return await conversation.block()

    async def _dial(self, serial: str = "") -> _Conversation:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        return _Conversation(reader, writer, serial)

    @contextlib.asynccontextmanager
    async def _limits(self, deadline: Deadline) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(deadline.remaining()):
                yield
        except TimeoutError as error:
            raise AdbError(AdbProblem.ADB_SILENT, f"the adb server at {self.address} did not answer in time") from error
        except (OSError, EOFError, ValueError) as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> AdbError:
        return AdbError(AdbProblem.ADB_UNREACHABLE, f"the adb server at {self.address} does not answer: {error}")


def _sync_frame(kind: bytes, data: bytes) -> bytes:
    return struct.pack("<4sI", kind, len(data)) + data


def _device_list(text: str) -> Mapping[str, str]:
    pairs = (line.split("\t", 1) for line in text.splitlines())
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


def _port_from_environment() -> int:
    text = os.environ.get("ANDROID_ADB_SERVER_PORT") or str(DEFAULT_PORT)
    if not text.isdecimal() or not 0 < int(text) <= 65535:
        raise InvalidInputError(
            "BAD_ADB_PORT",
            f"ANDROID_ADB_SERVER_PORT is {text!r}, which is no port number.",
            hint=f"Set it to the adb server's port, or unset it for {DEFAULT_PORT}.",
        )
    return int(text)
