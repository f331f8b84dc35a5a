"""The whole command tree, and the one place where an error becomes text and an exit code."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Annotated

import typer
from typer.main import get_command

from droidfleet_controller.cli import failures
from droidfleet_controller.cli.commands import (
    admin,
    device,
    devices,
    drafts,
    events,
    executions,
    group,
    mcp,
    record,
    rollouts,
    schedules,
    serve,
    tasks,
)
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.exit_codes import ExitCode, exit_code

app = typer.Typer(
    name="droidfleet",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.add_typer(devices.app, name="devices")
app.add_typer(device.app, name="device")
app.add_typer(group.app, name="group")
app.add_typer(tasks.app, name="task")
app.add_typer(executions.app, name="execution")
app.add_typer(rollouts.app, name="rollout")
app.add_typer(schedules.app, name="schedule")
app.add_typer(drafts.app, name="draft")
app.add_typer(admin.app, name="admin")
app.command("mcp")(mcp.mcp)
app.command("record")(record.record)
app.command("events")(events.events)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"droidfleet {version('droidfleet')}\n")
        raise typer.Exit


@app.callback()
def droidfleet(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run automation on fleets of Android phones.

    \b
    Start here:
      droidfleet serve                           the controller, on this machine
      droidfleet-agent supervise --nats URL      an agent for each attached phone
      droidfleet devices                         who is there
      droidfleet record --device NAME            a task from what you do on a phone
      droidfleet draft start TEXT --device NAME  a task that a model proposes
      droidfleet task validate FILE              what is wrong with a task
      droidfleet task run FILE --device NAME     run it
      droidfleet rollout start TASK --group NAME run it on many phones, in waves
    """


@cache
def command() -> Callable[[], object]:
    """All commands as one, put together once in a process: that takes as long as most of them do."""
    return get_command(app)


def main() -> None:
    """Runs the command in ``sys.argv``; leaves by `SystemExit` with a documented code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets an escape, never a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        command()()
    except DroidfleetError as error:
        sys.stderr.write(failures.text_of(error) + "\n")
        sys.exit(exit_code(error))
    except ModuleNotFoundError:
        raise
    except Exception:
        traceback.print_exc()
        sys.stderr.write("INTERNAL: droidfleet made a mistake.\nhint: report it with the lines above.\n")
        sys.exit(ExitCode.INTERNAL)
