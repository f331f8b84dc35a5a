"""HTTP/1.1 as the phone's automation server (NanoHTTPD) speaks it: requests in, answers out, one stream at a time.

Written by hand because it is the hot path of every test and benchmark, and because it must behave like the phone's: it
keeps connections alive, closes an idle one after five seconds, and takes a request in any number of pieces.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from http import HTTPStatus

from droidfleet_agent.virtual_phone.wire.adbd import Service, Stream

IDLE_S = 5.0
"""NanoHTTPD's socket read timeout, seconds: an idle connection is closed then. Source: its SOCKET_READ_TIMEOUT."""

MAX_HEAD_BYTES = 8 * 1024
"""NanoHTTPD's own limit for a request's head."""

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Far above any call; the longest is a text set from a clipboard."""

TEXT = b"text/plain"
JSON = b"application/json"


class HttpError(Exception):
    """The request cannot be served; the connection is closed after the answer."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


@dataclass(frozen=True, slots=True)
class Request:
    """One request. ``target`` is the path with its query."""

    method: str
    target: str
    body: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back. ``cut``: only half of the body is sent, and the connection closed."""

    body: bytes
    content_type: bytes = JSON
    status: HTTPStatus = HTTPStatus.OK
    cut: bool = False


class Handler(ABC):
    """Who answers the requests of a stream."""

    @abstractmethod
    def handle(self, request: Request, exchange: HttpService) -> None:
        """Answers by `HttpService.answer` or ends the stream; now, later, or (a hang) never."""

    @abstractmethod
    def joined(self, service: HttpService) -> None:
        """A stream was opened."""

    @abstractmethod
    def left(self, service: HttpService) -> None:
        """A stream is gone."""


def take_request(buffer: bytearray) -> Request | None:
    """Cuts the first whole request off the buffer; None when there is none yet. Raises `HttpError`."""
    head_end = buffer.find(b"\r\n\r\n")
    if head_end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise HttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        return None
    if head_end > MAX_HEAD_BYTES:
        raise HttpError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    line, *headers = buffer[:head_end].decode("latin-1").split("\r\n")
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise HttpError(HTTPStatus.BAD_REQUEST)
    length = 0
    keep_alive = words[2] != "HTTP/1.0"
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon:
            raise HttpError(HTTPStatus.BAD_REQUEST)
        match name.lower():
            case "content-length":
                length = _content_length(value.strip())
            case "connection":
                keep_alive = value.strip().lower() != "close"
            case "transfer-encoding":
                raise HttpError(HTTPStatus.NOT_IMPLEMENTED)
    body_start = head_end + 4
    if len(buffer) < body_start + length:
        return None
    body = bytes(buffer[body_start : body_start + length])
    del buffer[: body_start + length]
    return Request(words[0], words[1], body, keep_alive)


def _content_length(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise HttpError(HTTPStatus.BAD_REQUEST)
    # Compared as text first: int() of a megabyte of digits is slow.
    if len(value) > len(str(MAX_BODY_BYTES)) or int(value) > MAX_BODY_BYTES:
        raise HttpError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return int(value)


def encode_answer(answer: Answer, *, keep_alive: bool) -> bytes:
    """Head and body in one piece, so that they leave in one adb message."""
    return b"HTTP/1.1 %d %s \r\nContent-Type: %s\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n%s" % (
        answer.status,
        answer.status.phrase.encode(),
        answer.content_type,
        b"keep-alive" if keep_alive else b"close",
        len(answer.body),
        answer.body[: len(answer.body) // 2] if answer.cut else answer.body,
    )


class HttpService(Service):
    """One stream to the automation server: requests one after another, each answered before the next is read."""

    def __init__(self, stream: Stream, handler: Handler) -> None:
        self._stream = stream
        self._handler = handler
        self._buffer = bytearray()
        self._current: Request | None = None
        self._working = False
        self._loop = asyncio.get_running_loop()
        self._last_heard = self._loop.time()
        # The loop's own timer, not the clock: this is the time of the real socket on the other side of the adb server.
        self._idle = self._loop.call_later(IDLE_S, self._check_idle)
        handler.joined(self)

    def received(self, data: bytes) -> None:
        self._buffer += data
        self._last_heard = self._loop.time()
        if self._current is None:
            self._work()
        elif len(self._buffer) > MAX_HEAD_BYTES + MAX_BODY_BYTES:
            self.abort()

    def closed(self) -> None:
        self._idle.cancel()
        self._buffer.clear()
        self._handler.left(self)

    def answer(self, answer: Answer) -> None:
        """Sends the answer to the request at hand and goes on with the next."""
        request, self._current = self._current, None
        keep_alive = request is not None and request.keep_alive and not answer.cut
        self._stream.write(encode_answer(answer, keep_alive=keep_alive))
        self._last_heard = self._loop.time()
        if not keep_alive:
            self._stream.close()
        elif self._buffer and not self._working:
            self._work()

    def abort(self) -> None:
        """Ends the stream without an answer."""
        self._stream.abort()

    def _work(self) -> None:
        # A loop, not `answer` calling this again: thousands of tiny requests may come in one piece.
        self._working = True
        try:
            while self._buffer and self._current is None and self._stream.alive:
                self._current = take_request(self._buffer)
                if self._current is None:
                    return
                self._handler.handle(self._current, self)
        except HttpError as error:
            self._buffer.clear()
            self.answer(Answer(error.status.phrase.encode(), TEXT, error.status))
        finally:
            self._working = False

    def _check_idle(self) -> None:
        idle_s = self._loop.time() - self._last_heard
        if self._current is None and idle_s >= IDLE_S:
            self._stream.close()
            return
        again_s = IDLE_S if self._current is not None else IDLE_S - idle_s
        self._idle = self._loop.call_later(again_s, self._check_idle)
