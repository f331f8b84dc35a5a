"""The designer's `PlanCheck`: target, schedule and retry of a draft by the checks of rollouts and schedules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from droidfleet_controller.drafts.plans import (
    EVERY_PHONE,
    Document,
    place_in_draft,
    rollout_document,
    schedule_document,
    starts_by_hand,
)
from droidfleet_controller.rollouts.check import rules
from droidfleet_controller.rollouts.documents import read
from droidfleet_controller.rollouts.issues import IssueCode, SpecIssue
from droidfleet_controller.rollouts.preflight import Preflights
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.schedules.check import check
from droidfleet_designer.draft.draft import Draft
from droidfleet_designer.ports import PlanCheck
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.issues import Issue

_NAME = "draft"
"""For the schedule and the task, which have no names that count before a person accepts them."""


class FleetPlanCheck(PlanCheck):
    """The checks against this fleet, as it is now."""

    def __init__(self, *, preflights: Preflights, clock: Clock) -> None:
        self._preflights = preflights
        self._clock = clock

    async def issues(self, draft: Draft) -> Sequence[Issue]:
        return [Issue(place_in_draft(each.path), each.code, each.message, each.hint) for each in self._found(draft)]

    def _found(self, draft: Draft) -> Iterator[SpecIssue]:
        # One thing at a time: what cannot be read would hide what is wrong with the others.
        whole = rollout_document(draft, task_id=_NAME, revision=0)
        yield from read(json.dumps(whole), RolloutSpec).issues
        target = read(json.dumps({"task": _NAME, "target": whole["target"]}), RolloutSpec).model
        if target is not None:
            yield from rules(target)
            yield from self._preflights.target_issues(target)
        if not starts_by_hand(draft.schedule):
            yield from self._times(draft)

    def _times(self, draft: Draft) -> Iterator[SpecIssue]:
        sound: Document = {"task": _NAME, "target": {"query": EVERY_PHONE}}
        checked = check(json.dumps(schedule_document(draft, name=_NAME, rollout=sound)), now=self._clock.now())
        yield from checked.errors
        # To a person's document that is a word of warning; nobody wants a draft for times that have passed.
        yield from (each for each in checked.warnings if each.code is IssueCode.NEVER_FIRES)
