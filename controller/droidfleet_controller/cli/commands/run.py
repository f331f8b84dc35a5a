"""`droidfleet task run`: executions of a task, followed to their end."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet.v1 import execution_pb2, fleet_pb2
from droidfleet_controller.cli import documents, tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption, RevisionOption
from droidfleet_controller.cli.output import emit, note, show, show_table
from droidfleet_controller.cli.watching import Board, follow
from droidfleet_shared.errors import InvalidInputError, NotFoundError, UnavailableError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from droidfleet_shared.protocol.pointers import Json

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

MAX_PRIORITY = 9

MAX_SEED = 2**53 - 1
"""The protocol's (a test compares them); its models take longer to load than all the rest of this program."""


def run_task(
    task: Annotated[str, typer.Argument(metavar="FILE|TASK_ID", help="A file, - for standard input, or a task's id.")],
    *,
    device: Annotated[
        list[str] | None,
        typer.Option("--device", "-d", help="Where to run it; repeatable.", autocompletion=complete_device),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="A value for an input of the task; repeatable."),
    ] = None,
    inputs_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="JSON or YAML with values; --input goes over it.")
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A secret input: from DROIDFLEET_SECRET_NAME, else asked for; repeatable."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=MAX_SEED, metavar="N", help="Of random choices; makes a run repeatable.")
    ] = None,
    revision: RevisionOption = 0,
    expires_in: Annotated[
        str, typer.Option(metavar="30s|10m|24h|7d", help="How long it may wait for its start.")
    ] = "24h",
    priority: Annotated[
        int | None,
        typer.Option(min=0, max=MAX_PRIORITY, metavar="0-9", help="The higher one runs first on a device; usual is 5."),
    ] = None,
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
      droidfleet task run order.json -d phone-01 --input "item=green tea" --input count=2 --secret pin
      droidfleet task run order.json -d phone-01 --inputs-file values.yaml --seed 7
    """
    from droidfleet_controller.cli.sources import names_file, read_text  # noqa: PLC0415 - loads the protocol's models

    expiry = _duration(expires_in)
    what = read_text(task) if names_file(task) else execution_pb2.TaskRef(task_id=task, revision=revision)
    given = _Given(inputs or [], inputs_file, secret or [])
    devices = device or []
    key = request_id or str(uuid.uuid4())
    watched = sys.stdout.isatty() if watch is None else watch
    with ControllerClient(api) as client:
        try:
            what, values = _with_values(client, what, given)
            with all_issues(client, what if not values else None):
                answer = client.run_task(
                    what, devices=devices, request_id=key, expires_in=expiry, values=values, random_seed=seed,
                    priority=priority,
                )  # fmt: skip
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
def all_issues(client: ControllerClient, document: str | execution_pb2.TaskRef | None) -> Iterator[None]:
    """An error carries only as many issues as its metadata can hold; this asks for the others, if it is a text that is
    not valid by itself."""
    try:
        yield
    except InvalidInputError as error:
        if error.code != "INVALID_TASK" or not isinstance(document, str):
            raise
        issues = tuple(client.validate_task(document).errors) or error.issues
        count = f"{len(issues)} error{'s' * (len(issues) != 1)}"
        raise InvalidInputError(error.code, f"the document is not valid: {count}.", issues=issues) from error


@dataclass(frozen=True, slots=True)
class _Given:
    """What the command line says about values."""

    pairs: list[str]
    file: str | None
    secrets: list[str]


def _with_values(
    client: ControllerClient, what: str | execution_pb2.TaskRef, given: _Given
) -> tuple[str | execution_pb2.TaskRef, dict[str, Json]]:
    """The task and the values for it. A task of the library is read, since it says what the values are, and then run in
    just that revision."""
    if not (given.pairs or given.file or given.secrets):
        return what, {}
    # Brings the protocol's models, and YAML.
    from droidfleet_shared.input_values import collect_values, declared_types  # noqa: PLC0415
    from droidfleet_shared.protocol.jsontext import parse  # noqa: PLC0415
    from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES  # noqa: PLC0415

    text = what
    if isinstance(what, execution_pb2.TaskRef):
        stored = client.task(what.task_id, revision=what.revision)
        what, text = execution_pb2.TaskRef(task_id=stored.task_id, revision=stored.revision), stored.document_json
    declared = declared_types(parse(str(text), max_bytes=MAX_DOCUMENT_BYTES).value)
    return what, collect_values(declared, pairs=given.pairs, file=given.file, secrets=given.secrets)


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
