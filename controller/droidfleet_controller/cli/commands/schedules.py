"""`droidfleet schedule`: rollouts that begin by the clock."""

from __future__ import annotations

import json
import sys
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli import rollout_documents as documents
from droidfleet_controller.cli import schedule_view as view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands.explain import print_issues
from droidfleet_controller.cli.completion import complete_schedule
from droidfleet_controller.cli.documents import Document, issue_documents, object_of
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show, show_table
from droidfleet_controller.cli.rollout_flags import RolloutFlags
from droidfleet_controller.cli.schedule_flags import ScheduleFlags, schedule_document_of
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from droidfleet.v1 import schedule_pb2
    from droidfleet_shared.protocol.pointers import Json

app = typer.Typer(no_args_is_help=True, help="Begin rollouts by the clock.")

DEFAULT_LIMIT = 50
MAX_LIMIT = 100_000
PREVIEWED = 10
MAX_PREVIEWED = 1000

Name = Annotated[str, typer.Argument(metavar="NAME", help="The schedule.", autocompletion=complete_schedule)]
VersionOption = Annotated[
    int | None,
    typer.Option("--version", min=1, metavar="N", help="Only if it is in this version still (what it is in now)."),
]
RolloutOption = Annotated[
    str,
    typer.Option("--rollout", metavar="FILE|TASK_ID", help="What it begins: a rollout document, or a task."),
]
AfterOption = Annotated[
    datetime | None,
    typer.Option("--after", formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M"], help="From when on, in UTC; left out: now."),
]


@app.command("preview")
@with_flags(times=ScheduleFlags)
def preview_schedule(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME",
            help="A schedule document, or a stored schedule; left out: options alone.",
            autocompletion=complete_schedule,
        ),
    ] = "",
    *,
    times: ScheduleFlags,
    count: Annotated[int, typer.Option(min=1, max=MAX_PREVIEWED, help="How many occurrences.")] = PREVIEWED,
    after: AfterOption = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List the next occurrences, clock changes flagged. Stores nothing.

    Options go over the document. Exits with 2 when it is not valid.

    \b
    Examples:
      droidfleet schedule preview nightly
      droidfleet schedule preview schedule.yaml --count 20
      droidfleet schedule preview --cron "30 2 * * *" --time-zone Europe/Berlin --after 2027-03-25
    """
    since = None if after is None else after.replace(tzinfo=UTC)
    with ControllerClient(api) as client:
        if source and not times.given and not _is_file(source):
            answer = client.preview_schedule(schedule=source, count=count, after=since)
        else:
            text = _text(schedule_document_of(_previewed(client, source), times))
            answer = client.preview_schedule(spec_json=text, count=count, after=since)
            if not source:
                answer = _of_times(answer)
    if output is not Output.TABLE:
        emit(documents.preview_document(answer), output)
    else:
        if answer.occurrences:
            show(view.planned(answer.occurrences))
        if not answer.valid or answer.warnings:
            print_issues(source or "options", answer.errors, answer.warnings, output)
        elif not answer.occurrences:
            note("Nothing is to come.")
    if not answer.valid:
        raise typer.Exit(ExitCode.INVALID)


@app.command("create")
@with_flags(times=ScheduleFlags, flags=RolloutFlags)
def create_schedule(
    source: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A schedule document (JSON or YAML), -, or the schedule's name.")
    ],
    *,
    times: ScheduleFlags,
    flags: RolloutFlags,
    rollout: RolloutOption = "",
    disabled: Annotated[bool, typer.Option("--disabled", help="Keep it switched off at first.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Keep a schedule, which begins a rollout at each of its times.

    What it is stands in a document, in options, or in both: options go over the document.

    \b
    Examples:
      droidfleet schedule create schedule.yaml
      droidfleet schedule create nightly --cron "30 2 * * *" --rollout shop-order --group shelf-a
      droidfleet schedule create at-night --window-start "0 22 * * *" --window-stop "0 6 * * *" --rollout rollout.yaml
    """
    with ControllerClient(api) as client:
        document: dict[str, Json] = _document(source) if _is_file(source) else {"name": source}
        made = _changed(client, document, times, flags, rollout)
        if disabled:
            made["enabled"] = False
        answer = client.create_schedule(_text(made))
    _saved(answer.schedule, list(issue_documents(answer.warnings)), "created", output)


@app.command("list")
def list_schedules(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """List schedules by name, with the next time of each.

    \b
    Examples:
      droidfleet schedule list
      droidfleet schedule list -o json | jq -r '.schedules[] | select(.enabled) | .name'
    """
    with ControllerClient(api) as client:
        items = list(client.schedules())
    if output is not Output.TABLE:
        emit({"schedules": [documents.schedule_document(item) for item in items]}, output)
    elif items:
        show_table(view.schedules(items), spare=view.SPARE_OF_LIST)
    else:
        note("No schedules yet: `droidfleet schedule create` keeps one.")


@app.command("show")
def show_schedule(
    name: Name,
    *,
    document: Annotated[bool, typer.Option("--document", help="Only its document, secrets left out.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show one schedule and its next occurrences.

    \b
    Examples:
      droidfleet schedule show nightly
      droidfleet schedule show nightly --document > nightly.json
    """
    with ControllerClient(api) as client:
        item = client.schedule(name)
        if document:
            emit(dict(object_of(item.spec_json)), Output.JSON if output is Output.TABLE else output)
        elif output is Output.TABLE:
            coming = client.preview_schedule(schedule=name, count=PREVIEWED).occurrences if item.enabled else ()
            show(view.schedule(item, coming))
        else:
            emit(documents.schedule_document(item), output)


@app.command("update")
@with_flags(times=ScheduleFlags, flags=RolloutFlags)
def update_schedule(
    schedule: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The new document; left out: the one it has, with options over it.")
    ] = "",
    *,
    times: ScheduleFlags,
    flags: RolloutFlags,
    rollout: RolloutOption = "",
    version: VersionOption = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Change a schedule. What it began goes on as it is.

    \b
    Examples:
      droidfleet schedule update nightly --cron "0 3 * * *"
      droidfleet schedule update nightly schedule.yaml
    """
    with ControllerClient(api) as client:
        item = client.schedule(schedule)
        document = _document(file) if file else _stored(item)
        made = _changed(client, document, times, flags, rollout)
        seen = item.version if version is None else version
        answer = client.update_schedule(schedule, version=seen, spec_json=_text(made))
    _saved(answer.schedule, list(issue_documents(answer.warnings)), "changed", output)


@app.command("enable")
def enable_schedule(
    name: Name, *, version: VersionOption = None, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API
) -> None:
    """Switch a schedule on. Times that passed while it was off are not made up for.

    \b
    Examples:
      droidfleet schedule enable nightly
    """
    _switch(name, version, output, api, enabled=True)


@app.command("disable")
def disable_schedule(
    name: Name, *, version: VersionOption = None, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API
) -> None:
    """Switch a schedule off. What it began goes on.

    \b
    Examples:
      droidfleet schedule disable nightly
    """
    _switch(name, version, output, api, enabled=False)


@app.command("run")
def run_schedule(
    name: Name,
    *,
    request_id: Annotated[
        str, typer.Option(help="Makes a repeated call harmless: the same id answers with the same rollout.")
    ] = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Begin a schedule's rollout now, beside its times.

    \b
    Examples:
      droidfleet schedule run nightly
      droidfleet rollout watch "$(droidfleet schedule run nightly)"
    """
    with ControllerClient(api) as client:
        rollout_id = client.run_schedule(name, request_id=request_id or str(uuid.uuid4()))
    if output is not Output.TABLE:
        emit({"rolloutId": rollout_id}, output)
    else:
        sys.stdout.write(f"{rollout_id}\n")
        note(f"Watch it: droidfleet rollout watch {rollout_id}")


@app.command("delete")
def delete_schedule(name: Name, *, version: VersionOption = None, api: ApiOption = DEFAULT_API) -> None:
    """Remove a schedule. What it began goes on, and its occurrences stay on record.

    \b
    Examples:
      droidfleet schedule delete nightly
    """
    with ControllerClient(api) as client:
        seen = client.schedule(name).version if version is None else version
        client.delete_schedule(name, version=seen)
    note(f"{name}: deleted")


@app.command("occurrences")
def list_occurrences(
    name: Name,
    *,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="How many at most.")] = DEFAULT_LIMIT,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List what became of a schedule's times, newest first: which began a rollout, and why others did not.

    \b
    Examples:
      droidfleet schedule occurrences nightly
      droidfleet schedule occurrences nightly -o json | jq '.occurrences[0].rolloutId'
    """
    with ControllerClient(api) as client:
        items = list(client.occurrences(name, limit=limit))
    if output is not Output.TABLE:
        emit({"occurrences": [documents.occurrence_document(item) for item in items]}, output)
    elif items:
        show(view.occurrences(items))
    else:
        note("None of its times has come yet.")


def _switch(name: str, version: int | None, output: Output, api: str, *, enabled: bool) -> None:
    with ControllerClient(api) as client:
        seen = client.schedule(name).version if version is None else version
        item = client.set_schedule_enabled(name, version=seen, enabled=enabled)
    if output is not Output.TABLE:
        emit(documents.schedule_document(item), output)
    else:
        note(f"{item.name}: {'on' if item.enabled else 'off'}")
        _say_next(item)


def _saved(item: schedule_pb2.Schedule, warnings: list[Document], what: str, output: Output) -> None:
    if output is not Output.TABLE:
        emit({"schedule": documents.schedule_document(item), "warnings": warnings}, output)
        return
    for issue in warnings:
        sys.stderr.write(f"warning: {issue_text(issue)}\n")
    sys.stdout.write(f"{item.name}: {what}\n")
    _say_next(item)


def _say_next(item: schedule_pb2.Schedule) -> None:
    if item.enabled:
        note(f"Next: {item.next.local}" if item.HasField("next") else "Nothing is to come.")


def _is_file(source: str) -> bool:
    from droidfleet_controller.cli.spec_files import names_spec  # noqa: PLC0415 - loads the protocol's models

    return names_spec(source)


def _document(source: str) -> dict[str, Json]:
    from droidfleet_controller.cli.spec_files import read_spec  # noqa: PLC0415

    return read_spec(source)


def _stored(item: schedule_pb2.Schedule) -> dict[str, Json]:
    document: dict[str, Json] = json.loads(item.spec_json)
    return document


def _of_times(answer: schedule_pb2.PreviewScheduleResponse) -> schedule_pb2.PreviewScheduleResponse:
    """What was found about the times, where they are all that was asked about."""
    errors = [issue for issue in answer.errors if not issue.path.startswith("/rollout")]
    warnings = [issue for issue in answer.warnings if not issue.path.startswith("/rollout")]
    return type(answer)(valid=not errors, errors=errors, warnings=warnings, occurrences=answer.occurrences)


def _previewed(client: ControllerClient, source: str) -> dict[str, Json]:
    """What the options go over. Times alone need a name and a rollout around them."""
    if not source:
        return {"name": "preview", "rollout": {"task": "preview", "target": {"devices": ["preview"]}}}
    return _document(source) if _is_file(source) else _stored(client.schedule(source))


def _changed(
    client: ControllerClient, document: dict[str, Json], times: ScheduleFlags, flags: RolloutFlags, rollout: str
) -> dict[str, Json]:
    """A schedule document with the options over it, those for its rollout too."""
    from droidfleet_controller.cli.rollout_building import rollout_of, with_options  # noqa: PLC0415

    made = schedule_document_of(document, times)
    if rollout:
        made["rollout"] = rollout_of(client, rollout, flags)
    elif flags != RolloutFlags():
        inner = made.get("rollout", {})
        made["rollout"] = with_options(client, inner if isinstance(inner, dict) else {}, flags)
    return made


def _text(document: dict[str, Json]) -> str:
    return json.dumps(document, ensure_ascii=False)
