"""The commands of `droidfleet draft` with which a person reviews one: edit, try, accept, discard."""

from __future__ import annotations

import json
import sys
import uuid
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet.v1 import draft_pb2
from droidfleet_controller.cli import draft_documents as documents
from droidfleet_controller.cli import draft_view as view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.completion import complete_device, complete_draft
from droidfleet_controller.cli.editor import edited
from droidfleet_controller.cli.failures import issue_text
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, note, show
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

Id = Annotated[str, typer.Argument(metavar="DRAFT", help="The draft's id.", autocompletion=complete_draft)]
VersionOption = Annotated[
    int | None,
    typer.Option("--version", min=1, metavar="N", help="Only if it is in this version still (what it is in now)."),
]
InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME=VALUE", help="A value for an input of the task; repeatable."),
]
SecretOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Ask for this secret, or take it from DROIDFLEET_SECRET_NAME; repeatable."),
]
RequestOption = Annotated[str, typer.Option(help="Makes a repeated call harmless.")]


class Use(StrEnum):
    """What for, at once."""

    TASK = "task"
    ROLLOUT = "rollout"
    SCHEDULE = "schedule"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("edit")(edit_draft)
    app.command("try")(try_draft)
    app.command("accept")(accept_draft)
    app.command("discard")(discard_draft)


def edit_draft(
    draft: Id,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The draft's new document, - for stdin; left out: your $EDITOR.")
    ] = "",
    *,
    version: VersionOption = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Put your version in place. It is checked as the model's was, and kept with what is wrong with it.

    Exits with 2 when something is wrong with it.

    \b
    Examples:
      droidfleet draft edit d-4k2m9q7r0a1b3c5d
      droidfleet draft show d-4k2m9q7r0a1b3c5d --document > draft.json
      droidfleet draft edit d-4k2m9q7r0a1b3c5d draft.json
    """
    with ControllerClient(api) as client:
        item = client.draft(draft)
        text = _read(file) if file else _edited(item)
        if text is None:
            note("Nothing was changed.")
            return
        seen = item.version if version is None else version
        item = client.edit_draft(draft, version=seen, draft_json=text)
    if output is not Output.TABLE:
        emit(documents.draft_document(item), output)
    else:
        for issue in item.issues:
            sys.stdout.write(f"{issue_text(issue)}\n")
        note(f"version {item.version}: {_count(len(item.issues))}")
        if not item.issues:
            note(f"Try it: droidfleet draft try {draft}")
    if item.issues:
        raise typer.Exit(ExitCode.INVALID)


def try_draft(
    draft: Id,
    *,
    step: Annotated[str, typer.Option(metavar="STEP_ID", help="Only this step, on the screen as it is.")] = "",
    allow_step: Annotated[
        list[str] | None,
        typer.Option(metavar="STEP_ID", help="Do this step although it cannot be undone; repeatable."),
    ] = None,
    given: InputOption = None,
    secret: SecretOption = None,
    device: Annotated[
        str,
        typer.Option("--device", "-d", help="Another phone than the explored one.", autocompletion=complete_device),
    ] = "",
    version: VersionOption = None,
    request_id: RequestOption = "",
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Run it once on the phone. Steps that cannot be undone are left out unless you allow them.

    Exits with 1 unless it succeeds.

    \b
    Examples:
      droidfleet draft try d-4k2m9q7r0a1b3c5d
      droidfleet draft try d-4k2m9q7r0a1b3c5d --step open-1
      droidfleet draft try d-4k2m9q7r0a1b3c5d --allow-step send-4 --input "item=green tea"
    """
    with ControllerClient(api) as client:
        item = client.draft(draft)
        request = draft_pb2.TryDraftRequest(
            draft_id=draft,
            version=item.version if version is None else version,
            step_id=step,
            allow_steps=allow_step or [],
            input_values_json=_values(item, given or [], secret or []),
            device=device,
            request_id=request_id or str(uuid.uuid4()),
        )
        note("Trying it; at most a quarter of an hour.")
        trial = client.try_draft(request)
    if output is not Output.TABLE:
        emit(documents.trial_document(trial), output)
    else:
        show(view.trial(trial))
        if trial.result.successful:
            note(f"Accept it: droidfleet draft accept {draft}")
    if not trial.result.successful:
        raise typer.Exit(ExitCode.FAILED)


def accept_draft(
    draft: Id,
    *,
    use: Annotated[
        Use, typer.Option(help="Only the task; also start the rollout; or also create the schedule.")
    ] = Use.TASK,
    schedule: Annotated[str, typer.Option(metavar="NAME", help="The schedule's name; left out: the task's id.")] = "",
    given: InputOption = None,
    secret: SecretOption = None,
    version: VersionOption = None,
    request_id: RequestOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Save its task in the library and, where asked, start its rollout or create its schedule.

    Shows it first and, on a terminal, asks.

    \b
    Examples:
      droidfleet draft accept d-4k2m9q7r0a1b3c5d
      droidfleet draft accept d-4k2m9q7r0a1b3c5d --use rollout --yes
      droidfleet draft accept d-4k2m9q7r0a1b3c5d --use schedule --schedule every-morning
    """
    key = request_id or str(uuid.uuid4())
    with ControllerClient(api) as client:
        item = client.draft(draft)
        if not yes and sys.stdin.isatty() and sys.stderr.isatty():
            show(view.draft(item), stderr=True)
            if not typer.confirm(f"Accept it ({use.value})?", err=True):
                note("Nothing was accepted.")
                raise typer.Exit(ExitCode.REFUSED)
        item = client.accept_draft(
            draft_pb2.AcceptDraftRequest(
                draft_id=draft,
                version=item.version if version is None else version,
                use=draft_pb2.DraftUse.Value(f"DRAFT_USE_{use.name}"),
                schedule_name=schedule,
                input_values_json=_values(item, given or [], secret or []),
                request_id=key,
            )
        )
    if output is not Output.TABLE:
        emit(documents.draft_document(item), output)
        return
    accepted = item.accepted
    sys.stdout.write(f"{accepted.task_id} revision {accepted.revision}\n")
    if accepted.rollout_id:
        note(f"Watch it: droidfleet rollout watch {accepted.rollout_id}")
    elif accepted.schedule:
        note(f"See its times: droidfleet schedule show {accepted.schedule}")
    else:
        note(f"Run it: droidfleet task run {accepted.task_id} --device NAME")


def discard_draft(draft: Id, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """End a draft for good.

    \b
    Examples:
      droidfleet draft discard d-4k2m9q7r0a1b3c5d
    """
    with ControllerClient(api) as client:
        item = client.discard_draft(draft)
    if output is Output.TABLE:
        note(f"draft {item.draft_id} is discarded.")
    else:
        emit(documents.draft_document(item), output)


def _read(file: str) -> str:
    from droidfleet_controller.cli.sources import read_text  # noqa: PLC0415 - loads the protocol's models

    return read_text(file)


def _edited(item: draft_pb2.Draft) -> str | None:
    """What a person makes of it in an editor; None: nothing else than it was.

    Raises:
        InvalidInputError: ``NO_EDITOR``.
    """
    if not sys.stdin.isatty():
        raise InvalidInputError("NO_EDITOR", "there is no terminal for an editor.", hint="Name a file, or - for stdin.")
    proposal = documents.proposal_of(item)
    before = json.dumps(proposal, ensure_ascii=False, indent=2) if proposal else item.draft_json
    after = edited(before, name="draft.json")
    return None if after.strip() == before.strip() else after


def _values(item: draft_pb2.Draft, pairs: Sequence[str], secrets: Sequence[str]) -> str:
    """Values for the task's inputs as JSON text; empty where none are given."""
    if not (pairs or secrets):
        return ""
    from droidfleet_shared.input_values import collect_values, declared_types  # noqa: PLC0415 - the protocol's models

    declared = declared_types(documents.proposal_of(item).get("task"))
    return json.dumps(collect_values(declared, pairs=pairs, file=None, secrets=secrets), ensure_ascii=False)


def _count(issues: int) -> str:
    return "nothing is wrong with it" if not issues else f"{issues} error{'s' * (issues != 1)}"
