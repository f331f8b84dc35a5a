"""`droidfleet draft`: have a model explore a phone and propose a task; review, try and accept what it proposes."""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from droidfleet_controller.cli import draft_documents as documents
from droidfleet_controller.cli import draft_view as view
from droidfleet_controller.cli.client import ControllerClient
from droidfleet_controller.cli.commands import draft_review
from droidfleet_controller.cli.completion import complete_draft
from droidfleet_controller.cli.draft_flags import BriefFlags, brief_of
from droidfleet_controller.cli.draft_watching import follow
from droidfleet_controller.cli.files import check_target, write_pieces
from droidfleet_controller.cli.flags import with_flags
from droidfleet_controller.cli.options import DEFAULT_API, ApiOption, Output, OutputOption
from droidfleet_controller.cli.output import emit, emit_item, note, show, show_table
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, PreconditionError, UnavailableError
from droidfleet_shared.exit_codes import ExitCode

if TYPE_CHECKING:
    from droidfleet.v1 import draft_pb2

app = typer.Typer(no_args_is_help=True, help="Have a model propose a task; review, try and accept it.")

DEFAULT_LIMIT = 50
MAX_LIMIT = 100_000
STATES = ("EXPLORING", "READY", "FAILED", "STOPPED", "ACCEPTED", "DISCARDED")

Id = Annotated[str, typer.Argument(metavar="DRAFT", help="The draft's id.", autocompletion=complete_draft)]
WatchOption = Annotated[
    bool | None, typer.Option("--watch/--no-watch", help="Follow it to the end (the default on a terminal).")
]


@app.command("start")
@with_flags(brief=BriefFlags)
def start_draft(
    description: Annotated[
        str, typer.Argument(metavar="DESCRIPTION", help="What a phone should do, in a sentence or some.")
    ],
    *,
    brief: BriefFlags,
    request_id: Annotated[
        str, typer.Option(help="Makes a repeated call harmless: the same id answers with the same draft.")
    ] = "",
    watch: WatchOption = None,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Have a model explore one free phone and propose a task for what you describe.

    It proposes: nothing is saved, scheduled or run on other phones before you accept it.
    What cannot be undone (sending, buying, deleting) is not done while exploring unless you allow it.
    Options go over what the model proposes. When watched: exits with 1 unless there is a draft; Ctrl-C stops watching,
    never the exploration.

    \b
    Examples:
      droidfleet draft start 'Open Harbour Goods and search for "usb"' --device phone-01
      droidfleet draft start "打开设置" --device phone-01 --language zh --group shelf-a --cron "0 8 * * *"
      droidfleet draft start 'Open Settings' --device phone-01 --no-watch -o json
    """
    watched = sys.stdout.isatty() if watch is None else watch
    key = request_id or str(uuid.uuid4())
    with ControllerClient(api) as client:
        text = json.dumps(brief_of(description, brief), ensure_ascii=False)
        if watched and output is Output.TABLE:
            show(view.model(client.draft_model()), stderr=True)
        item = _start(client, text, key)
        note(f"draft {item.draft_id}")
        if watched:
            item = _watched(client, item.draft_id, output=output)
    _leave(item, output, watched=watched)


@app.command("watch")
def watch_draft(
    draft: Id,
    *,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Follow an exploration from its beginning to its end, and be asked what it may do.

    With json or yaml: one entry of its log after the other. Exits with 1 unless there is a draft.

    \b
    Examples:
      droidfleet draft watch d-4k2m9q7r0a1b3c5d
      droidfleet draft watch d-4k2m9q7r0a1b3c5d -o json | jq -r 'select(.kind == "spoke") | .text'
    """
    with ControllerClient(api) as client:
        item = _watched(client, draft, output=output)
    if output is Output.TABLE:
        _leave(item, output, watched=True)
    elif not item.draft_json:
        raise typer.Exit(ExitCode.FAILED)


@app.command("allow")
def allow(draft: Id, *, api: ApiOption = DEFAULT_API) -> None:
    """Allow what an exploration asks for: what it withheld because it may not be undone.

    \b
    Examples:
      droidfleet draft allow d-4k2m9q7r0a1b3c5d
    """
    _answer(draft, api, allowed=True)


@app.command("deny")
def deny(draft: Id, *, api: ApiOption = DEFAULT_API) -> None:
    """Do not allow what an exploration asks for. It goes on without.

    \b
    Examples:
      droidfleet draft deny d-4k2m9q7r0a1b3c5d
    """
    _answer(draft, api, allowed=False)


@app.command("stop")
def stop_draft(draft: Id, *, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """End an exploration; the phone is given back.

    \b
    Examples:
      droidfleet draft stop d-4k2m9q7r0a1b3c5d
    """
    with ControllerClient(api) as client:
        item = client.stop_draft(draft)
    _written(item, output)


@app.command("list")
def list_drafts(
    *,
    state: Annotated[
        list[str] | None, typer.Option(metavar="STATE", help=f"Only these ({', '.join(STATES)}); repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="At most so many, newest first.")] = DEFAULT_LIMIT,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """List drafts, newest first.

    \b
    Examples:
      droidfleet draft list
      droidfleet draft list --state READY -o json | jq -r '.drafts[].draftId'
    """
    wanted = [each.upper() for each in state or []]
    for each in wanted:
        if each not in STATES:
            raise InvalidInputError(
                "BAD_STATE", f"there is no state {each!r}.", hint=f"There are: {', '.join(STATES)}."
            )
    with ControllerClient(api) as client:
        items = list(client.drafts(states=wanted, limit=limit))
    if output is not Output.TABLE:
        emit({"drafts": [documents.draft_document(item) for item in items]}, output)
    elif items:
        show_table(view.drafts(items, now=datetime.now(UTC)), spare=view.SPARE_OF_LIST)
    else:
        note("No drafts: `droidfleet draft start` begins one.")


@app.command("show")
def show_draft(
    draft: Id,
    *,
    document: Annotated[bool, typer.Option("--document", help="Only the draft itself, for editing.")] = False,
    task: Annotated[bool, typer.Option("--task", help="Only its task.")] = False,
    output: OutputOption = Output.TABLE,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Show a draft: each step with what proves it, what to review, and how trials went.

    \b
    Examples:
      droidfleet draft show d-4k2m9q7r0a1b3c5d
      droidfleet draft show d-4k2m9q7r0a1b3c5d --document > draft.json
      droidfleet draft show d-4k2m9q7r0a1b3c5d --task | droidfleet task explain -
    """
    with ControllerClient(api) as client:
        item = client.draft(draft)
    if document or task:
        proposal = documents.proposal_of(item)
        if not proposal:
            raise PreconditionError("DRAFT_EMPTY", f"draft {draft!r} has no task (yet).", hint="See why: draft show.")
        inner = proposal.get("task")
        chosen = inner if task and isinstance(inner, dict) else proposal
        emit(dict(chosen), Output.JSON if output is Output.TABLE else output)
    else:
        _written(item, output)


@app.command("picture")
def picture(
    draft: Id,
    digest: Annotated[str, typer.Argument(metavar="DIGEST", help="Of a picture that the log names.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    api: ApiOption = DEFAULT_API,
) -> None:
    """Save a picture that an exploration took.

    \b
    Examples:
      droidfleet draft picture d-4k2m9q7r0a1b3c5d 9f86d081884c7d65 screen.jpg
    """
    check_target(file, force=force)
    with ControllerClient(api) as client:
        answer = client.draft_picture(draft, digest)
    write_pieces(file, [answer.data], force=force)
    note(f"{file}: {answer.media_type}, {len(answer.data):,} bytes")


@app.command("model")
def show_model(*, output: OutputOption = Output.TABLE, api: ApiOption = DEFAULT_API) -> None:
    """Show which model drafts, and what a draft may cost.

    \b
    Examples:
      droidfleet draft model
    """
    with ControllerClient(api) as client:
        answer = client.draft_model()
    if output is Output.TABLE:
        show(view.model(answer))
    else:
        emit(documents.model_document(answer), output)


draft_review.register(app)


def _start(client: ControllerClient, text: str, key: str) -> draft_pb2.Draft:
    try:
        return client.start_draft(text, request_id=key)
    except UnavailableError as error:
        if error.code in ("CONTROLLER_UNAVAILABLE", "DEVICE_OFFLINE"):
            raise
        again = f"{error.hint} Repeat it with --request-id {key}: it then starts once, whatever happened.".strip()
        raise UnavailableError(error.code, error.message, hint=again) from error


@dataclass(frozen=True)
class _Asker:
    """Of one draft."""

    client: ControllerClient
    draft_id: str

    def pending(self) -> str:
        return self.client.draft(self.draft_id).pending_approval_id

    def answer(self, approval_id: str, *, allowed: bool) -> None:
        self.client.answer_approval(self.draft_id, approval_id, allowed=allowed)


def _watched(client: ControllerClient, draft_id: str, *, output: Output) -> draft_pb2.Draft:
    asked = sys.stdin.isatty() and sys.stderr.isatty()
    try:
        follow(
            client.follow_draft(draft_id),
            draft_id=draft_id,
            told=None if output is Output.TABLE else partial(emit_item, output=output),
            asker=_Asker(client, draft_id) if asked else None,
        )
    except (KeyboardInterrupt, typer.Abort, DroidfleetError) as error:
        if not isinstance(error, DroidfleetError) or isinstance(error, UnavailableError):
            note(f"The exploration goes on. Watch it: droidfleet draft watch {draft_id}")
            note(f"End it: droidfleet draft stop {draft_id}")
        raise
    return client.draft(draft_id)


def _leave(item: draft_pb2.Draft, output: Output, *, watched: bool) -> None:
    if not watched and output is Output.TABLE:
        sys.stdout.write(f"{item.draft_id}\n")
        note(f"Watch it: droidfleet draft watch {item.draft_id}")
        return
    if output is Output.TABLE or not watched:
        _written(item, output)
    if watched and not item.draft_json:
        raise typer.Exit(ExitCode.FAILED)


def _written(item: draft_pb2.Draft, output: Output) -> None:
    if output is not Output.TABLE:
        emit(documents.draft_document(item), output)
        return
    show(view.draft(item))
    for hint in view.next_of(item):
        note(hint)


def _answer(draft_id: str, api: str, *, allowed: bool) -> None:
    with ControllerClient(api) as client:
        pending = client.draft(draft_id).pending_approval_id
        if not pending:
            raise PreconditionError(
                "APPROVAL_OVER",
                f"draft {draft_id!r} does not wait for anybody.",
                hint=f"See what it does: droidfleet draft watch {draft_id}",
            )
        client.answer_approval(draft_id, pending, allowed=allowed)
    note("Allowed." if allowed else "Not allowed.")
