"""A draft by the practice model, from the sentence to a trial, on a virtual phone and over every wire between."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import pytest

from droidfleet.v1 import draft_pb2, draft_pb2_grpc
from droidfleet_demo.fleet import Fleet, Phone
from droidfleet_designer.draft.draft import Draft
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Matched
from droidfleet_shared.screen.snapshot import Snapshot
from support.workplace import Workplace

pytestmark = pytest.mark.e2e

EXPLORE_S = 90.0
"""It takes some 10 s on two idle cores."""

DESCRIPTION = (
    'Open Harbour Goods, search for "USB-C cable", tap "USB-C cable 2 m", read the product price, tap "Add to cart" '
    'and check that "Added to cart" is shown.'
)


@pytest.fixture
def drafts(fleet: Fleet) -> Iterator[draft_pb2_grpc.DraftServiceStub]:
    with grpc.insecure_channel(fleet.api) as channel:
        yield draft_pb2_grpc.DraftServiceStub(channel)


def added(phone: Phone) -> list[object]:
    return [effect["details"] for effect in phone.effects() if effect.get("kind") == "added_to_cart"]


def test_a_sentence_becomes_a_draft_that_was_seen_to_work(
    drafts: draft_pb2_grpc.DraftServiceStub, fleet: Fleet, at_fleet: Workplace
) -> None:
    phone = fleet.phones[1]
    before = len(added(phone))
    brief = json.dumps({"description": DESCRIPTION, "device": phone.name})
    begun = drafts.StartDraft(draft_pb2.StartDraftRequest(brief_json=brief, request_id="practice-1")).draft
    for _ in drafts.FollowDraft(draft_pb2.FollowDraftRequest(draft_id=begun.draft_id), timeout=EXPLORE_S):
        pass
    draft = drafts.GetDraft(draft_pb2.GetDraftRequest(draft_id=begun.draft_id)).draft
    assert draft.state == draft_pb2.DRAFT_STATE_READY, draft
    proposed = Draft.model_validate_json(draft.draft_json)

    shown = {each.snapshot for each in proposed.evidence}
    asked = (draft_pb2.GetDraftSnapshotRequest(draft_id=draft.draft_id, snapshot_id=each) for each in shown)
    seen = {
        each.snapshot_id: Snapshot.model_validate_json(drafts.GetDraftSnapshot(each).snapshot_json) for each in asked
    }
    for each in proposed.evidence:
        outcome = seen[each.snapshot].matcher().match(Selector.model_validate(each.selector), touch=False)
        assert isinstance(outcome, Matched | Ambiguous if "condition" in each.path else Matched), each

    tried = drafts.TryDraft(
        draft_pb2.TryDraftRequest(draft_id=draft.draft_id, version=draft.version, request_id="practice-1-try"),
        timeout=EXPLORE_S,
    )
    assert tried.trial.result.successful, tried
    # Once while exploring, once in the trial: the same thing each time, and nothing else.
    assert [each["sku"] for each in added(phone)[before:] if isinstance(each, dict)] == ["ELE-401", "ELE-401"]
    assert at_fleet.droidfleet("device", "open", phone.name, "com.example.shop", "--afresh").code == 0


def test_what_it_does_not_understand_ends_honestly(drafts: draft_pb2_grpc.DraftServiceStub, fleet: Fleet) -> None:
    brief = json.dumps({"description": "Make everybody happy.", "device": fleet.phones[1].name})
    begun = drafts.StartDraft(draft_pb2.StartDraftRequest(brief_json=brief, request_id="practice-2")).draft
    for _ in drafts.FollowDraft(draft_pb2.FollowDraftRequest(draft_id=begun.draft_id), timeout=EXPLORE_S):
        pass
    draft = drafts.GetDraft(draft_pb2.GetDraftRequest(draft_id=begun.draft_id)).draft
    assert (draft.state, draft.code) == (draft_pb2.DRAFT_STATE_FAILED, "MODEL_REFUSED")
    assert "no language model" in draft.message
