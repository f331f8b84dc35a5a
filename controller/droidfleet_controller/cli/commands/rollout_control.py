"""`droidfleet rollout pause|resume|promote|cancel|abort`: what people ask of a rollout that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from droidfleet.v1 import rollout_pb2
from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli import rollout_view as view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_rollout
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note

RolloutId = Annotated[str, typer.Argument(metavar="ID", help="The rollout.", autocompletion=complete_rollout)]


@dataclass(frozen=True, kw_only=True)
class ControlFlags:
    """What all of these commands take."""

    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = ""
    version: Annotated[
        int | None,
        typer.Option("--version", min=1, metavar="N", help="Only if it is in this version still (what it is in now)."),
    ] = None
    output: OutputOption = Output.TABLE
    api: ApiOption = DEFAULT_API


@with_flags(flags=ControlFlags)
def pause_rollout(rollout_id: RolloutId, *, flags: ControlFlags) -> None:
    """Hold a rollout: nothing new starts, what runs goes on.

    \b
    Examples:
      droidfleet rollout pause ID --reason "the shop is down"
    """
    _control(rollout_id, rollout_pb2.ROLLOUT_CONTROL_PAUSE, flags)


@with_flags(flags=ControlFlags)
def resume_rollout(rollout_id: RolloutId, *, flags: ControlFlags) -> None:
    """Go on with a rollout that was paused, by a person or by a rule.

    \b
    Examples:
      droidfleet rollout resume ID
    """
    _control(rollout_id, rollout_pb2.ROLLOUT_CONTROL_RESUME, flags)


@with_flags(flags=ControlFlags)
def promote_rollout(rollout_id: RolloutId, *, flags: ControlFlags) -> None:
    """Open the next wave by hand, the first one included, whatever the gate says.

    \b
    Examples:
      droidfleet rollout promote ID --reason "the two failures are the phones' own"
    """
    _control(rollout_id, rollout_pb2.ROLLOUT_CONTROL_PROMOTE, flags)


@with_flags(flags=ControlFlags)
def cancel_rollout(rollout_id: RolloutId, *, flags: ControlFlags) -> None:
    """End a rollout: what waits is withdrawn, what runs ends at its next step.

    `rollout watch` shows on how many phones that is confirmed.

    \b
    Examples:
      droidfleet rollout cancel ID --reason "wrong price"
    """
    _control(rollout_id, rollout_pb2.ROLLOUT_CONTROL_CANCEL, flags)


@with_flags(flags=ControlFlags)
def abort_rollout(rollout_id: RolloutId, *, flags: ControlFlags) -> None:
    """End a rollout at once: as cancel, and what phones report afterwards is kept, labelled and never counted.

    \b
    Examples:
      droidfleet rollout abort ID --reason "it calls customers"
    """
    _control(rollout_id, rollout_pb2.ROLLOUT_CONTROL_ABORT, flags)


def _control(rollout_id: str, control: rollout_pb2.RolloutControl.ValueType, flags: ControlFlags) -> None:
    """Without a version it is meant for the rollout as it is now: read, and changed only if it is that still."""
    with ControllerClient(flags.api) as client:
        seen = client.rollout(rollout_id).version if flags.version is None else flags.version
        item = client.control_rollout(rollout_id, control, version=seen, reason=flags.reason)
    if flags.output is not Output.TABLE:
        emit(documents.rollout_document(item), flags.output)
        return
    note(f"{item.rollout_id}: {documents.rollout_state(item)}{f', {item.reason}' if item.reason else ''}")
    if view.confirmation(item):
        note(view.confirmation(item))
    for hint in view.what_next(item):
        note(hint)
