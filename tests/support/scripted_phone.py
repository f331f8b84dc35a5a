"""A phone's HTTP port and an adb server in a few lines, for driver tests that must break a connection at an exact byte.

Nothing here is real: the forwarded port that the adb server tells *is* the HTTP server's. Real adb and the virtual
phone are in `support.adb`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Exchange:
    """One request on one connection of the HTTP server."""

    head: bytes
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def method(self) -> str:
        """The RPC method; empty for a GET."""
        return str(json.loads(self.body)["method"]) if self.body else ""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *, status: str = "200 OK") -> None:
        await self.send(whole(body, status=status))

    async def result(self, result: object) -> None:
        await self.answer(self.envelope(result=result))

    async def error(self, message: str, *, code: int = -32001, data: str = "") -> None:
        await self.answer(self.envelope(error={"code": code, "message": message, "data": data}))

    def envelope(self, **fields: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": json.loads(self.body)["id"], **fields}).encode()


Reaction = Callable[[Exchange], Awaitable[None]]


def whole(body: bytes, *, status: str = "200 OK") -> bytes:
    """A complete answer."""
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


async def pong(exchange: Exchange) -> None:
    await exchange.answer(b"pong")


async def hang(exchange: Exchange) -> None:
    """Never answers; ends when the client goes away."""
    await exchange.reader.read()


async def close(exchange: Exchange) -> None:
    """Takes the request and closes."""
    exchange.writer.close()


async def half_answer(exchange: Exchange) -> None:
    """Closes in the middle of an answer's body."""
    answer = whole(exchange.envelope(result=True) if exchange.body else b"pong")
    await exchange.send(answer[: len(answer) - 5])
    exchange.writer.close()


def result(value: object) -> Reaction:
    return lambda exchange: exchange.result(value)


def error(message: str, *, code: int = -32001) -> Reaction:
    return lambda exchange: exchange.error(message, code=code)


@dataclass
class ScriptedHttp:
    """Answers ``/ping``; every other request takes the next reaction of the script, or gets the result True."""

    script: deque[Reaction] = field(default_factory=deque)
    pings: deque[Reaction] = field(default_factory=deque)
    calls: list[str] = field(default_factory=list)
    """The RPC methods that arrived whole, in order: the effects."""
    connections: int = 0
    port: int = 0
    accepted: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None
    """What to do with a connection instead of serving it."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.accepted is not None:
                await self.accepted(reader, writer)
                return
            while not writer.is_closing():
                exchange = await self._read(reader, writer)
                if not exchange.body:
                    await (self.pings.popleft() if self.pings else pong)(exchange)
                    continue
                self.calls.append(exchange.method)
                await (self.script.popleft() if self.script else result(True))(exchange)
        except (OSError, EOFError):
            pass  # The client is gone.
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Exchange:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        return Exchange(head, await reader.readexactly(length), reader, writer)


@dataclass
class ScriptedAdb:
    """An adb server with one phone. ``forwards`` may be changed at will; a new forward leads to ``target_port``."""

    serial: str
    target_port: int
    state: str = "device"
    forwards: list[str] = field(default_factory=list)
    shells: dict[str, str] = field(default_factory=dict)
    """What the phone prints for a command that starts so."""
    refusals: deque[str] = field(default_factory=deque)
    """Texts with which the next shell requests fail."""
    state_after_refusal: str | None = None
    """What the phone's state becomes with a refusal."""
    requests: list[str] = field(default_factory=list)
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while not writer.is_closing():
                request = (await reader.readexactly(int(await reader.readexactly(4), 16))).decode()
                self.requests.append(request)
                await self._answer(request, reader, writer)
        except (OSError, EOFError):
            pass  # The client is gone.
        finally:
            writer.close()

    async def _answer(self, request: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine = f"host-serial:{self.serial}:"
        if request.startswith(mine + "forward:tcp:0;"):
            self.forwards.append(f"{self.serial} tcp:{self.target_port} {request.partition(';')[2]}")
            writer.write(b"OKAYOKAY" + block(str(self.target_port)))
        elif request.startswith(mine + "killforward:"):
            local = request.removeprefix(mine + "killforward:")
            self.forwards[:] = [line for line in self.forwards if line.split()[1] != local]
            writer.write(b"OKAYOKAY")
        elif request == "host:list-forward":
            writer.write(b"OKAY" + block("".join(f"{line}\n" for line in self.forwards)))
        elif request == "host:devices":
            writer.write(b"OKAY" + block(f"{self.serial}\t{self.state}\n" if self.state != "absent" else ""))
        elif request == f"host:transport:{self.serial}" and self.state == "device":
            writer.write(b"OKAY")
            return
        elif request == f"host:transport:{self.serial}":
            writer.write(b"FAIL" + block(f"device '{self.serial}' not found"))
        elif request.startswith("shell:"):
            await self._shell(request.removeprefix("shell:"), reader, writer)
        elif request == "host:version":
            writer.write(b"OKAY" + block("0029"))
        else:
            writer.write(b"FAIL" + block(f"unknown host service '{request}'"))
        writer.close()

    async def _shell(self, command: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusals:
            self.state = self.state_after_refusal or self.state
            writer.write(b"FAIL" + block(self.refusals.popleft()))
            return
        writer.write(b"OKAY")
        printed = next((text for start, text in self.shells.items() if command.startswith(start)), "")
        command, separator, marker = command.partition("; echo ")
        writer.write(printed.encode() + marker.encode() + b"\n" * bool(separator))
        await writer.drain()
        if not separator:
            await reader.read()  # A command that runs until its stream is closed.


def block(text: str) -> bytes:
    return b"%04x" % len(text) + text.encode()


@contextlib.asynccontextmanager
async def scripted_http() -> AsyncIterator[ScriptedHttp]:
    http = ScriptedHttp()
    async with await asyncio.start_server(http.serve, "127.0.0.1", 0) as server:
        http.port = server.sockets[0].getsockname()[1]
        yield http


@contextlib.asynccontextmanager
async def scripted_adb(serial: str, *, target_port: int) -> AsyncIterator[ScriptedAdb]:
    adb = ScriptedAdb(serial, target_port)
    async with await asyncio.start_server(adb.serve, "127.0.0.1", 0) as server:
        adb.port = server.sockets[0].getsockname()[1]
        yield adb
