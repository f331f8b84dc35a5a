"""`droidfleet task import`: tasks that were written for other programs. Needs no controller."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from droidfleet_controller.cli.files import check_target, write_whole
from droidfleet_controller.cli.options import Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from droidfleet_controller.importing.maestro import FlowReader


def import_task(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to import; - reads standard input.")],
    *,
    form: Annotated[
        Literal["generic", "maestro"] | None,
        typer.Option("--from", help="Its form: generic_steps JSON, or a Maestro flow. Left out: seen from the file."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to save the task; left out: it is printed.")
    ] = None,
    allow_points: Annotated[
        bool, typer.Option("--allow-points", help="Take steps that touch a point, whatever is there.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Where to save the report as JSON.")
    ] = None,
    task_id: Annotated[
        str, typer.Option("--id", help="The task's id (the name in the file, else the file's own).")
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a task of a file that was written for another program. Needs no controller.

    An import is whole or refused: what has no counterpart is listed with what to write instead, and then nothing is
    saved and the command exits with 2. The report says of each step what became of it.

    \b
    Examples:
      droidfleet task import buy-tea.yaml --out buy-tea.json
      droidfleet task import old-task.json --allow-points > task.json
      cat flow.yaml | droidfleet task import - --from maestro -o json
    """
    # The validator's models take longer to load than all the rest of this program.
    from droidfleet_controller.cli.import_report import report_document, report_view  # noqa: PLC0415
    from droidfleet_controller.cli.sources import STDIN, read_bytes  # noqa: PLC0415
    from droidfleet_controller.importing.maestro import no_files  # noqa: PLC0415
    from droidfleet_controller.importing.sources import Form, form_of, import_file  # noqa: PLC0415

    for target in (out, report):
        if target is not None:
            check_target(target, force=force)
    data = read_bytes(file)
    path = None if file == STDIN else Path(file)
    known = Form(form) if form else form_of(data)
    shown = path.name if path else "stdin"
    imported = import_file(
        data,
        form=known,
        file=shown,
        read=_beside(path) if path else no_files,
        fallback_id=path.stem if path else "imported",
        task_id=task_id or None,
        allow_points=allow_points,
    )
    said = report_document(imported, file=shown, form=known)
    if report is not None:
        write_whole(report, json.dumps(said, ensure_ascii=False, indent=2) + "\n", force=force)
    text = None
    if imported.document is not None:
        text = json.dumps(imported.document, ensure_ascii=False, indent=2) + "\n"
        if out is not None:
            write_whole(out, text, force=force)
    if output is not Output.TABLE:
        emit({**said, "document": imported.document}, output)
    elif out is not None:
        show(report_view(imported, file=shown))
    else:
        # The task goes to standard output, so that the report must not.
        show(report_view(imported, file=shown), stderr=True)
        sys.stdout.write(text or "")
    if text is None:
        raise typer.Exit(ExitCode.INVALID)
    if out is not None:
        note(f"{out}: saved. Next: droidfleet task explain {out}")


def _beside(path: Path) -> FlowReader:
    """Reads flows from the folder of a file and the folders in it, and from nowhere else, symbolic links included."""
    from droidfleet_controller.cli.sources import read_text  # noqa: PLC0415 - loads the protocol's models
    from droidfleet_controller.importing.maestro import FlowUnreadableError  # noqa: PLC0415

    folder = path.resolve().parent

    def read(name: str) -> str:
        try:
            found = (folder / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # too long, links in a circle, no name for a file
            raise FlowUnreadableError(
                "its name is none that a file can have, or links that lead in a circle"
            ) from error
        if not found.is_relative_to(folder):
            raise FlowUnreadableError("it does not lie in the folder of the flow that is imported")
        try:
            return read_text(str(found))
        except InvalidInputError as error:
            raise FlowUnreadableError(error.message.rstrip(".")) from error

    return read
