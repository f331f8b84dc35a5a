"""`droidfleet task`: check, keep and run tasks."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet.v1 import execution_pb2, fleet_pb2
from droidfleet_controller.cli import documents, tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands.explain import explain_task, print_issues
from droidfleet_controller.cli.completion import complete_device, complete_task
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption, WordsOption
from droidfleet_controller.cli.output import emit, note, show, show_table
from droidfleet_controller.cli.text import escape
from droidfleet_controller.cli.watching import Board, follow
from droidfleet_shared.errors import InvalidInputError, NotFoundError, UnavailableError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

app = typer.Typer(no_args_is_help=True, help="Check, keep and run tasks.")

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="A task document; - reads standard input.")]
RevisionOption = Annotated[int, typer.Option("--revision", min=0, metavar="N", help="0 means the newest.")]


@app.command("validate")
def validate_task(file: FileArgument, *, words: WordsOption = None, output: OutputOption = Output.TABLE) -> None:
    """Check a task document and print everything that is wrong with it. Needs no controller.

    Exits with 2 when the document is not valid. Warnings stop nothing.

    \b
    Examples:
      droidfleet task validate examples/shop-order.json
      cat task.json | droidfleet task validate - -o json
    """
    # The validator's models take longer to load than all the rest of this program.
    from droidfleet_controller.cli.sources import read_bytes  # noqa: PLC0415
    from droidfleet_controller.tasks.words import load_words  # noqa: PLC0415
    from droidfleet_shared.protocol.validate import validate_document  # noqa: PLC0415

    outcome = validate_document(read_bytes(file), words=load_words(words))
    print_issues(file, outcome.errors, outcome.warnings, output)
    if not outcome.valid:
        raise typer.Exit(ExitCode.INVALID)


app.command("explain")(explain_task)


@app.command("save")
def save_task(file: FileArgument, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Store a task in the library under its taskId, as a new revision when its text is new.

    \b
    Examples:
      droidfleet task save examples/shop-order.json
    """
    from droidfleet_controller.cli.sources import read_text  # noqa: PLC0415 - loads the protocol's models

    text = read_text(file)
    with ControllerClient(api) as client, _all_issues(client, text):
        answer = client.save_task(text)
    if output is not Output.TABLE:
        warnings = documents.issue_documents(answer.warnings)
        emit({"task": documents.task_document(answer.task), "created": answer.created, "warnings": warnings}, output)
        return
    for issue in answer.warnings:
        sys.stderr.write(f"warning: {issue_text(issue)}\n")
    what = "saved" if answer.created else "unchanged"
    sys.stdout.write(f"{escape(answer.task.task_id)} revision {answer.task.revision}: {what}\n")


@app.command("list")
def list_tasks(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """List the newest revision of each task in the library.

    \b
    Examples:
      droidfleet task list
      droidfleet task list -o yaml
    """
    with ControllerClient(api) as client:
        items = list(client.tasks())
    if output is not Output.TABLE:
        emit({"tasks": [documents.task_document(item) for item in items]}, output)
    elif items:
        show(tables.tasks(items))
    else:
        note("No tasks yet: `droidfleet task save FILE` keeps one.")


@app.command("show")
def show_task(
    task_id: Annotated[str, typer.Argument(help="The task's id.", autocompletion=complete_task)],
    *,
    revision: RevisionOption = 0,
    document: Annotated[bool, typer.Option("--document", help="Only the text, exactly as it was saved.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show a task of the library.

    \b
    Examples:
      droidfleet task show shop-order
      droidfleet task show shop-order --revision 1 --document > shop-order.json
    """
    with ControllerClient(api) as client:
        item = client.task(task_id, revision=revision)
    if document:
        sys.stdout.buffer.write(item.document_json.encode())
    elif output is Output.TABLE:
        show(tables.task_facts(item))
        sys.stdout.write("\n" + "\n".join(escape(line) for line in item.document_json.splitlines()) + "\n")
    else:
        emit(documents.task_document(item), output)


@app.command("run")
def run_task(
    task: Annotated[str, typer.Argument(metavar="FILE|TASK_ID", help="A file, - for standard input, or a task's id.")],
    *,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="Where to run it; repeatable.", autocompletion=complete_device),
    ] = None,
    revision: RevisionOption = 0,
    expires_in: Annotated[
        str, typer.Option(metavar="30s|10m|24h|7d", help="How long it may wait for its start.")
    ] = "24h",
    request_id: Annotated[
        str, typer.Option(help="Makes a repeated call harmless: the same id answers with the same executions.")
    ] = "",
    watch: Annotated[
        bool | None, typer.Option("--watch/--no-watch", help="Follow it to the end (the default on a terminal).")
    ] = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Run a task on devices: one execution each, all or none.

    When watched: exits with 1 if one of them did not succeed; Ctrl-C stops watching, never the executions.

    \b
    Examples:
      droidfleet task run shop-order --device phone-01 --device phone-02
      droidfleet task run examples/shop-order.json -d phone-01 --watch
      droidfleet task run shop-order -d phone-01 --no-watch -o json
    """
    from droidfleet_controller.cli.sources import names_file, read_text  # noqa: PLC0415 - loads the protocol's models

    expiry = _duration(expires_in)
    what = read_text(task) if names_file(task) else execution_pb2.TaskRef(task_id=task, revision=revision)
    devices = device or []
    key = request_id or str(uuid.uuid4())
    watched = sys.stdout.isatty() if watch is None else watch
    with ControllerClient(api) as client:
        try:
            with _all_issues(client, what):
                answer = client.run_task(what, devices=devices, request_id=key, expires_in=expiry)
        except NotFoundError as error:
            file = f"{task}.json"
            if error.code != "TASK_NOT_FOUND" or not Path(file).is_file():
                raise
            raise NotFoundError(error.code, error.message, hint=f"Did you mean the file {file!r}?") from error
        except UnavailableError as error:
            if error.code == "CONTROLLER_UNAVAILABLE":
                raise
            again = f"{error.hint} Repeat it with --request-id {key}: it then runs once, whatever happened.".strip()
            raise UnavailableError(error.code, error.message, hint=again) from error
        absent = _absent(client, {item.device for item in answer.executions})
        for name, why in sorted(absent.items()):
            note(f"{name}: {why}; its execution waits, for {expires_in} at most.")
        if not watched:
            _written(answer.run_id, list(answer.executions), output)
            return
        board = Board(answer.executions, notes=absent)
        note(f"run {answer.run_id}")
        try:
            follow(client.watch(run_id=answer.run_id), board)
        except (KeyboardInterrupt, UnavailableError):
            note(f"The executions go on. Watch them: droidfleet execution watch --run {answer.run_id}")
            raise
    _written(answer.run_id, board.executions, output)
    if not board.all_succeeded:
        raise typer.Exit(ExitCode.FAILED)


@contextmanager
def _all_issues(client: ControllerClient, document: str | execution_pb2.TaskRef) -> Iterator[None]:
    """An error carries only as many issues as its metadata can hold; this asks for the others."""
    try:
        yield
    except InvalidInputError as error:
        if error.code != "INVALID_TASK" or not isinstance(document, str):
            raise
        issues = tuple(client.validate_task(document).errors) or error.issues
        count = f"{len(issues)} error{'s' * (len(issues) != 1)}"
        raise InvalidInputError(error.code, f"the document is not valid: {count}.", issues=issues) from error


def _written(run_id: str, executions: list[execution_pb2.Execution], output: Output) -> None:
    if output is not Output.TABLE:
        emit({"runId": run_id, "executions": [documents.execution_document(item) for item in executions]}, output)
    elif all(documents.state_of(item) in documents.TERMINAL for item in executions):
        show(tables.results(executions))
    else:
        show_table(tables.executions(executions, now=datetime.now(UTC)), spare=tables.EXECUTIONS_SPARE)
        note(f"Watch them: droidfleet execution watch --run {run_id}")


def _absent(client: ControllerClient, names: Collection[str]) -> dict[str, str]:
    """Why some of these devices cannot start at once, by name."""
    reasons = {
        fleet_pb2.DEVICE_STATE_OFFLINE: "agent offline",
        fleet_pb2.DEVICE_STATE_PHONE_OFFLINE: "phone offline",
    }
    found = client.devices(list(reasons))
    return {item.name: reasons[item.state] for item in found if item.name in names and item.state in reasons}


def _duration(text: str) -> timedelta:
    """``90s``, ``10m``, ``24h`` or ``7d``.

    Raises:
        InvalidInputError: ``BAD_DURATION``.
    """
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit() and unit in _UNITS and len(number) <= 6 and int(number) > 0):
        raise InvalidInputError(
            "BAD_DURATION",
            f"{text!r} is not a duration.",
            hint="Write a whole number with s, m, h or d: 30s, 10m, 24h.",
        )
    return timedelta(**{_UNITS[unit]: int(number)})
