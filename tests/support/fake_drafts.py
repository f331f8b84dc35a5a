"""Drafts and entries of their logs as a controller gives them, for tests of the command line."""

from __future__ import annotations

import json

from pydantic import JsonValue

from droidfleet.v1 import draft_pb2

DRAFT_ID = "d-1"

PROPOSAL: dict[str, JsonValue] = {
    "summary": "Orders green tea.",
    "task": {
        "taskId": "tea",
        "inputs": {"count": {"type": "integer"}, "pin": {"type": "secret"}},
        "steps": [
            {"id": "open-1", "action": "OPEN", "packageName": "com.example.tea"},
            {
                "id": "maybe-2",
                "action": "IF",
                "condition": {"visible": {"text": "Later"}},
                "then": [{"id": "later-3", "action": "CLICK", "selector": {"text": "Later"}}],
            },
            {"id": "send-4", "action": "CLICK", "selector": {"text": "Send"}, "probability": 30},
        ],
    },
    "target": {"group": "shelf-a"},
    "schedule": {"cron": "0 8 * * *", "timeZone": "Europe/Berlin"},
    "retry": {"maxAttempts": 2},
    "notes": ["Ask the owner first."],
    "marks": [{"stepId": "send-4", "path": "/steps/2", "why": 'the word "Send" on it', "lowered": True}],
    "evidence": [
        {"path": "/steps/1/condition/visible", "snapshot": "s2", "element": 'Button "Later"'},
        {"path": "/steps/1/then/0/selector", "snapshot": "s2", "element": 'Button "Later"'},
        {"path": "/steps/2/selector", "snapshot": "s3", "element": 'Button "Send"'},
        {"path": "/steps/2/requireVisible", "snapshot": "s4", "element": 'TextView "Basket"'},
    ],
}


def draft(
    state: draft_pb2.DraftState.ValueType = draft_pb2.DRAFT_STATE_READY,
    *,
    proposal: dict[str, JsonValue] | None = None,
    text: str = "",
    pending: str = "",
    code: str = "",
    description: str = "Order tea.",
) -> draft_pb2.Draft:
    """The draft `d-1` in version 3. ``text``: of a version that is no JSON; else the ``proposal``, if there is one."""
    return draft_pb2.Draft(
        draft_id=DRAFT_ID,
        state=state,
        version=3,
        brief_json=json.dumps({"description": description, "device": "phone-01", "settings": {}}),
        draft_json=text or (json.dumps(proposal) if proposal else ""),
        pending_approval_id=pending,
        code=code,
        message="why it ended" if code else "",
        model="some-model",
        spent_tokens=12_345,
        max_tokens=200_000,
        spent_money=0.0312,
        currency="USD",
    )


def entry(sequence: int, kind: str, **said: JsonValue) -> draft_pb2.FollowDraftResponse:
    """An entry of a log, as followed."""
    body = json.dumps({"kind": kind, **said})
    return draft_pb2.FollowDraftResponse(
        entry=draft_pb2.DraftLogEntry(sequence=sequence, kind=kind, entry_json=body),
    )


def delta(text: str) -> draft_pb2.FollowDraftResponse:
    """What the model says just now."""
    return draft_pb2.FollowDraftResponse(delta=text)
