"""What no reader can read is told as an issue, and never breaks the check."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from droidfleet_designer.draft.check import check
from droidfleet_designer.draft.draft import Brief
from droidfleet_shared.protocol.effects import effect_words

BRIEF = Brief(description="Open the shop.", device="phone-01")


def nested(levels: int) -> dict[str, JsonValue]:
    inner: dict[str, JsonValue] = {}
    for _ in range(levels):
        inner = {"steps": [inner]}
    return inner


@pytest.mark.parametrize(
    "proposal",
    [
        {"summary": "x", "task": nested(500)},
        {"summary": "x", "task": "[" * 100_000},
        {"summary": "x", "task": {"steps": [], "revision": 10**5_000}},
        {"summary": "\ud800", "task": {"steps": []}},
        {"summary": "x", "task": {"steps": [], "maxDurationMs": float("nan")}},
        {"summary": "x", "task": "{"},
        {"summary": "x"},
        {},
    ],
    ids=["deep", "deep text", "long number", "half a character", "no number", "cut text", "no task", "nothing"],
)
def test_what_cannot_be_read_is_an_issue(proposal: dict[str, JsonValue]) -> None:
    checked = check(proposal, brief=BRIEF, snapshots={}, words=effect_words())
    assert checked.draft is None
    assert checked.issues
