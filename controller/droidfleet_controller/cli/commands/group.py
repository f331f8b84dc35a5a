"""`droidfleet group`: name devices that are meant together."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from droidfleet.v1 import fleet_pb2
from droidfleet_controller.cli import fleet_documents, fleet_tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device, complete_group
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show, show_table
from droidfleet_controller.cli.text import escape
from droidfleet_shared.errors import InvalidInputError

app = typer.Typer(no_args_is_help=True, help="Name devices that are meant together.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The group.", autocompletion=complete_group)]
DevicesArgument = Annotated[
    list[str], typer.Argument(metavar="DEVICE", help="The devices.", autocompletion=complete_device)
]
VersionOption = Annotated[
    int, typer.Option("--version", min=0, metavar="N", help="Only if it is in this version; 0: in whichever it is.")
]
DescriptionOption = Annotated[str | None, typer.Option("--description", metavar="TEXT", help="For people.")]


@app.command("create")
def create_group(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")],
    devices: Annotated[
        list[str] | None,
        typer.Argument(metavar="DEVICE", help="The devices of a static group.", autocompletion=complete_device),
    ] = None,
    *,
    query: Annotated[str, typer.Option("--query", metavar="QUERY", help="Makes it dynamic: who matches.")] = "",
    description: DescriptionOption = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Make a group: static with a list of devices, or dynamic with a query that is evaluated at use.

    \b
    Examples:
      droidfleet group create shelf phone-01 phone-02
      droidfleet group create berlin --query "site=berlin, android>=13, !retired"
    """
    with ControllerClient(api) as client:
        group = client.create_group(name, query=query, devices=devices or (), description=description or "")
    _told(group, "created", output)


@app.command("list")
def list_groups(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """List the groups.

    \b
    Examples:
      droidfleet group list
      droidfleet group list -o json | jq -r '.groups[].name'
    """
    with ControllerClient(api) as client:
        items = list(client.groups())
    if output is not Output.TABLE:
        emit({"groups": [fleet_documents.group_document(item) for item in items]}, output)
    elif items:
        show_table(fleet_tables.groups(items, now=datetime.now(UTC)), spare=("Changed", "Version"))
    else:
        note("No groups yet: `droidfleet group create NAME` makes one.")


@app.command("show")
def show_group(name: NameArgument, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Show what a group is: its query, or the devices that it lists.

    \b
    Examples:
      droidfleet group show berlin
      droidfleet group show shelf -o json | jq -r '.devices[]'
    """
    with ControllerClient(api) as client:
        group = client.group(name)
    if output is Output.TABLE:
        show(fleet_tables.group(group))
    else:
        emit(fleet_documents.group_document(group), output)


@app.command("preview")
def preview_group(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The group.", autocompletion=complete_group, show_default=False)
    ] = "",
    *,
    query: Annotated[str, typer.Option("--query", metavar="QUERY", help="A query instead of a group.")] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show who matches now: who is offline, who is busy, and how many executions wait for each.

    \b
    Examples:
      droidfleet group preview berlin
      droidfleet group preview --query "site in (berlin, paris), battery>=30"
    """
    if bool(name) == bool(query):
        raise InvalidInputError("BAD_ARGUMENTS", "name a group, or give a query by --query.")
    with ControllerClient(api) as client:
        found = client.preview_target(group=name, query=query)
    if output is not Output.TABLE:
        emit(fleet_documents.preview_document(found, group=name, query=query), output)
        return
    if found.devices:
        show_table(fleet_tables.preview(found.devices), spare=("Labels",))
    for text in found.notes:
        note(f"note: {text}")
    note(fleet_tables.preview_summary(found.devices))


@app.command("add")
def add_devices(
    name: NameArgument,
    devices: DevicesArgument,
    *,
    version: VersionOption = 0,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Add devices to a static group. One that is in it already is no error.

    \b
    Examples:
      droidfleet group add shelf phone-03 phone-04
    """
    with ControllerClient(api) as client:
        group = client.update_group(name, version=_version(client, name, version), add=devices)
    _told(group, "changed", output)


@app.command("remove")
def remove_devices(
    name: NameArgument,
    devices: DevicesArgument,
    *,
    version: VersionOption = 0,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Take devices out of a static group. One that is not in it is no error.

    \b
    Examples:
      droidfleet group remove shelf phone-03
    """
    with ControllerClient(api) as client:
        group = client.update_group(name, version=_version(client, name, version), remove=devices)
    _told(group, "changed", output)


@app.command("set")
def set_group(
    name: NameArgument,
    *,
    query: Annotated[
        str | None, typer.Option("--query", metavar="QUERY", help="The new query of a dynamic group.")
    ] = None,
    description: DescriptionOption = None,
    version: VersionOption = 0,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Change the query or the description of a group.

    \b
    Examples:
      droidfleet group set berlin --query "site=berlin, android>=14, !retired"
    """
    if query is None and description is None:
        raise InvalidInputError("BAD_ARGUMENTS", "nothing to change: give --query or --description.")
    with ControllerClient(api) as client:
        seen = _version(client, name, version)
        group = client.update_group(name, version=seen, query=query, description=description)
    _told(group, "changed", output)


@app.command("delete")
def delete_group(name: NameArgument, *, version: VersionOption = 0, api: ApiOption = DEFAULT_API) -> None:
    """Delete a group. Its devices stay as they are, and what was started on it goes on.

    \b
    Examples:
      droidfleet group delete shelf
    """
    with ControllerClient(api) as client:
        client.delete_group(name, version=_version(client, name, version))
    sys.stdout.write(f"{escape(name)}: deleted\n")


def _version(client: ControllerClient, name: str, wanted: int) -> int:
    """The version that the person saw, or the one that is there now."""
    return wanted or client.group(name).version


def _told(group: fleet_pb2.Group, what: str, output: Output) -> None:
    if output is Output.TABLE:
        sys.stdout.write(f"{escape(group.name)}: {what}, version {group.version}\n")
    else:
        emit(fleet_documents.group_document(group), output)
