"""`droidfleet record`: a task from what a person does on a phone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption
from droidfleet_controller.cli.output import note
from droidfleet_shared.errors import ConflictError, DroidfleetError, InvalidInputError


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
    from droidfleet_controller.cli.recorder.live import LiveDevice  # noqa: PLC0415
    from droidfleet_controller.cli.recorder.loop import Loop  # noqa: PLC0415
    from droidfleet_controller.cli.recorder.recording import Recording  # noqa: PLC0415

    if not device:
        raise InvalidInputError("BAD_ARGUMENTS", "which phone? Name it with --device.", hint="See: droidfleet devices")
    if out is not None:
        _check(out, force=force)
    recording = Recording(task_id or (out.stem if out is not None else f"recorded-on-{device}"))
    try:
        with ControllerClient(api) as client, LiveDevice(client, device) as live:
            Loop(live, recording).run()
    except (KeyboardInterrupt, DroidfleetError):
        # A person's work is kept, however it ended; a script that failed has recorded nothing of use.
        if recording.steps and sys.stdin.isatty():
            _save(recording.document(), out, force=force)
        raise
    _save(recording.document(), out, force=force)


def _check(out: Path, *, force: bool) -> None:
    if out.exists() and not force:
        raise ConflictError(
            "FILE_EXISTS", f"{str(out)!r} is there already.", hint="Choose another name, or replace it with --force."
        )
    if not out.resolve().parent.is_dir():
        raise InvalidInputError("FILE_UNWRITABLE", f"there is no folder {str(out.parent)!r}.")


def _save(document: str, out: Path | None, *, force: bool) -> None:
    """Writes the whole file or none of it."""
    if out is None:
        sys.stdout.write(document)
        return
    _check(out, force=force)
    draft = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        draft.write_text(document, encoding="utf-8")
        draft.replace(out)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInputError(
            "FILE_UNWRITABLE", f"the task cannot be written to {str(out)!r}: {error.strerror}."
        ) from error
    note(f"{out}: saved. Next: droidfleet task explain {out}")
