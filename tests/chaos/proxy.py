"""A TCP proxy of loopback that breaks its connections on order."""

from __future__ import annotations

import asyncio
from contextlib import suppress

CHUNK_BYTES = 65_536
CONNECT_S = 5.0


class Proxy:
    """Passes bytes between whoever connects to ``port`` and a target; refuses and cuts by closing without a word."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._handlers: set[asyncio.Task[None]] = set()
        self._refusing = False
        self.port = 0
        self.broken = 0
        """Connections that were cut so far."""

    @property
    def url(self) -> str:
        """Of the broker behind it."""
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Begins to listen on a port that the system chooses."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Breaks every connection, and refuses new ones until `mend`."""
        self._refusing = True
        self.broken += len(self._open) // 2
        for writer in self._open:
            writer.transport.abort()

    def mend(self) -> None:
        """Lets connections through again."""
        self._refusing = False

    async def stop(self) -> None:
        """Ends it with all its connections."""
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        if self._handlers:
            await asyncio.wait(self._handlers, timeout=CONNECT_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        self._open.add(writer)
        try:
            if not self._refusing:
                with suppress(OSError, TimeoutError):
                    await self._pass_on(reader, writer)
        finally:
            self._handlers.discard(handler)
            self._open.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(CONNECT_S):
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._open.add(target_writer)
        try:
            if not self._refusing:
                async with asyncio.TaskGroup() as group:
                    ways = [
                        group.create_task(_copy(reader, target_writer), name="to the target"),
                        group.create_task(_copy(target_reader, writer), name="from the target"),
                    ]
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    for way in ways:
                        way.cancel()
        finally:
            self._open.discard(target_writer)
            target_writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
