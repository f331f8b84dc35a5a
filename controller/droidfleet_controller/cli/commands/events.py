"""`droidfleet events`: what happened in the fleet, and what happens now."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from droidfleet_controller.cli import documents, tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device, complete_execution
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit_item, note
from droidfleet_shared.errors import NotFoundError

ONLY_NEW = -1


def events(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new events until Ctrl-C.")] = False,
    after: Annotated[
        int | None,
        typer.Option(
            "--after",
            min=0,
            metavar="EVENT_ID",
            help="Only events after this one. Without it: all; with --follow: only new ones.",
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Only of this device.", autocompletion=complete_device)] = "",
    execution: Annotated[
        str, typer.Option(metavar="ID", help="Only of this execution.", autocompletion=complete_execution)
    ] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Print what happened in the fleet, oldest first.

    With -o json, one JSON object a line. Event ids grow, so a program goes on with --after LAST_ID.

    \b
    Examples:
      droidfleet events --device phone-01
      droidfleet events --follow
      droidfleet events --follow --after 0 -o json
    """
    cursor = after if after is not None else ONLY_NEW if follow else 0
    with ControllerClient(api) as client:
        if follow and device:
            _note_unknown(client, device)
        empty = True
        for event in client.events(after=cursor, device=device, execution_id=execution, follow=follow):
            empty = False
            if output is Output.TABLE:
                sys.stdout.write(tables.event_line(event) + "\n")
                sys.stdout.flush()
            else:
                emit_item(documents.event_document(event), output)
        if empty:
            # A name that nobody has explains it better.
            if device:
                client.device(device)
            if execution:
                client.execution(execution)
            note("No events.")


def _note_unknown(client: ControllerClient, device: str) -> None:
    """Says that nothing was heard of a device yet, which may be what the caller waits for, or a slip."""
    try:
        client.device(device)
    except NotFoundError as error:
        note(f"{error.code}: {error.message} {error.hint} Waiting for what happens there.")
