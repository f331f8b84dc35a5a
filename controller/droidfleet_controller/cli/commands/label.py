"""`droidfleet device label`: set and remove labels of devices."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer

from droidfleet_controller.cli import documents, fleet_tables
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note
from droidfleet_controller.cli.text import escape
from droidfleet_shared.errors import InvalidInputError

REMOVES = "-"
"""Behind a key: the label is removed."""


@dataclass
class Words:
    """The words of the command line, sorted: names come first, then ``key=value`` and ``key-``."""

    devices: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)


def label_devices(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME|KEY=VALUE|KEY-",
            help="Devices first, then labels to set, and key- to remove one.",
            autocompletion=complete_device,
        ),
    ],
    *,
    query: Annotated[
        str, typer.Option("--query", metavar="QUERY", help="All devices that match, instead of names.")
    ] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Set labels of devices, and remove labels: of all of these devices, or of none.

    \b
    Examples:
      droidfleet device label phone-01 phone-02 site=berlin rack=3
      droidfleet device label phone-01 retired-
      droidfleet device label --query "model=Pixel 8" camera=good
    """
    found = sorted_words(words)
    if bool(found.devices) == bool(query):
        raise InvalidInputError("BAD_ARGUMENTS", "name the devices, or give a query by --query.")
    with ControllerClient(api) as client:
        changed = client.set_labels(devices=found.devices, query=query, labels=found.labels, remove=found.remove)
    if output is not Output.TABLE:
        emit({"devices": [documents.device_document(item) for item in changed]}, output)
        return
    for item in changed:
        sys.stdout.write(f"{escape(item.name)}: {escape(fleet_tables.labels_text(item) or 'no labels')}\n")
    if not changed:
        note("Nothing changed: they are labelled like this already.")


def sorted_words(words: Sequence[str]) -> Words:
    """What the words mean.

    Raises:
        InvalidInputError: ``BAD_ARGUMENTS``: no label, a name behind a label, or a key that is given twice.
    """
    found = Words()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals and not word.endswith(REMOVES):
            if found.labels or found.remove:
                raise InvalidInputError(
                    "BAD_ARGUMENTS",
                    f"{word!r} is neither key=value nor key-, and names come before labels.",
                    hint='A value with blanks is quoted for the shell: "room=first floor".',
                )
            found.devices.append(word)
            continue
        key = key if equals else word.removesuffix(REMOVES)
        if key in found.labels or key in found.remove:
            raise InvalidInputError("BAD_ARGUMENTS", f"the label {key!r} is given twice.")
        if equals:
            found.labels[key] = value
        else:
            found.remove.append(key)
    if not found.labels and not found.remove:
        raise InvalidInputError(
            "BAD_ARGUMENTS",
            "no label is given: key=value sets one, key- removes one.",
            hint="See a device's labels with: droidfleet devices show NAME",
        )
    return found
