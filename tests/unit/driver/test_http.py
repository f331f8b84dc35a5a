"""The HTTP connection, broken at every point: not sent, sent and never answered, answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import cast

import pytest

from droidfleet_agent.driver import http as http_module
from droidfleet_agent.driver.http import HttpConnection, NotSentError, UnansweredError
from droidfleet_shared.clock import Deadline, SystemClock
from support.scripted_phone import Exchange, ScriptedHttp, close, half_answer, hang, scripted_http, whole
from support.waiting import until

BODY = b'{"method": "click", "id": 1}'
SHORT_S = 0.15
LATE_S = 4.0
"""How much later than its deadline a call may end on a machine that does other things."""


def soon(seconds: float = 5.0) -> Deadline:
    return SystemClock().deadline(seconds)


@pytest.fixture
async def phone() -> AsyncIterator[ScriptedHttp]:
    async with scripted_http() as server:
        yield server


@pytest.fixture
async def connection(phone: ScriptedHttp) -> AsyncIterator[HttpConnection]:
    opened = await HttpConnection.open("127.0.0.1", phone.port, deadline=soon())
    yield opened
    opened.abort()


async def test_answers_come_one_after_another_over_one_connection(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    for _ in range(3):
        answer = await connection.request("GET", "/ping", deadline=soon())
        assert (answer.status, answer.body) == (200, b"pong")
    assert phone.connections == 1


async def test_nobody_listening_is_not_sent(kept_port: int) -> None:
    with pytest.raises(NotSentError):
        await HttpConnection.open("127.0.0.1", kept_port, deadline=soon())


async def test_connection_closed_by_the_phone_while_idle_is_not_sent(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    phone.pings.append(_answer_and_close)
    await connection.request("GET", "/ping", deadline=soon())
    await until(lambda: not connection.usable)
    with pytest.raises(NotSentError):
        await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon())
    assert phone.calls == []


async def test_close_that_the_event_loop_has_not_noticed_yet_is_seen() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watched = HttpConnection("x")
        watched.connection_made(FakeTransport(ours))
        before = watched.usable
        theirs.shutdown(socket.SHUT_RDWR)
        assert (before, watched.usable) == (True, False)


async def test_deadline_that_has_passed_is_not_sent(phone: ScriptedHttp, connection: HttpConnection) -> None:
    with pytest.raises(NotSentError):
        await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon(0))
    assert connection.usable
    assert phone.calls == []


@pytest.mark.parametrize("reaction", [close, half_answer], ids=["after the request", "within the answer"])
async def test_break_after_the_request_is_unanswered(
    phone: ScriptedHttp, connection: HttpConnection, reaction: object
) -> None:
    phone.script.append(reaction)  # type: ignore[arg-type]  # pytest's parameters are objects
    with pytest.raises(UnansweredError) as caught:
        await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon())
    assert not caught.value.silent
    assert not connection.usable


async def test_break_within_the_request_is_unanswered(phone: ScriptedHttp) -> None:
    async def take_a_little(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(10)
        writer.transport.abort()

    phone.accepted = take_a_little
    connection = await HttpConnection.open("127.0.0.1", phone.port, deadline=soon())
    with pytest.raises(UnansweredError):
        await connection.request("POST", "/jsonrpc/0", b"x" * 4_000_000, deadline=soon())


async def test_silent_phone_is_unanswered_at_the_deadline(phone: ScriptedHttp, connection: HttpConnection) -> None:
    phone.script.append(hang)
    loop = asyncio.get_running_loop()
    start = loop.time()
    with pytest.raises(UnansweredError) as caught:
        await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon(SHORT_S))
    assert caught.value.silent
    assert SHORT_S * 0.9 <= loop.time() - start < SHORT_S + LATE_S
    assert not connection.usable


async def test_answer_that_trickles_past_the_deadline_is_unanswered(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    async def trickle(exchange: Exchange) -> None:
        for byte in whole(b"x" * 100_000):
            await exchange.send(bytes([byte]))
            await asyncio.sleep(0.01)

    phone.script.append(trickle)
    with pytest.raises(UnansweredError) as caught:
        await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon(SHORT_S))
    assert caught.value.silent


async def test_cancelled_request_leaves_no_connection_for_its_late_answer(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    phone.script.append(hang)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(connection.request("POST", "/jsonrpc/0", BODY, deadline=soon()))
        await until(lambda: phone.calls)
        task.cancel()
    assert not connection.usable


async def test_bytes_that_come_when_nobody_asked_end_the_connection(connection: HttpConnection) -> None:
    connection.data_received(whole(b"late"))
    assert not connection.usable


async def test_bytes_that_nobody_asked_for_end_the_connection(phone: ScriptedHttp, connection: HttpConnection) -> None:
    async def answer_twice(exchange: Exchange) -> None:
        await exchange.answer(b"pong")
        await exchange.answer(b"late")

    phone.pings.append(answer_twice)
    assert (await connection.request("GET", "/ping", deadline=soon())).body == b"pong"
    await until(lambda: not connection.usable)


async def test_answer_without_a_length_ends_with_the_connection(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    async def until_closed(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        exchange.writer.close()

    phone.pings.append(until_closed)
    assert (await connection.request("GET", "/ping", deadline=soon())).body == b"all of it"
    assert not connection.usable


async def test_answer_that_closes_is_given_and_the_connection_is_used_no_more(
    phone: ScriptedHttp, connection: HttpConnection
) -> None:
    async def say_close(exchange: Exchange) -> None:
        await exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\npong")

    phone.pings.append(say_close)
    assert (await connection.request("GET", "/ping", deadline=soon())).body == b"pong"
    assert not connection.usable


async def test_answer_past_the_bound_is_unanswered(
    phone: ScriptedHttp, connection: HttpConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_module, "MAX_ANSWER_BYTES", 1_000)
    phone.pings.append(lambda exchange: exchange.answer(b"x" * 2_000))
    with pytest.raises(UnansweredError):
        await connection.request("GET", "/ping", deadline=soon())


class FakeTransport(asyncio.Transport):
    """Counts writes instead of sending; lets a test hand in the answer byte by byte."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__({"socket": sock})
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def abort(self) -> None:
        pass


@pytest.fixture
def transport() -> Iterator[FakeTransport]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield FakeTransport(ours)


async def test_request_leaves_in_one_write(transport: FakeTransport) -> None:
    connection = HttpConnection("localhost")
    connection.connection_made(transport)
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(connection.request("POST", "/jsonrpc/0", BODY, deadline=soon()))
        await until(lambda: transport.writes)
        connection.data_received(whole(b"x"))
    assert asked.result().body == b"x"
    assert len(transport.writes) == 1
    assert transport.writes[0].endswith(BODY)


ANSWER = whole(b'{"result": true}')


@pytest.mark.parametrize("cut", range(len(ANSWER)))
async def test_answer_cut_after_any_byte_is_unanswered(transport: FakeTransport, cut: int) -> None:
    connection = HttpConnection("localhost")
    connection.connection_made(transport)

    async def asked() -> bool:
        try:
            await connection.request("POST", "/jsonrpc/0", BODY, deadline=soon())
        except UnansweredError:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        answered = group.create_task(asked())
        await until(lambda: transport.writes)
        for byte in ANSWER[:cut]:
            connection.data_received(bytes([byte]))
        connection.connection_lost(None)
    assert not answered.result()


async def test_tcp_nodelay_is_set(connection: HttpConnection) -> None:
    sock = cast("socket.socket", connection._transport.get_extra_info("socket"))  # type: ignore[union-attr]  # it is open
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def _answer_and_close(exchange: Exchange) -> None:
    await exchange.answer(b"pong")
    exchange.writer.close()
