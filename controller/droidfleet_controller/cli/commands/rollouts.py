"""`droidfleet rollout`: a task on many phones, in waves."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from droidfleet.v1 import rollout_pb2
from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli import rollout_view as view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands.rollout_control import (
    abort_rollout,
    cancel_rollout,
    pause_rollout,
    promote_rollout,
    resume_rollout,
)
from droidfleet_controller.cli.commands.rollout_start import (
    UntilOption,
    leave_by,
    plan_rollout,
    start_rollout,
    watch_to_end,
)
from droidfleet_controller.cli.completion import complete_rollout, complete_schedule
from droidfleet_controller.cli.files import check_target, write_pieces, write_stream
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import console, emit, emit_item, note, show, show_table
from droidfleet_controller.cli.rollout_watching import Until, enough

app = typer.Typer(no_args_is_help=True, help="Run a task on many phones, in waves.")

DEFAULT_LIMIT = 50
MEMBERS_LIMIT = 10_000
MAX_LIMIT = 100_000

RolloutId = Annotated[str, typer.Argument(metavar="ID", help="The rollout.", autocompletion=complete_rollout)]


class StateFilter(StrEnum):
    """A rollout's state, as it is spelt on the command line."""

    AWAITING_APPROVAL = "awaiting-approval"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABORTED = "aborted"


class MemberFilter(StrEnum):
    """Where a phone of a rollout stands, as it is spelt on the command line."""

    WAITING = "waiting"
    STARTED = "started"
    RETRYING = "retrying"
    ENDED = "ended"


class OutcomeFilter(StrEnum):
    """How a phone of a rollout ended, as it is spelt on the command line."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    SILENT = "silent"
    UNKNOWN = "unknown"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SKIPPED = "skipped"
    REMOVED = "removed"


class ReportForm(StrEnum):
    """The form of a report."""

    HTML = "html"
    CSV = "csv"
    JSON = "json"


app.command("plan")(plan_rollout)
app.command("start")(start_rollout)


@app.command("list")
def list_rollouts(
    *,
    state: Annotated[list[StateFilter] | None, typer.Option("--state", help="Only these; repeatable.")] = None,
    schedule: Annotated[
        str, typer.Option(help="Only those that it began.", metavar="NAME", autocompletion=complete_schedule)
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="How many at most.")] = DEFAULT_LIMIT,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List rollouts, newest first.

    \b
    Examples:
      droidfleet rollout list
      droidfleet rollout list --state running --state paused
      droidfleet rollout list --schedule nightly -o json | jq -r '.rollouts[].rolloutId'
    """
    states = [rollout_pb2.RolloutState.Value(f"ROLLOUT_STATE_{item.name}") for item in state or ()]
    with ControllerClient(api) as client:
        schedule_id = client.schedule(schedule).schedule_id if schedule else ""
        items = list(client.rollouts(limit=limit, states=states, schedule_id=schedule_id))
    if output is not Output.TABLE:
        emit({"rollouts": [documents.rollout_document(item) for item in items]}, output)
    elif items:
        show_table(view.rollouts(items), spare=view.SPARE_OF_LIST)
    else:
        note("No rollouts.")


@app.command("show")
def show_rollout(rollout_id: RolloutId, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Show one rollout: its waves, why it waits, what failed, and what can be done next.

    \b
    Examples:
      droidfleet rollout show ID
      droidfleet rollout show ID -o json | jq '.waves[].outcomes'
    """
    with ControllerClient(api) as client:
        item = client.rollout(rollout_id)
    if output is Output.TABLE:
        show(view.rollout(item, width=console().width))
    else:
        emit(documents.rollout_document(item), output)


@app.command("watch")
def watch_rollout(
    rollout_id: RolloutId,
    *,
    until: UntilOption = Until.ENDED,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Watch a rollout until it has ended. Exits with 1 unless it succeeds.

    Ctrl-C stops watching, never the rollout.
    With -o json, one JSON object a line: the rollout as it is now, then again after changes.

    \b
    Examples:
      droidfleet rollout watch ID
      droidfleet rollout watch ID --until held
      droidfleet rollout watch ID -o json
    """
    with ControllerClient(api) as client:
        item = client.rollout(rollout_id)
        if output is Output.TABLE:
            item = watch_to_end(client, item, until)
            show(view.rollout(item, width=console().width))
        else:
            for item in client.watch_rollout(rollout_id):
                emit_item(documents.rollout_document(item), output)
                if enough(item, until):
                    break
    leave_by(item)


app.command("pause")(pause_rollout)
app.command("resume")(resume_rollout)
app.command("promote")(promote_rollout)
app.command("cancel")(cancel_rollout)
app.command("abort")(abort_rollout)


@app.command("members")
def list_members(
    rollout_id: RolloutId,
    *,
    wave: Annotated[int | None, typer.Option(min=0, help="Only of this wave; 0 is the dry run.")] = None,
    state: Annotated[list[MemberFilter] | None, typer.Option("--state", help="Only these; repeatable.")] = None,
    outcome: Annotated[
        list[OutcomeFilter] | None, typer.Option("--outcome", help="Only those that ended so; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="How many at most.")] = MEMBERS_LIMIT,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List the phones of a rollout in their order: where each stands, how it ended, and why.

    \b
    Examples:
      droidfleet rollout members ID
      droidfleet rollout members ID --outcome failed --outcome unknown
      droidfleet rollout members ID --wave 2 -o json | jq -r '.members[].device'
    """
    states = [rollout_pb2.MemberState.Value(f"MEMBER_STATE_{item.name}") for item in state or ()]
    outcomes = [rollout_pb2.MemberOutcome.Value(f"MEMBER_OUTCOME_{item.name}") for item in outcome or ()]
    with ControllerClient(api) as client:
        items = list(client.rollout_members(rollout_id, limit=limit, wave=wave, states=states, outcomes=outcomes))
    if output is not Output.TABLE:
        emit({"members": [documents.member_document(item) for item in items]}, output)
    elif items:
        show_table(view.members(items), spare=("Tries", "Execution"))
    else:
        note("No phones.")


@app.command("explain")
def explain_rollout(
    rollout_id: RolloutId, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API
) -> None:
    """Say why a rollout did what it did: every decision with its rule and its numbers, and who joined or left.

    \b
    Examples:
      droidfleet rollout explain ID
      droidfleet rollout explain ID -o json | jq '.decisions[-1]'
    """
    with ControllerClient(api) as client:
        decisions = list(client.rollout_decisions(rollout_id))
        changes = list(client.rollout_membership(rollout_id))
    if output is not Output.TABLE:
        emit(
            {
                "decisions": [documents.decision_document(item) for item in decisions],
                "membership": [documents.membership_document(item) for item in changes],
            },
            output,
        )
        return
    if decisions:
        show(view.decisions(decisions))
    if changes:
        sys.stdout.write("\n")
        show(view.membership(changes))
    if not decisions and not changes:
        note("Nothing was decided yet.")


@app.command("report")
def report_rollout(
    rollout_id: RolloutId,
    *,
    form: Annotated[
        ReportForm, typer.Option("--format", "-f", help="html for people, csv with a row for each phone, json.")
    ] = ReportForm.HTML,
    lang: Annotated[Literal["en", "zh"], typer.Option(help="The language of the page's own words.")] = "en",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write it; left out: printed.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Write the report of a rollout as a file. It may be had at any time; it is whole, or it is not written.

    \b
    Examples:
      droidfleet rollout report ID -f html -o report.html
      droidfleet rollout report ID -f csv > phones.csv
    """
    if out is not None:
        check_target(out, force=force)
    wanted = rollout_pb2.ReportFormat.Value(f"REPORT_FORMAT_{form.name}")
    with ControllerClient(api) as client:
        pieces = client.rollout_report(rollout_id, wanted, language=lang)
        if out is None:
            write_stream(sys.stdout.buffer, pieces)
        else:
            write_pieces(out, pieces, force=force)
            note(f"{out}: saved.")
