"""`droidfleet-agent supervise`: one fleet agent for each attached phone."""

from __future__ import annotations

import argparse
import asyncio
from random import Random
from typing import TYPE_CHECKING

from droidfleet_agent.cli.options import add_service_options, env, host_options, positive_seconds, serve, tell
from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.options import HostOptions, check_name
from droidfleet_agent.presence import AdbPresence
from droidfleet_agent.state import StateFolder
from droidfleet_agent.supervisor.supervisor import Supervisor
from droidfleet_agent.supervisor.wire import AgentOnline, News
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.errors import InvalidInputError

if TYPE_CHECKING:
    from droidfleet_agent.cli.options import SubParsers

_EPILOG = """examples:
  droidfleet-agent supervise
  droidfleet-agent supervise --name R58M123ABC=phone-01 --name 192.168.0.7:5555=phone-02
  droidfleet-agent supervise --phones-per-process 20

Phones that are plugged in get an agent, named by --name or by their serial. An unplugged phone's agent stays for
--grace seconds and shows it as offline, so that a loose cable changes nothing; then it ends. An agent that crashes is
started again, with growing pauses. With one phone per process a crash or a leak concerns one phone; with several, each
further phone costs far less memory, and all of a process start again when one of them breaks it."""

MAX_PHONES_PER_PROCESS = 100
"""More would wait for each other on one core."""


def add_parser(subparsers: SubParsers) -> None:
    """Adds the command to `droidfleet-agent`."""
    parser = subparsers.add_parser(
        "supervise",
        help="run one fleet agent for each attached phone",
        description="Runs one fleet agent for each phone that the adb server lists, and follows plug and unplug.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--name",
        metavar="SERIAL=NAME",
        action="append",
        type=_naming,
        default=[],
        help="the name of a phone's agent; repeat it for each. A phone at host:port that is named is connected, too",
    )
    parser.add_argument(
        "--phones-per-process",
        metavar="N",
        type=_count,
        default=env("PHONES_PER_PROCESS", "1"),
        help="phones that share one process (DROIDFLEET_PHONES_PER_PROCESS; 1)",
    )
    parser.add_argument(
        "--grace",
        metavar="SECONDS",
        type=positive_seconds,
        default=env("GRACE", "60"),
        help="how long the agent of an unplugged phone stays (DROIDFLEET_GRACE; 60)",
    )
    add_service_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""

    async def service(stop: asyncio.Event) -> None:
        await _supervise(args, host_options(args), _names(args.name), stop)

    return serve(args, service)


async def _supervise(
    args: argparse.Namespace, options: HostOptions, names: dict[str, str], stop: asyncio.Event
) -> None:
    # Said here, once, instead of by every process.
    StateFolder(options.state).host_id()
    clock = SystemClock()
    adb = AdbServer(options.adb_host, options.adb_port, clock=clock)

    def told(news: News, name: str, pid: int) -> None:
        if isinstance(news, AgentOnline):
            sentence = f"{name} ({news.serial}) is online."
            tell(args.output, news.event, sentence, name=name, serial=news.serial, pid=pid)
        else:
            why = f": {news.code}: {news.message}" if news.code else "."
            sentence = f"{name} ({news.serial}) ended{why}"
            fields = {"code": news.code, "message": news.message}
            tell(args.output, news.event, sentence, name=name, serial=news.serial, pid=pid, **fields)

    supervisor = Supervisor(
        options,
        presence=AdbPresence(adb, clock=clock, connect=list(names)),
        names=names,
        phones_per_process=args.phones_per_process,
        grace_s=args.grace,
        tell=told,
        clock=clock,
        random=Random(),  # noqa: S311  # spreads restarts
    )
    await supervisor.run(stop)


def _naming(text: str) -> tuple[str, str]:
    serial, equals, name = text.partition("=")
    if not (serial and equals and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not SERIAL=NAME, such as R58M123ABC=phone-01")
    return serial, name


def _names(given: list[tuple[str, str]]) -> dict[str, str]:
    """Serial to name; each may be given once."""
    names: dict[str, str] = {}
    for serial, name in given:
        if serial in names or name in names.values():
            raise InvalidInputError("BAD_NAME", f"{serial}={name}: serial or name is given twice.")
        names[serial] = check_name(name)
    return names


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MAX_PHONES_PER_PROCESS):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_PHONES_PER_PROCESS}")
    return int(text)
