"""The practice model: a small OpenAI-compatible server on this machine, with a planner by rules behind it.

``POST /v1/chat/completions`` (whole or streamed) and ``GET /v1/models``. It asks for no key, keeps nothing, and is for
this machine alone.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from droidfleet_controller.api.server import port_taken
from droidfleet_designer.practice import completions
from droidfleet_designer.practice.completions import MAX_REQUEST_BYTES, Completion, completed, read_request
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ExhaustedError, InvalidInputError
from droidfleet_shared.net import Endpoint

STOP_GRACE_S = 2
"""For requests that are being answered."""

MAX_CONNECTIONS = 32
"""More than explorations at a time."""

LOOPBACK = "127.0.0.1"


class _Uvicorn(uvicorn.Server):
    """Leaves the signals alone: they belong to the whole program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class PracticeServer:
    """The server. One task starts it and stops it. ``port`` 0: any that is free; `url` says which."""

    def __init__(
        self, *, clock: Clock, port: int = 0, new_id: Callable[[], str] = lambda: secrets.token_hex(8)
    ) -> None:
        self._clock = clock
        self._endpoint = Endpoint(LOOPBACK, port)
        self._new_id = new_id
        self._stack = AsyncExitStack()
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._models),
            ]
        )
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=STOP_GRACE_S,
            )
        )

    @property
    def url(self) -> str:
        """The base URL, for a client of OpenAI's API."""
        return f"http://{self._endpoint.host}:{self._endpoint.port}/v1"

    async def start(self) -> None:
        """Takes the port; requests are answered from now on.

        Raises:
            ConflictError: ``PORT_TAKEN``.
        """
        try:
            listening = socket.create_server((self._endpoint.host, self._endpoint.port))
        except OSError as error:
            raise port_taken(self._endpoint, setting="practice-model") from error
        self._endpoint = Endpoint(LOOPBACK, listening.getsockname()[1])
        group = await self._stack.enter_async_context(asyncio.TaskGroup())
        self._stack.callback(self._end)
        group.create_task(self._serve(listening), name="practice model")

    async def stop(self) -> None:
        """Ends it, within seconds. Harmless twice, and before `start`."""
        await self._stack.aclose()

    def _end(self) -> None:
        self._server.should_exit = True

    async def _serve(self, listening: socket.socket) -> None:
        with listening:
            await self._server.serve([listening])

    async def _complete(self, request: Request) -> Response:
        try:
            asked = read_request(await _body(request))
        except ClientDisconnect:
            return Response(status_code=400)
        except ExhaustedError as error:
            return JSONResponse({"error": {"message": error.message, "code": error.code}}, status_code=413)
        except InvalidInputError as error:
            return JSONResponse(completions.refusal(error), status_code=400)
        # In a thread: long conversations take a while to be read back.
        answer = await asyncio.to_thread(completed, asked, wire_id=f"practice-{self._new_id()}", created=self._now())
        if not asked.stream:
            return JSONResponse(completions.whole(answer))
        with_usage = asked.stream_options is not None and asked.stream_options.include_usage
        return StreamingResponse(_events(answer, with_usage=with_usage), media_type="text/event-stream")

    async def _models(self, _request: Request) -> Response:
        return JSONResponse(completions.models(self._now()))

    def _now(self) -> int:
        return int(self._clock.now().timestamp())


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_REQUEST_BYTES:
            raise ExhaustedError("REQUEST_TOO_LARGE", f"the request is longer than {MAX_REQUEST_BYTES:,} bytes.")
    return bytes(body)


async def _events(answer: Completion, *, with_usage: bool) -> AsyncIterator[str]:
    for piece in completions.pieces(answer, with_usage=with_usage):
        yield f"data: {json.dumps(piece, ensure_ascii=False)}\n\n"
    yield "data: [DONE]\n\n"
