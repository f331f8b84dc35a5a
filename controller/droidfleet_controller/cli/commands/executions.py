"""`droidfleet execution`: runs of tasks on devices, and what came of them."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from droidfleet.v1 import execution_pb2
from droidfleet_controller.cli import documents, execution_view, tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device, complete_execution, complete_task
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, emit_item, note, show, show_table
from droidfleet_controller.cli.text import escape
from droidfleet_controller.cli.watching import Board, follow
from droidfleet_shared.artifacts import file_name
from droidfleet_shared.artifacts import save as save_file
from droidfleet_shared.errors import InvalidInputError, NotFoundError
from droidfleet_shared.exit_codes import ExitCode

app = typer.Typer(no_args_is_help=True, help="Follow, list and cancel runs of tasks.")

DEFAULT_LIMIT = 50
MAX_LIMIT = 100_000

ExecutionId = Annotated[str, typer.Argument(metavar="ID", help="The execution.", autocompletion=complete_execution)]


class StateFilter(StrEnum):
    """An execution's state, as it is spelt on the command line."""

    QUEUED = "queued"
    ASSIGNED = "assigned"
    ACCEPTED = "accepted"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed-out"
    EXPIRED = "expired"
    REJECTED = "rejected"
    LOST = "lost"


@app.command("list")
def list_executions(
    *,
    device: Annotated[str, typer.Option(help="Only on this device.", autocompletion=complete_device)] = "",
    task: Annotated[str, typer.Option(metavar="TASK_ID", help="Only of it.", autocompletion=complete_task)] = "",
    run: Annotated[str, typer.Option(metavar="RUN_ID", help="Only of this run.")] = "",
    state: Annotated[list[StateFilter] | None, typer.Option("--state", help="Only these; repeatable.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="How many at most.")] = DEFAULT_LIMIT,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List executions, newest first. Results come without their steps; `show` has them.

    \b
    Examples:
      droidfleet execution list
      droidfleet execution list --task shop-order --state failed --state timed-out
      droidfleet execution list --device phone-05 --limit 1 -o json
    """
    states = [execution_pb2.ExecutionState.Value(f"EXECUTION_STATE_{item.name}") for item in state or ()]
    with ControllerClient(api) as client:
        items = list(client.executions(limit=limit, device=device, task_id=task, run_id=run, states=states))
        if not items and device:
            # A name that nobody has explains it better.
            client.device(device)
    if output is not Output.TABLE:
        emit({"executions": [documents.execution_document(item) for item in items]}, output)
    elif items:
        show_table(tables.executions(items, now=datetime.now(UTC)), spare=tables.EXECUTIONS_SPARE)
    else:
        note("No executions.")


@app.command("show")
def show_execution(
    execution_id: ExecutionId, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API
) -> None:
    """Show one execution with the result of every step, its inputs and outputs, and what it kept.

    \b
    Examples:
      droidfleet execution show ID
      droidfleet execution show ID -o json | jq .result.outputs
    """
    with ControllerClient(api) as client:
        item = client.execution(execution_id)
    if output is Output.TABLE:
        show(execution_view.execution(item))
    else:
        emit(documents.execution_document(item), output)


@app.command("artifacts")
def show_artifacts(
    execution_id: ExecutionId,
    *,
    save: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write their files there; none is written over.")
    ] = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List what the steps of an execution kept, such as screenshots, and save it.

    Exits with 4 when one that is to be saved is not there any more; the others are saved.

    \b
    Examples:
      droidfleet execution artifacts ID
      droidfleet execution artifacts ID --save ./pictures
    """
    with ControllerClient(api) as client:
        items = list(client.execution(execution_id).artifacts)
        saved = (
            [] if save is None else [_save(client, execution_id, save, place) for place in enumerate(items, start=1)]
        )
    if output is not Output.TABLE:
        files = saved or [None] * len(items)
        emit(
            {
                "artifacts": [
                    documents.stored_artifact_document(item) | {"file": None if file is None else str(file)}
                    for item, file in zip(items, files, strict=True)
                ]
            },
            output,
        )
    elif not items:
        note("No artifacts.")
    elif save is None:
        show(execution_view.artifacts(items))
    else:
        sys.stdout.write("".join(f"{escape(str(file))}\n" for file in saved if file is not None))
    if saved and None in saved:
        raise typer.Exit(ExitCode.REFUSED)


def _save(
    client: ControllerClient, execution_id: str, folder: Path, place: tuple[int, execution_pb2.StoredArtifact]
) -> Path | None:
    """The file that was written; None, with a word about it, when there is nothing any more to write."""
    number, item = place
    artifact = item.artifact
    try:
        data = client.artifact(execution_id, artifact.sha256)
    except NotFoundError as error:
        note(f"{artifact.name} of step {item.step_id}: {error.code}: {error.message}")
        return None
    name = file_name(number, step_id=item.step_id, name=artifact.name, media_type=artifact.media_type)
    return save_file(folder, name, data)


@app.command("watch")
def watch_executions(
    execution_ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="The executions.", autocompletion=complete_execution)
    ] = None,
    *,
    run: Annotated[str, typer.Option(metavar="RUN_ID", help="All executions of this run.")] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Watch executions until all have ended. Exits with 1 when one of them did not succeed.

    With -o json, one JSON object a line: each execution as it is now, then again after every change.

    \b
    Examples:
      droidfleet execution watch ID
      droidfleet execution watch --run RUN_ID
    """
    if bool(execution_ids) == bool(run):
        raise InvalidInputError("BAD_ARGUMENTS", "name either executions or --run RUN_ID.")
    board = Board()
    with ControllerClient(api) as client:
        stream = client.watch(execution_ids or (), run_id=run)
        if output is Output.TABLE:
            follow(stream, board)
            show(tables.results(board.executions))
        else:
            for item in stream:
                board.update(item)
                emit_item(documents.execution_document(item), output)
    if not board.all_succeeded:
        raise typer.Exit(ExitCode.FAILED)


@app.command("cancel")
def cancel_execution(
    execution_id: ExecutionId,
    *,
    reason: Annotated[str, typer.Option(help="Why; it stands in the result.")] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Ask for the end of an execution.

    One that waits ends at once.
    One that runs ends at its next step, when its agent says so.
    One that has ended stays as it is.

    \b
    Examples:
      droidfleet execution cancel ID --reason "wrong price"
    """
    with ControllerClient(api) as client:
        item = client.cancel(execution_id, reason=reason)
    if output is not Output.TABLE:
        emit(documents.execution_document(item), output)
    elif documents.state_of(item) in documents.TERMINAL:
        note(f"{item.execution_id} on {item.device}: {documents.state_of(item)}")
    else:
        note(f"{item.execution_id} on {item.device}: {documents.state_of(item)}, asked to end at its next step.")


@app.command("pause")
def pause_execution(
    execution_id: ExecutionId,
    *,
    reason: Annotated[str, typer.Option(help="Why, for the record.")] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Hold an execution.

    One that runs is PAUSED at its next step or in its wait, when its agent says so.
    One that has not begun does not begin; its time to start goes on.

    \b
    Examples:
      droidfleet execution pause ID --reason "look at the screen"
    """
    with ControllerClient(api) as client:
        item = client.pause(execution_id, reason=reason)
    _say(item, "PAUSED", "asked to pause at its next step", output)


@app.command("resume")
def resume_execution(
    execution_id: ExecutionId, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API
) -> None:
    """Let an execution go on that was paused.

    \b
    Examples:
      droidfleet execution resume ID
    """
    with ControllerClient(api) as client:
        item = client.resume(execution_id)
    _say(item, "RUNNING", "asked to go on", output)


def _say(item: execution_pb2.Execution, there: str, asked: str, output: Output) -> None:
    """What became of an order: it stands where it was to (``there``), or is asked to."""
    standing = documents.state_of(item)
    if output is not Output.TABLE:
        emit(documents.execution_document(item), output)
    else:
        note(f"{item.execution_id} on {item.device}: {standing}{'' if standing == there else f', {asked}'}.")
