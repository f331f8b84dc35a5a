"""`droidfleet devices`: who is there and who can work."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from droidfleet.v1 import fleet_pb2
from droidfleet_controller.cli import documents, fleet_tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show, show_table

app = typer.Typer(invoke_without_command=True)


class StateFilter(StrEnum):
    """A device's state, as it is spelt on the command line."""

    ONLINE = "online"
    BUSY = "busy"
    PHONE_OFFLINE = "phone-offline"
    OFFLINE = "offline"


@app.callback()
def list_devices(
    context: typer.Context,
    *,
    state: Annotated[list[StateFilter] | None, typer.Option("--state", help="Only these; repeatable.")] = None,
    query: Annotated[
        str, typer.Option("--query", metavar="QUERY", help="Only those whose labels and facts match.")
    ] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List devices by name, or show one.

    \b
    Examples:
      droidfleet devices
      droidfleet devices --state offline --state phone-offline
      droidfleet devices --query "site=berlin, android>=13, !retired"
      droidfleet devices -o json | jq -r '.devices[].name'
      droidfleet devices show phone-01
    """
    if context.invoked_subcommand is not None:
        return
    states = [fleet_pb2.DeviceState.Value(f"DEVICE_STATE_{item.name}") for item in state or ()]
    with ControllerClient(api) as client:
        items = list(client.devices(states, query=query))
    if output is not Output.TABLE:
        emit({"devices": [documents.device_document(item) for item in items]}, output)
    elif items:
        show_table(fleet_tables.devices(items, now=datetime.now(UTC)), spare=fleet_tables.DEVICES_SPARE)
    else:
        note(
            "No devices."
            if state or query
            else "No devices yet: `droidfleet-agent supervise` makes attached phones known."
        )


@app.command("show")
def show_device(
    name: Annotated[str, typer.Argument(help="The device's name.", autocompletion=complete_device)],
    *,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show all that is known of one device.

    \b
    Examples:
      droidfleet devices show phone-01
      droidfleet devices show phone-01 -o yaml
    """
    with ControllerClient(api) as client:
        item = client.device(name)
    if output is Output.TABLE:
        show(fleet_tables.device(item, now=datetime.now(UTC)))
    else:
        emit(documents.device_document(item), output)
