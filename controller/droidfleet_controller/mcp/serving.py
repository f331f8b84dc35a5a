"""Serves the tools on standard input and output, or by streamable HTTP. Owns what lives as long as the process."""

from __future__ import annotations

import asyncio
import getpass
import hmac
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

import structlog
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from droidfleet_controller.api.server import port_taken
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.ids import new_id
from droidfleet_controller.mcp.fleet import FleetTools
from droidfleet_controller.mcp.leases import Leases
from droidfleet_controller.mcp.phones import ApiPhones
from droidfleet_controller.mcp.server import Tools
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.net import Endpoint, require_safe
from droidfleet_shared.protocol.effects import EffectWords

log = structlog.get_logger(__name__)

PATH = "/mcp"
MAX_SESSIONS = 32
SESSION_IDLE_S = 1_800.0
STOP_GRACE_S = 2

LEAVE_S = 60.0
"""For phones to be given back, each after the call that it is at."""

MAX_TOKEN_BYTES = 10_000

REMEDY = "Listen on loopback (127.0.0.1); for other machines put a proxy with TLS in front of it."


@asynccontextmanager
async def mcp_server(
    *, api: str, clock: Clock, words: EffectWords, allow_effects: bool
) -> AsyncIterator[tuple[Server[object], Leases]]:
    """The protocol's server over a controller, and the leases that it holds; all phones are given back at the end."""
    with ControllerClient(api) as client:
        phones = ApiPhones(client)
        leases = Leases(phones=phones, holder=_holder(), clock=clock, words=words, new_id=partial(new_id, "l"))
        fleet = FleetTools(
            client=client,
            leases=leases,
            phones=phones,
            words=words,
            allow_effects=allow_effects,
            new_id=partial(new_id, "q"),
        )
        async with asyncio.TaskGroup() as group:
            owner = group.create_task(leases.run(), name="leases")
            try:
                yield Tools(leases=leases, fleet=fleet, phones=phones).server(), leases
            finally:
                owner.cancel()


async def serve_stdio(server: Server[object], leases: Leases, *, ended: asyncio.Event) -> None:
    """Serves one client on standard input and output, until it ends its side. ``ended``: the phones are given back, and
    the process ends."""
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(_serve_streams(server), name="mcp stdio")
        asked = group.create_task(ended.wait(), name="mcp end")
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            with suppress(Exception):
                async with asyncio.timeout(LEAVE_S):
                    await leases.close_all()
            # A thread reads standard input, and waits for a line that may never come: nothing else ends it.
            os._exit(0)
        asked.cancel()


async def _serve_streams(server: Server[object]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


async def serve_http(
    server: Server[object], endpoint: Endpoint, *, token: str | None, ready: Callable[[str], None]
) -> None:
    """Serves any number of clients at ``http://HOST:PORT/mcp`` until cancelled. ``ready`` is told that URL.

    ``token``: what clients must send as ``authorization: Bearer ...``; None: nothing.

    Raises:
        DeniedError: ``UNSAFE_ADDRESS``: other machines could reach it.
        ConflictError: ``PORT_TAKEN``.
    """
    require_safe(endpoint, setting="--http", secured=False, remedy=REMEDY)
    try:
        family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
        listening = socket.create_server((endpoint.host, endpoint.port), family=family)
    except OSError as error:
        raise port_taken(endpoint, setting="--http") from error
    bound = Endpoint(endpoint.host, listening.getsockname()[1])
    manager = StreamableHTTPSessionManager(
        server,
        security_settings=_only_from_here(),
        session_idle_timeout=SESSION_IDLE_S,
        max_sessions=MAX_SESSIONS,
    )
    web = _Uvicorn(
        uvicorn.Config(
            _Door(manager.handle_request, token),
            log_config=None,
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=STOP_GRACE_S,
        )
    )
    with listening:
        async with manager.run(), asyncio.TaskGroup() as group:
            task = group.create_task(web.serve([listening]), name="mcp http")
            ready(f"http://{bound}{PATH}")
            try:
                await asyncio.wait([task])
            finally:
                web.should_exit = True


class _Door:
    """Lets calls to the one path pass, with the token where one is asked for."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].rstrip("/") != PATH:
            await _answer(send, 404, "NOT_FOUND")
        elif not self._bears(scope):
            await _answer(send, 401, "TOKEN_REQUIRED: no valid bearer token was sent.")
        else:
            await self._app(scope, receive, send)

    def _bears(self, scope: Scope) -> bool:
        if self._token is None:
            return True
        sent = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(sent, f"Bearer {self._token}".encode())


class _Uvicorn(uvicorn.Server):
    """Leaves the signals alone: they belong to the whole program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _answer(send: Send, status: int, text: str) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})


def _only_from_here() -> TransportSecuritySettings:
    """A page in a browser, wherever it came from, is no client: its requests bear another Host or Origin."""
    hosts = ("127.0.0.1", "localhost", "[::1]")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{host}:*" for host in hosts],
        allowed_origins=[f"http://{host}:*" for host in hosts],
    )


def read_token(file: Path | None) -> str | None:
    """The token in a file; None: there is no file.

    Raises:
        InvalidInputError: ``FILE_UNREADABLE``.
    """
    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            token = opened.read(MAX_TOKEN_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("FILE_UNREADABLE", f"the token in {str(file)!r} cannot be read.") from error
    if not token:
        raise InvalidInputError("FILE_UNREADABLE", f"{str(file)!r} holds no token.")
    return token


def _holder() -> str:
    """Who asks for phones, as others are told."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"AI client of {user} on {socket.gethostname()} (pid {os.getpid()})"
