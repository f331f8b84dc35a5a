"""`droidfleet-agent tree`: what is on the screen of one phone, with ready-made selectors, with no fleet around.

`droidfleet device tree` shows the same of a fleet's device; both print what `session.seen` makes of a look.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

from droidfleet_agent.cli.arguments import adb_address
from droidfleet_agent.cli.exec import READY_S, choose_phone
from droidfleet_agent.cli.failures import error_text, printable
from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.engine.look import take_look
from droidfleet_agent.session.seen import seen_tree
from droidfleet_shared.bus.session import SeenNode, SeenTree
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.exit_codes import ExitCode, exit_code
from droidfleet_shared.logging import configure_logging

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

MAX_BYTES = 64 * 1024 * 1024
"""Nothing has to fit a message here; only a screen beyond all reason is cut."""

MAX_LABEL = 60
_USEFUL = {"clickable", "long_clickable", "checkable", "scrollable"}


def add_parser(subparsers: SubParsers) -> None:
    """Adds the command to `droidfleet-agent`."""
    parser = subparsers.add_parser(
        "tree",
        help="show what is on a phone's screen, with selectors",
        description="Shows what is on one phone's screen, each node with the first selector that names it alone.",
        epilog="exit codes: 0 done; 2 wrong usage; 3 no adb server or no answer from the phone; 4 no such phone",
    )
    parser.add_argument(
        "-s",
        "--serial",
        default=os.environ.get("ANDROID_SERIAL"),
        help="the phone, as `adb devices` lists it (default: ANDROID_SERIAL, else the only phone attached)",
    )
    parser.add_argument(
        "--adb",
        type=adb_address,
        metavar="HOST:PORT",
        default=(None, None),
        help="the adb server (default: ANDROID_ADB_SERVER_HOST and _PORT, else 127.0.0.1:5037)",
    )
    parser.add_argument("--all", action="store_true", help="every node, also frames and what nobody sees")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="the form")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    configure_logging("warning")
    try:
        tree = asyncio.run(_look(args.serial, args.adb))
    except DroidfleetError as error:
        print(error_text(error), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    if args.output == "json":
        sys.stdout.write(tree.encode().decode() + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(tree, every=args.all)))
    return ExitCode.OK


async def _look(serial: str | None, address: tuple[str | None, int | None]) -> SeenTree:
    clock = SystemClock()
    adb = AdbServer(*address, clock=clock)
    chosen = await choose_phone(adb, serial, clock=clock)
    deadline = clock.deadline(READY_S)
    phone = await open_phone(chosen, adb_host=adb.host, adb_port=adb.port, clock=clock, deadline=deadline)
    try:
        return seen_tree(await take_look(phone, deadline=deadline, with_activity=True), max_bytes=MAX_BYTES)
    finally:
        await phone.close()


def lines_of(tree: SeenTree, *, every: bool) -> list[str]:
    """The tree in lines, each node under its nearest ancestor that is shown. Safe to print."""
    lines = [printable(f"{tree.package_name} {tree.activity_name.removeprefix(tree.package_name)}".strip())]
    depths: dict[int, int] = {-1: 0}
    for place, node in enumerate(tree.nodes):
        above = depths[node.parent]
        shown = every or _says_something(node)
        depths[place] = above + 1 if shown else above
        if shown:
            lines.append("  " * (above + 1) + _line(node))
    return lines


def _says_something(node: SeenNode) -> bool:
    label = node.text or node.description or node.hint
    return "visible" in node.flags and bool(label or _USEFUL & set(node.flags))


def _line(node: SeenNode) -> str:
    kind = node.class_name.rpartition(".")[2] or "node"
    label = " ".join((node.text or node.description or node.hint).split())
    shown = f' "{label[:MAX_LABEL]}{"…" if len(label) > MAX_LABEL else ""}"' if label else ""
    best = node.offered[0] if node.offered else None
    selector = f"  {best.selector}" if best is not None else ""
    note = f"  ({best.note})" if best is not None and best.note else ""
    return printable(f"{kind}{shown}{selector}{note}")
