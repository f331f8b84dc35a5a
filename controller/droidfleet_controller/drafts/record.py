"""The record of a draft, and how it changes with what its exploration logs. Pure.

A draft leaves EXPLORING by the entry `Ended` alone, so whoever follows its log finds out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from droidfleet_designer.draft.draft import Brief
from droidfleet_designer.log import ApprovalAnswered, ApprovalAsked, Ended, Ending, Entry, Proposed, Resumed, Spoke
from droidfleet_shared.errors import NotFoundError
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import TaskResult

MAX_TRIALS = 20
"""Trials that are kept of one draft, the newest; each holds a whole result."""


class DraftState(StrEnum):
    """What becomes of a draft; the words of the API."""

    EXPLORING = "EXPLORING"
    READY = "READY"
    """There is a draft for a person to review."""
    FAILED = "FAILED"
    """The exploration ended without one."""
    STOPPED = "STOPPED"
    """A person stopped it before there was one."""
    ACCEPTED = "ACCEPTED"
    DISCARDED = "DISCARDED"


class RecordModel(BaseModel):
    """Base of what a draft's row holds as JSON."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


class DraftIssue(RecordModel):
    """Something that is wrong with the proposal, as it was found."""

    path: str
    code: str
    message: str
    hint: str = ""


class Accepted(RecordModel):
    """What an accepted draft became. ``schedule`` and ``rollout_id``: empty when there is none; ``request_id``: of the
    call that accepted it."""

    task_id: str
    revision: int
    schedule: str = ""
    rollout_id: str = ""
    request_id: str = ""


class Trial(RecordModel):
    """A trial by a person. ``step_id``: empty for the whole task, which has an ``execution_id``; ``withheld``: what was
    left out; ``request_id``: of the call."""

    at: datetime
    version: int
    step_id: str = ""
    withheld: tuple[str, ...] = ()
    result: TaskResult
    execution_id: str = ""
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDraft:
    """A draft. ``text``: the proposal's JSON text, empty while there is none; ``version`` grows with each change of
    ``state`` or ``text``; ``entry_bytes``: of its log; ``spent_money`` None: the price is not known."""

    draft_id: str
    request_id: str
    brief: Brief
    model: str
    max_tokens: int
    created_by: str
    created_at: datetime
    updated_at: datetime
    state: DraftState = DraftState.EXPLORING
    version: int = 1
    text: str = ""
    issues: tuple[DraftIssue, ...] = ()
    code: str = ""
    message: str = ""
    spent_tokens: int = 0
    spent_money: float | None = None
    currency: str = "USD"
    last_sequence: int = 0
    entry_bytes: int = 0
    pending_approval_id: str = ""
    accepted: Accepted | None = None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry of a draft's log. ``body``: its JSON text."""

    sequence: int
    at: datetime
    kind: str
    body: str


def logged(draft: StoredDraft, entry: Entry, *, size_bytes: int, now: datetime) -> StoredDraft:
    """The draft once the next entry of its log, with a body of so many bytes, is written."""
    noted = replace(
        draft, last_sequence=draft.last_sequence + 1, entry_bytes=draft.entry_bytes + size_bytes, updated_at=now
    )
    match entry:
        case Spoke():
            return replace(noted, spent_tokens=entry.spent_tokens, spent_money=entry.spent_money)
        case ApprovalAsked():
            return replace(noted, pending_approval_id=entry.approval_id)
        case ApprovalAnswered() | Resumed():
            # Whoever asked before a restart does not wait any more.
            return replace(noted, pending_approval_id="")
        case Proposed():
            text = entry.draft.model_dump_json(by_alias=True)
            return replace(noted, text=text, issues=(), version=draft.version + 1)
        case Ended():
            return replace(
                noted,
                state=_ended(draft, entry.ending),
                version=draft.version + 1,
                code=entry.code,
                message=entry.message,
                spent_tokens=entry.spent_tokens,
                spent_money=entry.spent_money,
                pending_approval_id="",
            )
        case _:
            return noted


def _ended(draft: StoredDraft, ending: Ending) -> DraftState:
    if draft.text:
        return DraftState.READY
    return DraftState.STOPPED if ending is Ending.STOPPED else DraftState.FAILED


def tried(draft: StoredDraft, trial: Trial) -> StoredDraft:
    """The draft with one more trial; the oldest goes when there are too many."""
    return replace(draft, trials=(*draft.trials, trial)[-MAX_TRIALS:])


def found(issues: Iterable[Issue]) -> tuple[DraftIssue, ...]:
    """Issues as they are kept."""
    return tuple(DraftIssue(path=each.path, code=each.code, message=each.message, hint=each.hint) for each in issues)


def draft_not_found(draft_id: str) -> NotFoundError:
    """There is no such draft."""
    return NotFoundError("DRAFT_NOT_FOUND", f"unknown draft: {draft_id!r}.", hint="List the drafts that there are.")
