"""Task documents for the tests of this folder: small valid ones, and the findings that a changed one gives."""

from __future__ import annotations

import json
from typing import Any

from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.validate import validate_task

Document = dict[str, Any]  # JSON as the tests write it


def task(*steps: object, **fields: object) -> Document:
    """A task with these steps (one BACK when none is given), its fields replaced by ``fields``."""
    document: Document = {
        "schemaVersion": 1,
        "taskId": "buy-tea",
        "assignedAgentName": "phone-01",
        "steps": list(steps) or [{"id": "back", "action": "BACK"}],
    }
    return document | fields


def click(**fields: object) -> Document:
    """A CLICK step."""
    return {"id": "tap", "action": "CLICK", "selector": {"text": "Add to cart"}} | fields


def click_on(**selector: object) -> Document:
    """A task that taps what the selector means."""
    return task(click(selector=selector))


def errors(document: object) -> tuple[Issue, ...]:
    """What the validator finds wrong; a string is taken as the document's text."""
    return validate_task(document if isinstance(document, str | bytes) else json.dumps(document)).errors


def codes(document: object) -> list[tuple[str, str]]:
    """Place and code of each error."""
    return [(issue.path, issue.code.value) for issue in errors(document)]
