"""Drafts, their logs and trials as documents for programs (docs/cli.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from droidfleet.v1 import draft_pb2
from droidfleet_controller.cli.documents import instant, issue_documents, result_document
from droidfleet_controller.cli.text import cut

if TYPE_CHECKING:
    from datetime import datetime

    from droidfleet_controller.cli.documents import Document
    from droidfleet_shared.protocol.pointers import Json

MAX_LISTED = 80
"""Characters of a description in a list."""


def draft_state(item: draft_pb2.Draft) -> str:
    """The state's word, such as ``READY``."""
    return draft_pb2.DraftState.Name(item.state).removeprefix("DRAFT_STATE_")


def brief_of(item: draft_pb2.Draft) -> dict[str, Json]:
    """What was asked for."""
    return _object(item.brief_json)


def proposal_of(item: draft_pb2.Draft) -> dict[str, Json]:
    """The proposal; empty while there is none, or where a person's version is no JSON object."""
    return _object(item.draft_json)


def description_of(item: draft_pb2.Draft) -> str:
    """The description, in a line's length."""
    return cut(str(brief_of(item).get("description", "")), MAX_LISTED)


def draft_document(item: draft_pb2.Draft) -> Document:
    """A draft with everything but its log."""
    document: Document = {
        "draftId": item.draft_id,
        "state": draft_state(item),
        "version": item.version,
        "brief": brief_of(item),
        "draft": proposal_of(item) or None,
        "issues": list(issue_documents(item.issues)),
        "code": item.code,
        "message": item.message,
        "model": item.model,
        "spentTokens": item.spent_tokens,
        "maxTokens": item.max_tokens,
        "spentMoney": item.spent_money if item.HasField("spent_money") else None,
        "currency": item.currency,
        "pendingApprovalId": item.pending_approval_id,
        "createdAt": _text(instant(item.created_at)),
        "updatedAt": _text(instant(item.updated_at)),
        "createdBy": item.created_by,
        "trials": [trial_document(trial) for trial in item.trials],
    }
    if item.HasField("accepted"):
        accepted = item.accepted
        document["accepted"] = {
            "taskId": accepted.task_id,
            "revision": accepted.revision,
            "schedule": accepted.schedule,
            "rolloutId": accepted.rollout_id,
        }
    return document


def trial_document(trial: draft_pb2.DraftTrial) -> Document:
    """A trial with its result."""
    return {
        "at": _text(instant(trial.at)),
        "version": trial.version,
        "stepId": trial.step_id,
        "withheld": list(trial.withheld),
        "executionId": trial.execution_id,
        "result": result_document(trial.result),
    }


def entry_document(entry: draft_pb2.DraftLogEntry) -> Document:
    """An entry of a log: its number, its time, and what it says."""
    return {"sequence": entry.sequence, "at": _text(instant(entry.at)), **_object(entry.entry_json)}


def model_document(model: draft_pb2.GetModelResponse) -> Document:
    """The model, and what a draft may cost."""
    return {
        "configured": model.configured,
        "model": model.model,
        "baseUrl": model.base_url,
        "vision": model.vision,
        "practice": model.practice,
        "maxTokens": model.max_tokens,
        "maxTurns": model.max_turns,
        "maxMoney": model.max_money if model.HasField("max_money") else None,
        "currency": model.currency,
    }


def spent(item: draft_pb2.Draft) -> str:
    """What was spent of what may be, for people."""
    tokens = f"{item.spent_tokens:,} of {item.max_tokens:,} tokens"
    return tokens + (f", {item.spent_money:.2f} {item.currency}" if item.HasField("spent_money") else "")


def _object(text: str) -> dict[str, Json]:
    try:
        read = json.loads(text) if text else {}
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def _text(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
