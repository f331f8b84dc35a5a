"""`droidfleet rollout plan` and `rollout start`: what a rollout would do, and its beginning."""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli import rollout_documents, rollout_view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands.explain import print_issues
from droidfleet_controller.cli.documents import issue_documents
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import console, emit, note, show
from droidfleet_controller.cli.rollout_flags import RolloutFlags
from droidfleet_controller.cli.rollout_watching import Until, follow
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, UnavailableError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from droidfleet.v1 import rollout_pb2
    from droidfleet_shared.protocol.pointers import Json

Source = Annotated[
    str,
    typer.Argument(metavar="FILE|TASK_ID", help="A rollout document (JSON or YAML), - for standard input, or a task."),
]

UntilOption = Annotated[
    Until,
    typer.Option("--until", help="Watch until it has ended, or also only until a person has to decide (held)."),
]


@with_flags(flags=RolloutFlags)
def plan_rollout(
    source: Source,
    *,
    flags: RolloutFlags,
    document: Annotated[
        bool, typer.Option("--document", help="Print the rollout document that file and options make, and no plan.")
    ] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show what a rollout would do, with the gates as numbers, and everything that is wrong with it. Starts nothing.

    Exits with 2 when it could not be started.

    \b
    Examples:
      droidfleet rollout plan shop-order --group shelf-a --wave 1 --wave 10% --max-failures 2
      droidfleet rollout plan rollout.yaml
      droidfleet rollout plan shop-order --query site=berlin --wave 5 --document > rollout.json
    """
    # Brings the protocol's models, and YAML.
    from droidfleet_controller.cli.rollout_building import rollout_of  # noqa: PLC0415

    with ControllerClient(api) as client:
        made = rollout_of(client, source, flags)
        if document:
            emit(dict(_without_secrets(made, flags)), Output.JSON if output is Output.TABLE else output)
            return
        answer = client.plan_rollout(_text(made))
    if output is not Output.TABLE:
        emit(rollout_documents.plan_document(answer), output)
    else:
        if answer.HasField("plan"):
            show(rollout_view.plan(answer.plan, example=_is_example(made)))
            sys.stdout.write("\n")
        print_issues(source, answer.errors, answer.warnings, output)
    if not answer.valid:
        raise typer.Exit(ExitCode.INVALID)


@with_flags(flags=RolloutFlags)
def start_rollout(
    source: Source,
    *,
    flags: RolloutFlags,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    request_id: Annotated[
        str, typer.Option(help="Makes a repeated call harmless: the same id answers with the same rollout.")
    ] = "",
    watch: Annotated[
        bool | None, typer.Option("--watch/--no-watch", help="Follow it to the end (the default on a terminal).")
    ] = None,
    until: UntilOption = Until.ENDED,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Run a task on many phones, in waves. Shows the plan first and, on a terminal, asks.

    What it is stands in a document, in options, or in both: options go over the document.
    When watched: exits with 1 unless it succeeds. Ctrl-C stops watching, never the rollout.

    \b
    Examples:
      droidfleet rollout start shop-order --group shelf-a --wave 1 --wave 10% --max-failures 2
      droidfleet rollout start rollout.yaml --inputs-csv values.csv --dry-run-on phone-01
      droidfleet rollout start shop-order --query "site=berlin, android>=13" --yes --no-watch -o json
      droidfleet rollout start rollout.yaml --yes --watch --until held
    """
    from droidfleet_controller.cli.rollout_building import rollout_of  # noqa: PLC0415

    watched = sys.stdout.isatty() if watch is None else watch
    key = request_id or str(uuid.uuid4())
    with ControllerClient(api) as client:
        made = rollout_of(client, source, flags)
        answer = client.plan_rollout(_text(made))
        if not answer.valid:
            count = len(answer.errors)
            raise InvalidInputError(
                "INVALID_ROLLOUT",
                f"the rollout cannot be started: {count} error{'s' * (count != 1)}.",
                issues=tuple(answer.errors),
            )
        # What was shown is what starts, whatever is saved meanwhile.
        made["revision"] = answer.plan.revision
        _show_plan(answer, example=_is_example(made))
        if not yes and _person_is_there() and not typer.confirm("Start it?", err=True):
            note("Nothing was started.")
            raise typer.Exit(ExitCode.REFUSED)
        started = _start(client, made, key)
        item = started.rollout
        note(f"rollout {item.rollout_id}")
        if watched:
            item = watch_to_end(client, item, until)
    if output is not Output.TABLE:
        warnings = issue_documents(started.warnings)
        emit({"rollout": rollout_documents.rollout_document(item), "warnings": warnings}, output)
    elif watched:
        show(rollout_view.rollout(item, width=console().width))
    else:
        sys.stdout.write(f"{item.rollout_id}\n")
        note(f"Watch it: droidfleet rollout watch {item.rollout_id}")
    if watched:
        leave_by(item)


def watch_to_end(client: ControllerClient, item: rollout_pb2.Rollout, until: Until) -> rollout_pb2.Rollout:
    """Follows the rollout on standard error; says how to go on where watching ends before it does."""
    rollout_id = item.rollout_id
    try:
        return follow(client.watch_rollout(rollout_id), item, until=until)
    except (KeyboardInterrupt, DroidfleetError) as error:
        if isinstance(error, KeyboardInterrupt | UnavailableError):
            note(f"The rollout goes on. Watch it: droidfleet rollout watch {rollout_id}")
            note(f"Hold it: droidfleet rollout pause {rollout_id}")
            note(f"End it: droidfleet rollout cancel {rollout_id}")
        raise


def leave_by(item: rollout_pb2.Rollout) -> None:
    """Ends the program with the code of a watched rollout.

    Raises:
        typer.Exit: it did not succeed.
    """
    if rollout_documents.rollout_state(item) != "SUCCEEDED":
        raise typer.Exit(ExitCode.FAILED)


def _start(client: ControllerClient, made: dict[str, Json], key: str) -> rollout_pb2.StartRolloutResponse:
    try:
        return client.start_rollout(_text(made), request_id=key)
    except UnavailableError as error:
        if error.code == "CONTROLLER_UNAVAILABLE":
            raise
        again = f"{error.hint} Repeat it with --request-id {key}: it then starts once, whatever happened.".strip()
        raise UnavailableError(error.code, error.message, hint=again) from error


def _is_example(document: Mapping[str, Json]) -> bool:
    """The order by hash follows from the rollout's id."""
    return document.get("order", "HASH") == "HASH"


def _show_plan(answer: rollout_pb2.PlanRolloutResponse, *, example: bool) -> None:
    show(rollout_view.plan(answer.plan, example=example), stderr=True)
    for issue in answer.warnings:
        sys.stderr.write(f"warning: {issue_text(issue)}\n")


def _person_is_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _text(document: dict[str, Json]) -> str:
    return json.dumps(document, ensure_ascii=False)


def _without_secrets(document: dict[str, Json], flags: RolloutFlags) -> dict[str, Json]:
    """A document that may be kept: secrets are given anew each time."""
    values = document.get("inputs")
    if not flags.secret or not isinstance(values, dict):
        return document
    kept: dict[str, Json] = {name: value for name, value in values.items() if name not in flags.secret}
    return {**document, "inputs": kept}
