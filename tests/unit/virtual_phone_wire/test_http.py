"""HTTP as the phone's automation server speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.wire import http
from droidfleet_agent.virtual_phone.wire.http import (
    MAX_BODY_BYTES,
    MAX_HEAD_BYTES,
    Answer,
    Handler,
    HttpError,
    HttpService,
    Request,
    take_request,
)

from .wires import PlainStream


class Echo(Handler):
    """Answers with the body; ``/later`` is answered by the test."""

    def __init__(self) -> None:
        self.waiting: list[HttpService] = []
        self.streams = 0

    def handle(self, request: Request, exchange: HttpService) -> None:
        if request.target == "/later":
            self.waiting.append(exchange)
        else:
            exchange.answer(Answer(request.body or request.target.encode()))

    def joined(self, service: HttpService) -> None:
        self.streams += 1

    def left(self, service: HttpService) -> None:
        self.streams -= 1


def post(body: bytes, path: str = "/jsonrpc/0", extra: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{extra}\r\n".encode() + body


def serving(handler: Handler) -> PlainStream:
    stream = PlainStream()
    stream.attach(HttpService(stream.stream, handler))
    return stream


@given(st.lists(st.binary(max_size=60), min_size=1, max_size=5), st.integers(min_value=1, max_value=40))
def test_any_chunking_gives_the_same_requests(bodies: list[bytes], step: int) -> None:
    data = b"".join(post(body) for body in bodies)
    buffer = bytearray()
    found: list[bytes] = []
    for start in range(0, len(data), step):
        buffer += data[start : start + step]
        while (request := take_request(buffer)) is not None:
            found.append(request.body)
    assert found == bodies


@given(st.binary(max_size=500))
def test_random_bytes_never_crash_the_reader(data: bytes) -> None:
    try:
        take_request(bytearray(data + b"\r\n\r\n"))
    except HttpError:
        return


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"nonsense\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (
            f"POST / HTTP/1.1\r\nContent-Length: {MAX_BODY_BYTES + 1}\r\n\r\n".encode(),
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        ),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", HTTPStatus.NOT_IMPLEMENTED),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * MAX_HEAD_BYTES, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
)
async def test_bad_requests_are_answered_and_the_connection_closed(head: bytes, status: HTTPStatus) -> None:
    stream = serving(Echo())
    assert stream.send(head).startswith(f"HTTP/1.1 {status.value} ".encode())
    assert stream.closed


async def test_connection_is_kept_for_the_next_request() -> None:
    stream = serving(Echo())
    assert stream.send(post(b"one")).endswith(b"\r\n\r\none")
    assert stream.send(post(b"two")).endswith(b"\r\n\r\ntwo")
    assert not stream.closed


async def test_head_and_body_in_two_pieces_make_one_request() -> None:
    stream = serving(Echo())
    whole = post(b"body")
    assert stream.send(whole[:-4]) == b""
    assert stream.send(whole[-4:]).endswith(b"body")


async def test_thousands_of_requests_in_one_piece_are_answered_in_order() -> None:
    stream = serving(Echo())
    answers = stream.send(b"".join(post(str(number).encode()) for number in range(3_000)))
    assert answers.count(b"HTTP/1.1 200") == 3_000
    assert answers.endswith(b"2999")


async def test_a_request_waits_for_the_answer_before_it() -> None:
    handler = Echo()
    stream = serving(handler)
    assert stream.send(post(b"", "/later") + post(b"second")) == b""
    handler.waiting[0].answer(Answer(b"first"))
    answers = stream.pump()
    assert answers.index(b"first") < answers.index(b"second")


@pytest.mark.parametrize("ask", [lambda: post(b"x", extra="Connection: close\r\n"), lambda: b"GET /x HTTP/1.0\r\n\r\n"])
async def test_client_that_wants_it_is_disconnected_after_the_answer(ask: Callable[[], bytes]) -> None:
    stream = serving(Echo())
    assert b"Connection: close" in stream.send(ask())
    assert stream.closed


async def test_a_cut_answer_promises_more_than_it_sends() -> None:
    handler = Echo()
    stream = serving(handler)
    stream.send(post(b"", "/later"))
    handler.waiting[0].answer(Answer(b"0123456789", cut=True))
    answer = stream.pump()
    assert b"Content-Length: 10\r\n" in answer
    assert answer.endswith(b"\r\n\r\n01234")
    assert stream.closed


async def test_idle_connection_is_closed_and_a_busy_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "IDLE_S", 0.05)
    handler = Echo()
    idle, busy = serving(handler), serving(handler)
    idle.send(post(b"one"))
    busy.send(post(b"", "/later"))
    async with asyncio.timeout(10):
        while not idle.closed:
            idle.pump()
            await asyncio.sleep(0.01)
    busy.pump()
    assert not busy.closed


async def test_hang_up_tells_the_handler() -> None:
    handler = Echo()
    stream = serving(handler)
    stream.hang_up()
    assert handler.streams == 0
