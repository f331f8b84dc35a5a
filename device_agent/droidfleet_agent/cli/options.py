"""Options that `run` and `supervise` share, and how a service ends. Each can also be given as ``DROIDFLEET_...``.

Secrets are never options: they come from a file or the environment (`droidfleet_shared.bus.credentials`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from droidfleet_agent.cli.arguments import adb_address
from droidfleet_agent.cli.failures import error_text, printable
from droidfleet_agent.options import HostOptions
from droidfleet_agent.state import default_folder
from droidfleet_shared.bus.credentials import NATS_CREDENTIALS_ENV, check_url, load_credentials
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.exit_codes import ExitCode, exit_code
from droidfleet_shared.logging import LEVELS, configure_logging

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # argparse gives it no public name

DEFAULT_NATS = "nats://127.0.0.1:7422"
"""Where `droidfleet serve` has its own broker."""

log = structlog.get_logger(__name__)


def env(name: str, default: str | None = None) -> str | None:
    """An option's value from the environment."""
    return os.environ.get(f"DROIDFLEET_{name}") or default


def add_service_options(parser: argparse.ArgumentParser) -> None:
    """What every fleet agent needs to know."""
    parser.add_argument(
        "--nats",
        metavar="URL",
        default=env("NATS", DEFAULT_NATS),
        help=f"the broker: nats://HOST:PORT or tls://HOST:PORT, several with commas (DROIDFLEET_NATS; {DEFAULT_NATS})",
    )
    parser.add_argument(
        "--nats-credentials",
        metavar="FILE",
        type=Path,
        help="a file, private to you, with a NATS .creds text, or one line: user:password, or a token "
        f"({NATS_CREDENTIALS_ENV}; or DROIDFLEET_NATS_USER and _PASSWORD, or _TOKEN)",
    )
    parser.add_argument(
        "--adb",
        metavar="HOST:PORT",
        type=adb_address,
        default=env("ADB") or (None, None),
        help="the adb server (DROIDFLEET_ADB; ANDROID_ADB_SERVER_HOST and _PORT; 127.0.0.1:5037)",
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        type=Path,
        default=default_folder(),
        help="the host's id and the locks on names (DROIDFLEET_STATE; $XDG_STATE_HOME/droidfleet)",
    )
    parser.add_argument(
        "--heartbeat",
        metavar="SECONDS",
        type=positive_seconds,
        default=env("HEARTBEAT", "10"),
        help="between two signs of life (DROIDFLEET_HEARTBEAT; 10)",
    )
    parser.add_argument(
        "--log-level",
        metavar="LEVEL",
        type=_one_of(LEVELS),
        default=env("LOG_LEVEL", "info"),
        help=f"{', '.join(LEVELS)} (DROIDFLEET_LOG_LEVEL; info)",
    )
    parser.add_argument(
        "--output",
        "-o",
        metavar="FORM",
        type=_one_of(("text", "json")),
        default=env("OUTPUT", "text"),
        help="what stdout says about agents: text (sentences) or json (one object a line) (DROIDFLEET_OUTPUT; text)",
    )


def host_options(args: argparse.Namespace) -> HostOptions:
    """The options in one piece, checked before anything starts.

    Raises:
        InvalidInputError: the broker's address or the credentials file cannot be used.
    """
    check_url(args.nats)
    load_credentials(args.nats_credentials)
    host, port = args.adb
    return HostOptions(
        nats=args.nats,
        credentials=args.nats_credentials,
        adb_host=host,
        adb_port=port,
        state=args.state,
        heartbeat_s=args.heartbeat,
        log_level=args.log_level,
    )


def positive_seconds(text: str) -> float:
    """A duration above nothing and up to a day, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 86400")
    return value


def _one_of(words: Sequence[str]) -> Callable[[str], str]:
    """Like argparse's ``choices``, which does not look at defaults and so not at the environment."""

    def choose(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return choose


def tell(output: str, event: str, sentence: str, **fields: str | int) -> None:
    """One line on stdout about an agent, for people or for programs."""
    line = json.dumps({"event": event, **fields}) if output == "json" else printable(sentence)
    try:
        print(line, flush=True)
    except BrokenPipeError:
        # Whoever listened is gone; the fleet does not depend on it.
        log.debug("output_unread")


def serve(args: argparse.Namespace, service: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Runs a service until SIGTERM (exit code 0) or Ctrl-C (130), and turns errors into text and exit codes."""
    configure_logging(args.log_level)
    try:
        return asyncio.run(_serve(service))
    except DroidfleetError as error:
        print(error_text(error), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except Exception:
        log.exception("service_broke")
        print("INTERNAL: a defect ended the agent; the log above says where.", file=sys.stderr)
        return ExitCode.INTERNAL


async def _serve(service: Callable[[asyncio.Event], Awaitable[None]]) -> ExitCode:
    stop = asyncio.Event()
    with _signals(stop) as received:
        await service(stop)
    return ExitCode.INTERRUPTED if signal.SIGINT in received else ExitCode.OK


@contextmanager
def _signals(stop: asyncio.Event) -> Iterator[list[signal.Signals]]:
    """The first signal ends in order; after it the next one acts as if this was not here."""
    loop = asyncio.get_running_loop()
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        received.append(number)
        loop.remove_signal_handler(number)
        stop.set()

    numbers = (signal.SIGTERM, signal.SIGINT)
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        yield received
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
