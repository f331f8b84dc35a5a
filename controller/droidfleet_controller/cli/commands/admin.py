"""`droidfleet admin`: backups, putting one back, making the broker's content anew, checks.

`rebuild-bus` and `check` ask the controller; `backup`, `restore` and `check FILE` work on files of this machine.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note
from droidfleet_controller.cli.text import escape
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from droidfleet.v1 import admin_pb2
    from droidfleet_controller.admin.finding import Finding
    from droidfleet_controller.admin.settle import Settled
    from droidfleet_controller.cli.documents import Document
    from droidfleet_controller.settings import ServeSettings

app = typer.Typer(no_args_is_help=True, help="Keep the fleet's record whole: backups, checks, the broker's content.")

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        help="The controller's data folder; default ~/.local/share/droidfleet. [dim]\\[env var: DROIDFLEET_DATA][/dim]",
    ),
]

_STAGES = {
    "STREAMS": "streams",
    "DOCUMENTS": "documents that the broker has",
    "AGENTS": "agents that follow theirs",
}


@app.command("rebuild-bus")
def rebuild_bus(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Make the broker's content anew: its streams where they are gone, and every document from the database.

    For when JetStream's folder is lost or damaged. Safe at any time, also with agents at work; nothing runs twice.
    Results that were on their way are sent again by their agents, within 15 minutes at most.

    \b
    Examples:
      droidfleet admin rebuild-bus
      droidfleet admin rebuild-bus -o json
    """
    from droidfleet.v1 import admin_pb2  # noqa: PLC0415

    documents = agents = heard = 0
    with ControllerClient(api) as client:
        for progress in client.rebuild_bus():
            stage = admin_pb2.RebuildStage.Name(progress.stage).removeprefix("REBUILD_STAGE_")
            if stage == "DOCUMENTS":
                documents = progress.done
            elif stage == "AGENTS":
                agents, heard = progress.done, progress.total
            if stage in _STAGES:
                note(f"{_STAGES[stage]}: {progress.done} of {progress.total}")
    if output is not Output.TABLE:
        emit({"documents": documents, "agentsHeard": heard, "agentsFollowing": agents}, output)
        return
    sys.stdout.write(
        f"The broker has all {documents} documents; {agents} of {heard} agents that are heard follow theirs.\n"
    )


@app.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it. Nothing is overwritten.")],
    *,
    artifacts: Annotated[bool, typer.Option("--artifacts", help="With screenshots and other artifacts.")] = False,
    data: DataOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy the database of this machine's controller, while it works or stands still, into one file.

    The copy is of one moment, checked, and read again before FILE is there. Only you can read it: it holds the
    secrets of what had not ended. A database other than SQLite has tools of its own.

    \b
    Examples:
      droidfleet admin backup /backups/fleet-2027-03-01.backup
      droidfleet admin backup fleet.backup --artifacts --data /var/lib/droidfleet
    """
    from droidfleet_controller.admin import backup as backups  # noqa: PLC0415
    from droidfleet_controller.admin import sqlite_file  # noqa: PLC0415

    settings = _settings(data)
    made = backups.make(
        sqlite_file.database_file(settings),
        file,
        artifacts=settings.data / backups.ARTIFACTS_FOLDER if artifacts else None,
        now=datetime.now(UTC),
        say=note,
    )
    for finding in made.findings:
        note(f"in the database: {_text(finding)}")
    if made.missing:
        note(f"{made.missing} artifacts have no file any more and are left out.")
    manifest = made.manifest
    if output is not Output.TABLE:
        emit(
            {
                "file": str(file),
                "bytes": made.size,
                "madeAt": manifest.made_at.isoformat(),
                "artifacts": manifest.artifacts,
                "artifactsMissing": made.missing,
                "findings": finding_documents(made.findings),
            },
            output,
        )
        return
    kept = "without artifacts" if manifest.artifacts is None else f"{manifest.artifacts} artifacts"
    sys.stdout.write(f"{escape(str(file))}: {made.size} bytes, {kept}\n")


@app.command("restore")
def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A backup, or a copy of an SQLite database.")
    ] = None,
    *,
    settle: Annotated[
        bool,
        typer.Option("--settle", help="No file: the database was restored by its own tools; make it safe where it is."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: DataOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Put a backup in the place of the database. Stop the controller first; the database before is kept beside it.

    What the backup holds as waiting may have been done since, so nothing of it begins: it is lost until an agent
    reports what really happened. What ran goes on where it still runs. Rollouts that ran are paused, and schedules
    begin with their next occurrence.

    \b
    Examples:
      droidfleet admin restore /backups/fleet-2027-03-01.backup
      droidfleet admin restore fleet.backup --data /var/lib/droidfleet --yes
      droidfleet admin restore --settle
    """
    from droidfleet_controller.admin import restore as restores  # noqa: PLC0415

    if (file is None) != settle:
        raise InvalidInputError("BAD_ARGUMENTS", "name the backup to restore, or say --settle, and not both.")
    settings = _settings(data)
    question = "Replace the database by this backup?" if file is not None else "Change what waits in the database?"
    if not yes and sys.stdin.isatty() and not typer.confirm(question, err=True):
        note("Nothing was changed.")
        raise typer.Exit(ExitCode.REFUSED)
    now = datetime.now(UTC)
    if file is None:
        settled, document = restores.settle_in_place(settings, now=now), dict[str, str | int | None]()
    else:
        done = restores.restore(file, settings, now=now, say=note)
        settled = done.settled
        document = {
            "madeAt": done.made_at.isoformat() if done.made_at is not None else None,
            "keptAside": str(done.aside) if done.aside is not None else None,
            "artifacts": done.artifacts,
        }
    if output is not Output.TABLE:
        emit(_settled_document(settled) | document, output)
        return
    _say_settled(settled, aside=str(document.get("keptAside") or ""))


@app.command("check")
def check(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A backup, or the database of a stopped controller; else the whole fleet."),
    ] = None,
    *,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Look for what is not as it should be: in the database, and between database, broker and agents.

    Changes nothing. What is only on its way is looked at twice, so it takes some seconds. Exits with 1 when something
    is found; each line says where it is and what to do about it.

    \b
    Examples:
      droidfleet admin check
      droidfleet admin check /backups/fleet-2027-03-01.backup
      droidfleet admin check -o json
    """
    findings: Sequence[Finding | admin_pb2.Finding]
    if file is not None:
        from droidfleet_controller.admin import backup as backups  # noqa: PLC0415

        findings, compared = backups.check(file), escape(str(file))
    else:
        with ControllerClient(api) as client:
            answer = client.check_fleet()
        findings = answer.findings
        compared = f"the database, {answer.documents} documents of the broker, {answer.agents} agents"
    if output is not Output.TABLE:
        emit({"findings": finding_documents(findings)}, output)
    else:
        for finding in findings:
            sys.stdout.write(f"{_text(finding)}\n")
        sys.stdout.write(f"{compared}: {f'{len(findings)} to look at' if findings else 'all is well'}\n")
    if findings:
        raise typer.Exit(ExitCode.FAILED)


def _settings(data: Path | None) -> ServeSettings:
    from droidfleet_controller.settings import load_settings  # noqa: PLC0415

    return load_settings({"data": data})


def _text(finding: Finding | admin_pb2.Finding) -> str:
    return f"{escape(finding.where)} {finding.code}: {escape(finding.message)}\n    {escape(finding.hint)}"


def finding_documents(findings: Sequence[Finding | admin_pb2.Finding]) -> list[Document]:
    """Findings for programs."""
    return [{"code": each.code, "where": each.where, "message": each.message, "hint": each.hint} for each in findings]


def _settled_document(settled: Settled) -> Document:
    return {
        "lost": settled.lost,
        "goingOn": settled.going_on,
        "pausedRollouts": list(settled.paused),
        "schedules": settled.schedules,
    }


def _say_settled(settled: Settled, *, aside: str) -> None:
    lines = [
        f"{settled.lost} executions had not begun or must have ended: lost until an agent reports them",
        f"{settled.going_on} executions ran and may go on where they run",
        *(f"rollout {rollout_id} is paused" for rollout_id in settled.paused),
        f"{settled.schedules} schedules begin with their next occurrence",
    ]
    if aside:
        lines.append(f"the database before is kept in {escape(aside)}")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    note("Start the controller: droidfleet serve. It reads again what agents have reported since the backup.")
