"""`droidfleet-agent exec`: runs one task file on one phone, with no controller, broker or journal.

Owns the command's arguments and its choice of the phone; `exec_task` reads the task, `exec_output` prints. The task
runs under its own ``assignedAgentName``: whoever names a file and a phone has assigned it, so there is no mismatch to
find unless ``--name`` says who this agent is. A template, which bears no name, is as good.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from droidfleet_agent.cli.arguments import adb_address
from droidfleet_agent.cli.exec_output import Output, Progress, print_result
from droidfleet_agent.cli.exec_task import EXECUTION_ID, Given, add_task_options, load_task
from droidfleet_agent.cli.failures import error_text
from droidfleet_agent.driver.adb import ONLINE, AdbServer
from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem, device_error
from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.state import StateFolder, default_folder
from droidfleet_shared.clock import Clock, Deadline, SystemClock
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, NotFoundError
from droidfleet_shared.exit_codes import ExitCode, exit_code
from droidfleet_shared.logging import configure_logging
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.values import secret_values
from droidfleet_shared.secrets import without

if TYPE_CHECKING:
    SubParsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - argparse gives it no public name

READY_S = 30.0
"""Until the phone must have answered once: pushing and starting its automation server takes a few seconds."""

MAX_TIMEOUT_S = 86_400.0
"""The protocol's bound on a task, one day."""

log = structlog.get_logger(__name__)

EPILOG = """exit codes: 0 the task succeeded; 1 it did not; 2 wrong usage or an invalid task; 3 no adb server or no
answer from the phone; 4 no such phone; 5 a defect; 130 interrupted (the first Ctrl-C cancels the task and prints its
result)

examples:
  droidfleet-agent exec task.json
  droidfleet-agent exec task.json -s R58M123ABC --artifacts pictures
  droidfleet-agent exec order.json --input "item=green tea" --input count=2 --secret pin --seed 7
"""


def add_parser(subparsers: SubParsers) -> None:
    """Adds the command to `droidfleet-agent`."""
    parser = subparsers.add_parser(
        "exec",
        help="run a task file on one phone, with no fleet",
        description="Runs one task file on one phone, with no controller and no broker, and prints how it went.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_task_options(parser)
    parser.add_argument(
        "-s",
        "--serial",
        default=os.environ.get("ANDROID_SERIAL"),
        help="the phone, as `adb devices` lists it; host:port is connected first (default: ANDROID_SERIAL, else the "
        "only phone attached)",
    )
    parser.add_argument(
        "--adb",
        type=adb_address,
        metavar="HOST:PORT",
        default=(None, None),
        help="the adb server (default: ANDROID_ADB_SERVER_HOST and _PORT, else 127.0.0.1:5037)",
    )
    parser.add_argument(
        "--name",
        help="the name of this agent: a task that is assigned to another one is refused with AGENT_MISMATCH "
        "(default: whoever the task is assigned to)",
    )
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text", help="the result's form")
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="SECONDS",
        help="bound on the whole task; a shorter maxDurationMs still holds",
    )
    parser.add_argument(
        "--artifacts",
        type=Path,
        metavar="FOLDER",
        help="write what the steps keep, such as screenshots, there; nothing is written over",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the command; returns its exit code."""
    configure_logging("warning")
    task: Task | None = None
    try:
        given = Given(args.inputs, args.inputs_file, args.secrets, args.seed)
        task = _bounded(load_task(args.task, name=args.name, given=given), args.timeout)
        options = _Options(
            serial=args.serial, adb=args.adb, name=args.name, output=args.output, artifacts=args.artifacts
        )
        return asyncio.run(_exec(task, options))
    except DroidfleetError as error:
        print(error_text(error), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        print("INTERRUPTED: stopped before the task could be cancelled in order.", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except Exception:
        # An error may quote what it stumbled over.
        secrets = () if task is None else secret_values(task)
        log.error("exec_broke", traceback=without(traceback.format_exc(), secrets))
        print("INTERNAL: a defect ended the program; the log above says where.", file=sys.stderr)
        return ExitCode.INTERNAL


def seconds(text: str) -> float:
    """A duration of 1 s to a day, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= MAX_TIMEOUT_S:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to {MAX_TIMEOUT_S:.0f}")
    return value


async def choose_phone(adb: AdbServer, serial: str | None, *, clock: Clock) -> str:
    """The serial to use: the one named, else the only phone that is attached and ready.

    Raises:
        AdbError: no adb server, or the phone is not there, offline, or unauthorized.
        InvalidInputError: several phones and none named.
        NotFoundError: no such phone.
    """
    deadline = clock.deadline(READY_S)
    await adb.start(deadline=deadline)
    devices = await adb.devices(deadline=deadline)
    if serial is not None:
        if serial not in devices and ":" in serial:
            await _connect(adb, serial, deadline=deadline)
            return serial
        return _named(serial, devices)
    ready = [each for each, word in devices.items() if word == ONLINE]
    if len(ready) == 1:
        return ready[0]
    if ready:
        raise InvalidInputError(
            "SEVERAL_DEVICES",
            f"{len(ready)} phones are attached: {', '.join(sorted(ready))}.",
            hint="Say which one with --serial (or ANDROID_SERIAL).",
        )
    for each, word in devices.items():
        raise device_error(each, word)
    raise NotFoundError(
        "NO_DEVICE",
        f"no phone is attached to the adb server at {adb.address}.",
        hint="Plug one in and accept its USB debugging question, or `adb connect` one; `adb devices` must list it.",
    )


async def _connect(adb: AdbServer, address: str, *, deadline: Deadline) -> None:
    """Connects a network phone; a wrong address is told at once, and not after the driver's patience with a phone."""
    answer = await adb.connect(address, deadline=deadline)
    if "authenticate" in answer:
        raise AdbError(AdbProblem.DEVICE_UNAUTHORIZED, f"adb: {answer.strip()}")
    if not answer.startswith(("connected to", "already connected to")):
        raise AdbError(AdbProblem.DEVICE_NOT_FOUND, f"adb: {answer.strip()}")


def _named(serial: str, devices: Mapping[str, str]) -> str:
    if serial not in devices:
        known = f"the adb server lists {', '.join(sorted(devices))}" if devices else "the adb server lists no phone"
        raise NotFoundError(
            "DEVICE_NOT_FOUND",
            f"no phone {serial!r} is attached; {known}.",
            hint="Check the serial against `adb devices`, and the cable.",
        )
    error = device_error(serial, devices[serial])
    if error.problem is AdbProblem.DEVICE_UNAUTHORIZED:
        raise error  # waiting does not help: somebody has to touch the phone
    return serial


@dataclass(frozen=True, slots=True)
class _Options:
    """What the command line says beside the task."""

    serial: str | None
    adb: tuple[str | None, int | None]
    name: str | None
    output: Output
    artifacts: Path | None


async def _exec(task: Task, options: _Options) -> ExitCode:
    clock = SystemClock()
    adb = AdbServer(*options.adb, clock=clock)
    serial = await choose_phone(adb, options.serial, clock=clock)
    # A phone has one agent; the one of a fleet may be in the middle of a task.
    with StateFolder(default_folder()).phone_lock(serial, adb=f"{adb.host}:{adb.port}"):
        phone = await open_phone(
            serial, adb_host=adb.host, adb_port=adb.port, clock=clock, deadline=clock.deadline(READY_S)
        )
        try:
            out = sys.stdout if options.output == "text" else sys.stderr
            progress = Progress(task, serial=serial, out=out, artifacts=options.artifacts)
            control = RunControl()
            with _signals_cancel(control):
                engine = Engine(phone, clock=clock, looks_at_failure=options.artifacts is not None)
                result = await engine.run(
                    task,
                    execution_id=EXECUTION_ID,
                    agent_name=task.assigned_agent_name if options.name is None else options.name,
                    observer=progress,
                    control=control,
                )
        finally:
            await phone.close()
    progress.end(result)
    print_result(result, options.output)
    if result.code is StepCode.CANCELLED:
        return ExitCode.INTERRUPTED
    return ExitCode.OK if result.successful else ExitCode.FAILED


@contextmanager
def _signals_cancel(control: RunControl) -> Iterator[None]:
    """The first Ctrl-C or SIGTERM cancels in order; the next one acts as if this was not here."""
    loop = asyncio.get_running_loop()

    def cancel(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        control.cancel(f"{number.name} was received.")

    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, cancel, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _bounded(task: Task, timeout_s: float | None) -> Task:
    if timeout_s is None:
        return task
    bounds = [round(timeout_s * 1000), *([task.max_duration_ms] if task.max_duration_ms is not None else [])]
    return task.model_copy(update={"max_duration_ms": min(bounds)})
