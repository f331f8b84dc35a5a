"""Watching an exploration: what the model says as it says it, each call and what came of it, and questions to a person.

Lines go to standard error; decides nothing but what is worth a line.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import typer

from droidfleet_controller.cli.draft_documents import entry_document
from droidfleet_controller.cli.output import note
from droidfleet_controller.cli.text import cut, escape
from droidfleet_shared.errors import PreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from droidfleet.v1 import draft_pb2
    from droidfleet_controller.cli.documents import Document

MAX_ARGUMENTS = 160
"""Characters of a call's arguments in a line."""

MAX_FIRST = 200
"""Of what came of a call: its first line."""


class Asker(Protocol):
    """Where an approval is looked up and answered."""

    def pending(self) -> str:
        """The id of the approval that is waited for; empty when there is none."""

    def answer(self, approval_id: str, *, allowed: bool) -> None:
        """Allows what is withheld, or not."""


def follow(
    stream: Iterable[draft_pb2.FollowDraftResponse],
    *,
    draft_id: str,
    told: Callable[[Document], None] | None,
    asker: Asker | None,
) -> None:
    """Shows a stream to its end. ``told``: gets each entry instead, for programs. ``asker``: a person is there to be
    asked, which happens of what is still withheld alone: a log is followed from its beginning."""
    said = _Said()
    for item in stream:
        if not item.HasField("entry"):
            if told is None:
                said.more(item.delta)
            continue
        document = entry_document(item.entry)
        if told is not None:
            told(document)
            continue
        heard = said.end()
        for line in lines_of(document, heard=heard):
            note(line)
        if document.get("kind") == "approval_asked":
            if asker is not None:
                _ask(document, asker)
            else:
                note(f"  Answer it: droidfleet draft allow {draft_id} (or deny)")


def lines_of(entry: Document, *, heard: bool) -> list[str]:  # noqa: PLR0911 - one for each kind
    """What an entry adds for people. ``heard``: the model's text was shown as it came."""
    match entry.get("kind"):
        case "began":
            return [f"{entry.get('model')} explores, with at most {entry.get('maxTokens'):,} tokens"]
        case "resumed":
            return ["The controller was restarted; the exploration goes on."]
        case "spoke":
            money = entry.get("spentMoney")
            cost = f", {money:.2f}" if isinstance(money, float) else ""
            text = [] if heard else [f"  {line}" for line in str(entry.get("text", "")).splitlines()]
            return [*text, f"  [turn {entry.get('turn')}: {entry.get('spentTokens'):,} tokens so far{cost}]"]
        case "told":
            return [f"  told: {cut(str(entry.get('text')), MAX_FIRST)}"]
        case "tool_began":
            return [f"> {entry.get('name')} {cut(str(entry.get('argumentsJson')), MAX_ARGUMENTS)}"]
        case "tool_ended":
            first = str(entry.get("text")).partition("\n")[0]
            code = f" {entry['code']}" if entry.get("code") else ""
            return [f"< {entry.get('outcome')}{code}: {cut(first, MAX_FIRST)}"]
        case "approval_asked":
            what = f"{entry.get('name')} {cut(str(entry.get('argumentsJson')), MAX_ARGUMENTS)}"
            return [f"? {what} is withheld: {entry.get('why')}"]
        case "approval_answered":
            return [f"? {'allowed' if entry.get('allowed') else 'not allowed'}"]
        case "problem":
            again = entry.get("againInS")
            wait = f" Tried again in {again:.0f} s." if isinstance(again, int | float) else ""
            return [f"! {entry.get('code')}: {entry.get('message')}{wait}"]
        case "proposed":
            return ["There is a draft."]
        case "ended":
            why = f" ({entry['code']}: {entry.get('message')})" if entry.get("code") else ""
            hint = [f"  {entry['hint']}"] if entry.get("hint") else []
            return [f"{entry.get('ending')}{why}: {entry.get('spentTokens'):,} tokens spent", *hint]
        case _:
            return []


class _Said:
    """What the model says just now, on a line of its own as it comes."""

    def __init__(self) -> None:
        self._open = False

    def more(self, text: str) -> None:
        # Each line of it is set in, and so is none of ours.
        shown = "\n  ".join(escape(line) for line in text.split("\n"))
        sys.stderr.write(shown if self._open else f"  {shown}")
        sys.stderr.flush()
        self._open = True

    def end(self) -> bool:
        """Ends the line; whether there was one."""
        was, self._open = self._open, False
        if was:
            sys.stderr.write("\n")
        return was


def _ask(entry: Document, asker: Asker) -> None:
    approval_id = str(entry.get("approvalId"))
    if asker.pending() != approval_id:
        return
    allowed = typer.confirm(f"Allow {escape(str(entry.get('name')))}?", default=False, err=True)
    try:
        asker.answer(approval_id, allowed=allowed)
    except PreconditionError as error:
        # Somebody else answered, or it took too long.
        note(f"{error.code}: {error.message}")
