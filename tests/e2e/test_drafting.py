"""A draft from the command line, by the practice model on a virtual phone: watched, mended, tried and accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from droidfleet_demo.fleet import Fleet
from support.workplace import Workplace

pytestmark = pytest.mark.e2e

DESCRIPTION = 'Open Harbour Goods, search for "USB-C cable", tap "USB-C cable 2 m" and tap "Buy now".'
BUY = "tap-5"
"""The step that cannot be undone."""


class Seen(BaseModel):
    """What this looks at of the documents that the command line prints."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class SeenIssue(Seen):
    path: str
    code: str


class Accepted(Seen):
    task_id: str
    rollout_id: str


class SeenDraft(Seen):
    draft_id: str
    state: str
    draft: dict[str, JsonValue]
    issues: list[SeenIssue]
    accepted: Accepted | None = None

    def with_step(self, step_id: str, **changes: JsonValue) -> bytes:
        """The proposal, with other fields in one of its steps."""
        proposal = json.loads(json.dumps(self.draft))
        next(step for step in proposal["task"]["steps"] if step["id"] == step_id).update(changes)
        return json.dumps(proposal).encode()

    def step(self, step_id: str) -> dict[str, JsonValue]:
        """One of its steps."""
        found: dict[str, JsonValue] = next(
            step for step in json.loads(json.dumps(self.draft))["task"]["steps"] if step["id"] == step_id
        )
        return found


@pytest.fixture(scope="module")
def explored(shared_fleet: tuple[Fleet, Workplace]) -> Iterator[tuple[SeenDraft, list[str]]]:
    """A draft that waits for review, and the log that its first watcher got."""
    fleet, workplace = shared_fleet
    phone = fleet.phones[0].name
    asked = ("draft", "start", DESCRIPTION, "--device", phone, "--name", "buy-cable", "--watch", "-o", "json")
    ran = workplace.droidfleet(*asked)
    assert ran.code == 0, ran
    draft_id = ran.err.split()[1]
    shown = workplace.droidfleet("draft", "show", draft_id, "-o", "json")
    yield SeenDraft.model_validate_json(shown.out), ran.out.splitlines()
    assert workplace.droidfleet("device", "open", phone, "com.example.shop", "--afresh").code == 0


def test_who_watches_later_finds_everything(explored: tuple[SeenDraft, list[str]], at_fleet: Workplace) -> None:
    item, log = explored
    later = at_fleet.droidfleet("draft", "watch", item.draft_id, "-o", "json")
    assert later.out.splitlines() == log
    kinds = [json.loads(line)["kind"] for line in log]
    assert (kinds[0], kinds[-2:]) == ("began", ["tool_ended", "ended"])


def test_a_draft_is_mended_tried_and_accepted_once(
    explored: tuple[SeenDraft, list[str]], at_fleet: Workplace, fleet: Fleet
) -> None:
    item, _ = explored

    def edited(document: bytes) -> tuple[int, SeenDraft]:
        ran = at_fleet.droidfleet("draft", "edit", item.draft_id, "-", "-o", "json", stdin=document)
        return ran.code, SeenDraft.model_validate_json(ran.out)

    assert item.step(BUY)["probability"] == 30

    # What was never seen is kept, named, and cannot be accepted.
    code, wrong = edited(item.with_step(BUY, selector={"text": "Buy never"}))
    assert (code, [issue.code for issue in wrong.issues]) == (2, ["NO_EVIDENCE"])
    refused = at_fleet.droidfleet("draft", "accept", item.draft_id, "--yes")
    assert (refused.code, refused.err.partition(":")[0]) == (4, "DRAFT_INVALID")

    # What a person sets back stays; a trial leaves the step out all the same.
    code, mended = edited(item.with_step(BUY, probability=100))
    assert (code, mended.issues, mended.step(BUY).get("probability", 100)) == (0, [], 100)
    before = len(fleet.phones[0].effects())
    trial = at_fleet.droidfleet("draft", "try", item.draft_id, "-o", "json")
    assert trial.code == 0, trial
    assert json.loads(trial.out)["withheld"] == [BUY]
    assert "buy_now" not in json.dumps(fleet.phones[0].effects()[before:])

    accept = ("draft", "accept", item.draft_id, "--use", "rollout", "--request-id", "once", "--yes", "-o", "json")
    first, again = (SeenDraft.model_validate_json(at_fleet.droidfleet(*accept).out).accepted for _ in range(2))
    assert first is not None
    assert (first, first.task_id) == (again, "buy-cable")
    assert at_fleet.droidfleet("rollout", "watch", first.rollout_id).code == 0
    assert "buy_now" in json.dumps(fleet.phones[0].effects()[before:])
