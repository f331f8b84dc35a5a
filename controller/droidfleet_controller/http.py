"""The HTTP side for machines: /metrics for Prometheus, /healthz (the process lives), /readyz (what is not ready)."""

from __future__ import annotations

import asyncio
import hmac
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from droidfleet_controller.api.server import port_taken
from droidfleet_controller.metrics import Metrics
from droidfleet_shared.net import Endpoint

STOP_GRACE_S = 2

Checks = Callable[[], Awaitable[Mapping[str, str]]]
"""Answers with what is not ready: part -> why. Empty: all is."""

Collect = Callable[[], Awaitable[None]]
"""Brings gauges up to date before a scrape."""


class _Uvicorn(uvicorn.Server):
    """Leaves the signals alone: they belong to the whole program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """The server; run it in a task and `stop` it."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        metrics: Metrics,
        checks: Checks,
        collect: Collect,
        token: str | None,
        tls: tuple[Path, Path] | None,
    ) -> None:
        self.endpoint = endpoint
        self._metrics = metrics
        self._checks = checks
        self._collect = collect
        self._token = token
        app = Starlette(
            routes=[
                Route("/metrics", self._serve_metrics),
                Route("/healthz", _alive),
                Route("/readyz", self._ready),
            ]
        )
        self._socket: socket.socket | None = None
        self._ended = asyncio.Event()
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_graceful_shutdown=STOP_GRACE_S,
                ssl_certfile=str(tls[0]) if tls else None,
                ssl_keyfile=str(tls[1]) if tls else None,
            )
        )

    def bind(self) -> None:
        """Takes the port.

        Raises:
            ConflictError: ``PORT_TAKEN``.
        """
        try:
            self._socket = socket.create_server(
                (self.endpoint.host, self.endpoint.port),
                family=socket.AF_INET6 if ":" in self.endpoint.host else socket.AF_INET,
            )
        except OSError as error:
            raise port_taken(self.endpoint, setting="http") from error
        self.endpoint = Endpoint(self.endpoint.host, self._socket.getsockname()[1])

    async def run(self) -> None:
        """Serves until `stop`."""
        assert self._socket is not None
        try:
            await self._server.serve([self._socket])
        finally:
            self._socket.close()
            self._ended.set()

    async def stop(self) -> None:
        """Makes `run` end, and waits for it."""
        self._server.should_exit = True
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * STOP_GRACE_S):
                await self._ended.wait()

    async def _serve_metrics(self, request: Request) -> Response:
        if self._token is not None:
            sent = request.headers.get("authorization", "")
            if not hmac.compare_digest(sent.encode(), f"Bearer {self._token}".encode()):
                return PlainTextResponse("TOKEN_REQUIRED: no valid bearer token was sent.\n", status_code=401)
        await self._collect()
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def _ready(self, _request: Request) -> Response:
        missing = await self._checks()
        return JSONResponse({"ready": not missing, "missing": dict(missing)}, status_code=503 if missing else 200)


async def _alive(_request: Request) -> Response:
    return PlainTextResponse("ok\n")
