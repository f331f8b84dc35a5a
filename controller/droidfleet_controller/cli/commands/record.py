"""`droidfleet record`: a task from what a person does on a phone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.files import check_target, write_whole
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption
from droidfleet_controller.cli.output import note
from droidfleet_shared.errors import DroidfleetError, InvalidInputError


def record(
    *,
    device: Annotated[
        str, typer.Option("--device", "-d", help="Whose phone to use.", autocompletion=complete_device)
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to save the task; left out: printed at the end.")
    ] = None,
    task_id: Annotated[str, typer.Option("--task-id", help="The task's id (the file's name without .json).")] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Write a task by doing it: choose nodes from a list, and each action becomes a step.

    Every action runs on the phone at once and is kept when it worked, with the selector that is unique on that screen.
    While you record, the device runs nothing else. Commands are read from standard input; ? lists them.

    \b
    Examples:
      droidfleet record --device phone-01 --out buy-tea.json
      droidfleet record -d phone-01 --out buy-tea.json < commands.txt
    """
    # The validator's models take longer to load than all the rest of this program.
    from droidfleet_controller.cli.live import LiveDevice  # noqa: PLC0415
    from droidfleet_controller.cli.recorder.loop import Loop  # noqa: PLC0415
    from droidfleet_controller.cli.recorder.recording import Recording  # noqa: PLC0415

    if not device:
        raise InvalidInputError("BAD_ARGUMENTS", "which phone? Name it with --device.", hint="See: droidfleet devices")
    if out is not None:
        check_target(out, force=force)
    recording = Recording(task_id or (out.stem if out is not None else f"recorded-on-{device}"))
    try:
        with ControllerClient(api) as client, LiveDevice(client, device, doing="recording") as live:
            Loop(live, recording).run()
    except (KeyboardInterrupt, DroidfleetError):
        # A person's work is kept, however it ended; a script that failed has recorded nothing of use.
        if recording.steps and sys.stdin.isatty():
            _save(recording.document(), out, force=force)
        raise
    _save(recording.document(), out, force=force)


def _save(document: str, out: Path | None, *, force: bool) -> None:
    if out is None:
        sys.stdout.write(document)
        return
    write_whole(out, document, force=force)
    note(f"{out}: saved. Next: droidfleet task explain {out}")
