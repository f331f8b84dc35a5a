"""The proxy passes bytes on, breaks what is open, and refuses until it is mended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from chaos.proxy import Proxy

SOON_S = 10.0


@asynccontextmanager
async def proxied_echo() -> AsyncIterator[Proxy]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    proxy = Proxy(server.sockets[0].getsockname()[1])
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
        server.close()


async def ask(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A connection, and what came back of a word; nothing when it was closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"word")
    return reader, writer, await ended(reader)


async def ended(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(SOON_S):
        try:
            return await reader.read(100)
        except ConnectionError:
            return b""


async def test_bytes_pass() -> None:
    async with proxied_echo() as proxy:
        _, writer, answer = await ask(proxy)
        assert answer == b"word"
        writer.close()


async def test_a_cut_breaks_what_is_open() -> None:
    async with proxied_echo() as proxy:
        reader, writer, _ = await ask(proxy)
        proxy.cut()
        assert await ended(reader) == b""
        assert proxy.broken == 1
        writer.close()


@pytest.mark.parametrize("mended", [False, True])
async def test_a_cut_proxy_refuses_until_it_is_mended(mended: bool) -> None:
    async with proxied_echo() as proxy:
        proxy.cut()
        if mended:
            proxy.mend()
        _, writer, answer = await ask(proxy)
        assert answer == (b"word" if mended else b"")
        writer.close()


async def test_nobody_behind_it_looks_like_a_closed_connection() -> None:
    async with proxied_echo() as proxy:
        proxy._target_port = 1
        _, writer, answer = await ask(proxy)
        assert answer == b""
        writer.close()
