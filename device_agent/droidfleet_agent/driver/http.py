"""One kept-alive HTTP/1.1 connection on asyncio: one request at a time, each in one write, each with a total deadline.

Its errors keep apart what matters for an action: `NotSentError` (no byte left this program) and `UnansweredError` (some
did, and no complete answer came). It never repeats a request and never connects anew. asyncio sets TCP_NODELAY.
"""

from __future__ import annotations

import asyncio
import select
from dataclasses import dataclass
from functools import partial
from typing import Self, cast

import h11

from droidfleet_shared.clock import Deadline
from droidfleet_shared.errors import UnavailableError

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Bound on one answer. The largest real ones are screenshots as base64 (3 MB) and hierarchies of web pages (10 MB)."""


class NotSentError(UnavailableError):
    """Nothing of the request was written."""

    def __init__(self, message: str) -> None:
        super().__init__("LINK_DOWN", message)


class UnansweredError(UnavailableError):
    """The request was written, wholly or in part, and no complete answer came. ``silent``: the time ran out."""

    def __init__(self, message: str, *, silent: bool = False) -> None:
        super().__init__("PHONE_SILENT" if silent else "LINK_BROKEN", message)
        self.silent = silent


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer."""

    status: int
    body: bytes


class HttpConnection(asyncio.Protocol):
    """One connection. After any error, a cancelled request, or an answer that closes, `usable` is false for good."""

    def __init__(self, host: str) -> None:
        self._headers = ((b"Host", host.encode()), (b"Content-Type", b"application/json"))
        self._http = h11.Connection(h11.CLIENT)
        self._transport: asyncio.Transport | None = None
        self._readable = select.poll()
        self._pending: asyncio.Future[Answer] | None = None
        self._status = 0
        self._body = bytearray()

    @classmethod
    async def open(cls, host: str, port: int, *, deadline: Deadline) -> Self:
        """Connects.

        Raises:
            NotSentError: nobody listens, or not by the deadline.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(deadline.remaining()):
                _, connection = await loop.create_connection(lambda: cls(host), host, port)
        except OSError as error:  # TimeoutError is one.
            raise NotSentError(f"no connection to {host}:{port} ({type(error).__name__})") from error
        return connection

    @property
    def usable(self) -> bool:
        """Whether a request may be written: open, idle, and neither an end nor stray bytes are waiting to be read."""
        return self._transport is not None and self._pending is None and not self._readable.poll(0)

    async def request(self, method: str, target: str, body: bytes = b"", *, deadline: Deadline) -> Answer:
        """Writes one request and waits for its answer, whatever its status.

        Raises:
            NotSentError: the connection was closed before, or there is no time left.
            UnansweredError: anything after the first byte was written.
        """
        if deadline.passed:
            raise NotSentError("no time left")
        if self._transport is None or not self.usable:
            self.abort()
            raise NotSentError("the connection was closed")
        loop = asyncio.get_running_loop()
        pending: asyncio.Future[Answer] = loop.create_future()
        self._pending = pending
        head = h11.Request(
            method=method, target=target, headers=[*self._headers, (b"Content-Length", b"%d" % len(body))]
        )
        parts = (self._http.send(head), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage()))
        self._transport.write(b"".join(part for part in parts if part))
        # Not `asyncio.timeout`: this path is hot, and a bare timer costs a third of it.
        timer = loop.call_later(deadline.remaining(), partial(self._fail, "no answer in time", silent=True))
        try:
            return await pending
        finally:
            timer.cancel()
            # Also when cancelled: the answer may still come and must not be taken for that of the next request.
            if not pending.done() or pending.cancelled() or pending.exception() is not None:
                self.abort()
            self._pending = None

    def abort(self) -> None:
        """Closes at once."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._readable.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if self._pending is None or self._pending.done():
            self.abort()  # Nobody asked: whatever it belongs to, it must not become the next request's answer.
            return
        self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if exc is None and self._pending is not None:
            self._take(b"")  # An answer without a length ends here; any other is cut.
        self._fail(f"the connection broke ({exc or 'closed by the phone'})")

    def _take(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            while self._take_event(self._http.next_event()):
                pass
        except h11.RemoteProtocolError as error:
            self._fail(f"not a complete HTTP answer ({error})")

    def _take_event(self, event: object) -> bool:
        """Whether more events may follow from the bytes at hand."""
        match event:
            case h11.Response():
                self._status = event.status_code
            case h11.Data():
                self._body += event.data
                if len(self._body) > MAX_ANSWER_BYTES:
                    self._fail(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
                    return False
            case h11.EndOfMessage():
                self._finish()
                return False
            case h11.NEED_DATA | h11.PAUSED | h11.ConnectionClosed():
                return False
        return True

    def _finish(self) -> None:
        answer = Answer(self._status, bytes(self._body))
        self._body.clear()
        finished = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        if finished and not self._http.trailing_data[0]:  # More bytes than the answer: as in `data_received`.
            self._http.start_next_cycle()
        else:
            self.abort()
        if self._pending is not None and not self._pending.done():
            self._pending.set_result(answer)

    def _fail(self, reason: str, *, silent: bool = False) -> None:
        if self._pending is not None and not self._pending.done():
            self._pending.set_exception(UnansweredError(reason, silent=silent))
        self.abort()
