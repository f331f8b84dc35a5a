"""`droidfleet-agent run`: the fleet agent of one phone."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

from droidfleet_agent.cli.options import add_service_options, env, host_options, serve, tell
from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.host import run_agent
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.options import HostOptions, check_name
from droidfleet_agent.presence import AdbPresence
from droidfleet_shared.clock import SystemClock

if TYPE_CHECKING:
    from droidfleet_agent.cli.options import SubParsers

_EPILOG = """examples:
  droidfleet-agent run --name phone-01 --serial R58M123ABC
  droidfleet-agent run --name phone-02 --serial 192.168.0.7:5555 --nats nats://fleet.example:4222

The agent waits for a broker, a controller or a phone that is not there yet, and goes on when one comes back. SIGTERM
and Ctrl-C end it in order: what runs stops at its next step and is reported."""


def add_parser(subparsers: SubParsers) -> None:
    """Adds the command to `droidfleet-agent`."""
    parser = subparsers.add_parser(
        "run",
        help="run the fleet agent of one phone",
        description="Runs the fleet agent of one phone until it is ended.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--name", default=env("NAME"), help="the agent's name in the fleet (DROIDFLEET_NAME; serial)")
    parser.add_argument(
        "--serial",
        "-s",
        default=env("SERIAL") or os.environ.get("ANDROID_SERIAL"),
        help="the phone, as `adb devices` lists it; host:port is connected (DROIDFLEET_SERIAL; ANDROID_SERIAL)",
    )
    add_service_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    if not args.serial:
        args.parser.error("which phone? Give --serial; `adb devices` lists them.")

    async def service(stop: asyncio.Event) -> None:
        await _run(check_name(args.name or args.serial), args.serial, host_options(args), args.output, stop)

    return serve(args, service)


async def _run(name: str, serial: str, options: HostOptions, output: str, stop: asyncio.Event) -> None:
    clock = SystemClock()
    adb = AdbServer(options.adb_host, options.adb_port, clock=clock)
    presence = AdbPresence(adb, clock=clock, connect=[serial])

    def online(identity: Identity) -> None:
        sentence = f"{identity.name} ({identity.serial}) is online."
        tell(output, "agent_online", sentence, name=identity.name, serial=identity.serial, pid=os.getpid())

    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        following = group.create_task(presence.run(), name="presence")
        try:
            await run_agent(
                name,
                serial,
                options=options,
                adb=adb,
                presence=presence,
                clock=clock,
                stop=stop,
                online=online,
            )
        except Exception as error:
            # Raised below: out of the group it would come as a group of one.
            failure = error
        finally:
            following.cancel()
    if failure is not None:
        raise failure
