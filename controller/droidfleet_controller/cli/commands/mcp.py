"""`droidfleet mcp`: the fleet's phones for other AI clients, over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, WordsOption
from droidfleet_controller.cli.output import note
from droidfleet_shared.errors import PreconditionError, first_domain_error

if TYPE_CHECKING:
    from droidfleet_shared.protocol.effects import EffectWords


def mcp(
    *,
    http: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve by streamable HTTP here instead of on standard input.")
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With the bearer token that HTTP clients must send."),
    ] = None,
    allow_effects: Annotated[
        bool,
        typer.Option("--allow-effects", help="Let clients run tasks with steps that cannot be undone."),
    ] = False,
    words: WordsOption = None,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Let other AI clients work phones and write tasks, over the Model Context Protocol.

    They get the tools of the designer on a phone that they lease, and may read, validate and run one task on one phone.
    Schedules and rollouts are not offered. What cannot be undone is withheld.

    \b
    Examples:
      droidfleet mcp
      droidfleet mcp --http 127.0.0.1:7403 --token-file ./token
    """
    # Standard output belongs to the protocol.
    from droidfleet_shared.logging import configure_logging  # noqa: PLC0415

    configure_logging("warning")
    try:
        from droidfleet_controller.mcp.serving import read_token  # noqa: PLC0415 - an extra of its own
    except ModuleNotFoundError as error:
        raise PreconditionError(
            "MCP_LIBRARY_MISSING",
            f"the library for the Model Context Protocol is not installed ({error.name}).",
            hint="Install it with: pip install 'droidfleet[mcp]'",
        ) from error
    from droidfleet_controller.tasks.words import load_words  # noqa: PLC0415

    given = load_words(words)
    token = read_token(token_file)
    try:
        asyncio.run(_serve(http, token, given, api, allow_effects=allow_effects))
    except BaseExceptionGroup as group:
        told = first_domain_error(group)
        if told is None:
            raise
        raise told from group


async def _serve(http: str, token: str | None, words: EffectWords, api: str, *, allow_effects: bool) -> None:
    from droidfleet_controller.mcp import serving  # noqa: PLC0415
    from droidfleet_shared.clock import SystemClock  # noqa: PLC0415
    from droidfleet_shared.net import parse_endpoint  # noqa: PLC0415

    task = asyncio.current_task()
    assert task is not None
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    # Ended in order, so that phones are given back.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel if http else ended.set)
    with suppress(asyncio.CancelledError):
        async with serving.mcp_server(api=api, clock=SystemClock(), words=words, allow_effects=allow_effects) as (
            server,
            leases,
        ):
            if http:
                endpoint = parse_endpoint(http, setting="--http")
                await serving.serve_http(server, endpoint, token=token, ready=lambda url: note(f"serving {url}"))
            else:
                await serving.serve_stdio(server, leases, ended=ended)
    sys.stdout.flush()
