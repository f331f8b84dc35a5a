"""A draft becomes documents that rollouts and schedules read; what they find wrong stands where the draft has it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from droidfleet_controller.drafts.plan_check import FleetPlanCheck
from droidfleet_controller.drafts.plans import place_in_draft, rollout_document, schedule_document, starts_by_hand
from droidfleet_controller.rollouts.documents import read
from droidfleet_controller.rollouts.preflight import Preflights
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.schedules.check import check
from droidfleet_designer.draft.draft import Draft, DraftRetry, DraftSchedule, DraftTarget, DraftWindow
from droidfleet_shared.errors import PreconditionError
from droidfleet_shared.protocol.pointers import Json
from support.exploration_logs import DRAFT
from unit.controller.builders import NOW
from unit.fleet.fleets import fleet_of
from unit.rollouts.rolling import Rolling, phones, rolling

DEVICE = DraftTarget(device="phone-01")
NIGHTLY = DraftSchedule(cron="0 22 * * *", time_zone="Europe/Berlin")
AT_NIGHT = DraftSchedule(window=DraftWindow(start="0 22 * * *", stop="0 6 * * *"))
ONCE = DraftSchedule(once="2027-03-28T02:30", time_zone="Europe/Berlin")


def draft(
    *, target: DraftTarget = DEVICE, schedule: DraftSchedule | None = None, retry: DraftRetry | None = None
) -> Draft:
    return DRAFT.model_copy(
        update={
            "target": target,
            "schedule": schedule or DraftSchedule(once="now"),
            "retry": retry or DraftRetry(),
        }
    )


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Rolling]:
    async with rolling(tmp_path, *phones(3)) as fleet:
        await fleet.groups.create("lab", devices=["phone-01", "phone-02"], actor="test")
        await fleet.groups.create("empty", actor="test")
        yield fleet


def checker(fleet: Rolling) -> FleetPlanCheck:
    dispatch = fleet.dispatch
    preflights = Preflights(database=dispatch.database, registry=dispatch.registry, targets=fleet.targets)
    return FleetPlanCheck(preflights=preflights, clock=dispatch.clock)


async def wrong(fleet: Rolling, of: Draft) -> list[tuple[str, str]]:
    """Places and codes of what is wrong."""
    return [(issue.path, issue.code.value) for issue in await checker(fleet).issues(of)]


# Documents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "members"),
    [(DEVICE, 1), (DraftTarget(group="lab"), 2), (DraftTarget(all=True), 3)],
    ids=["device", "group", "all"],
)
async def test_a_rollout_goes_to_the_phones_that_the_draft_means(
    fleet: Rolling, target: DraftTarget, members: int
) -> None:
    document = rollout_document(draft(target=target), task_id="tea", revision=1)
    planned = await fleet.rollouts.plan(json.dumps(document))
    assert planned.plan is not None, planned.errors
    assert planned.plan.members == members


def test_a_rollout_is_of_the_revision_that_was_accepted() -> None:
    found = read(json.dumps(rollout_document(draft(), task_id="tea", revision=7)), RolloutSpec).model
    assert found is not None
    assert (found.task, found.revision) == ("tea", 7)


def test_a_rollout_tries_as_often_as_the_draft_says() -> None:
    document = rollout_document(draft(retry=DraftRetry(max_attempts=3, delay="10m")), task_id="tea", revision=1)
    found = read(json.dumps(document), RolloutSpec).model
    assert found is not None
    assert (found.retry.max_attempts, found.retry.delay) == (3, timedelta(minutes=10))


def test_values_go_to_all_phones() -> None:
    values: dict[str, JsonValue] = {"item": "tea", "count": 2}
    document = rollout_document(draft(), task_id="tea", revision=1, inputs=values)
    found = read(json.dumps(document), RolloutSpec).model
    assert found is not None
    assert found.inputs == values


@pytest.mark.parametrize("schedule", [NIGHTLY, AT_NIGHT, ONCE], ids=["cron", "window", "once"])
def test_a_schedule_has_the_times_of_the_draft(schedule: DraftSchedule) -> None:
    planned = draft(schedule=schedule)
    rollout = rollout_document(planned, task_id="tea", revision=1)
    checked = check(json.dumps(schedule_document(planned, name="tea", rollout=rollout)), now=NOW)
    assert checked.spec is not None, checked.errors
    when = checked.spec.when.model_dump(exclude_none=True, exclude={"interval"})
    assert when == schedule.model_dump(exclude_none=True, exclude={"time_zone"})


def test_a_schedule_goes_by_the_clocks_of_the_draft() -> None:
    planned = draft(schedule=NIGHTLY)
    document = schedule_document(planned, name="tea", rollout=rollout_document(planned, task_id="tea", revision=1))
    assert document["timeZone"] == "Europe/Berlin"


def test_a_draft_that_a_person_starts_has_no_schedule() -> None:
    assert starts_by_hand(draft().schedule)
    with pytest.raises(PreconditionError, match="NO_TIMES"):
        schedule_document(draft(), name="tea", rollout={})


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    target=st.one_of(
        texts.map(lambda text: DraftTarget(device=text)),
        texts.map(lambda text: DraftTarget(group=text)),
        st.just(DraftTarget(all=True)),
    ),
    schedule=st.one_of(
        texts.map(lambda text: DraftSchedule(once=text)),
        st.builds(lambda cron, zone: DraftSchedule(cron=cron, time_zone=zone), texts, texts),
        st.builds(lambda start, stop: DraftSchedule(window=DraftWindow(start=start, stop=stop)), texts, texts),
    ),
    delay=texts,
)
def test_whatever_is_wrong_stands_somewhere_in_the_draft(
    target: DraftTarget, schedule: DraftSchedule, delay: str
) -> None:
    planned = draft(target=target, schedule=schedule, retry=DraftRetry(delay=delay))
    if starts_by_hand(schedule):
        return
    rollout = rollout_document(planned, task_id="tea", revision=1)
    checked = check(json.dumps(schedule_document(planned, name="tea", rollout=rollout)), now=NOW)
    tree = planned.model_dump(mode="json", by_alias=True)
    for issue in (*checked.errors, *checked.warnings):
        assert stands(tree, place_in_draft(issue.path)), issue


def stands(tree: Json, path: str) -> bool:
    """Whether a JSON Pointer leads to something."""
    for token in path.split("/")[1:]:
        if not isinstance(tree, dict) or token not in tree:
            return False
        tree = tree[token]
    return tree is not None


# The check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [None, NIGHTLY, AT_NIGHT, ONCE], ids=["now", "cron", "window", "once"])
async def test_a_plan_that_can_be_has_no_issues(fleet: Rolling, schedule: DraftSchedule | None) -> None:
    assert await wrong(fleet, draft(schedule=schedule)) == []


async def test_a_plan_needs_no_task_in_the_library(fleet: Rolling) -> None:
    assert DRAFT.task["taskId"] != "tea"
    assert await wrong(fleet, draft()) == []


@pytest.mark.parametrize(
    ("target", "path", "code"),
    [
        (DraftTarget(device="phone-09"), "/target/device", "DEVICE_NOT_FOUND"),
        (DraftTarget(device=""), "/target/device", "OUT_OF_RANGE"),
        (DraftTarget(group="labb"), "/target/group", "GROUP_NOT_FOUND"),
        (DraftTarget(group="empty"), "/target/group", "EMPTY_GROUP"),
    ],
)
async def test_a_target_that_is_not_there(fleet: Rolling, target: DraftTarget, path: str, code: str) -> None:
    assert await wrong(fleet, draft(target=target)) == [(path, code)]


async def test_a_fleet_without_phones_has_nobody_to_mean(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        preflights = Preflights(database=fleet.database, registry=fleet.registry, targets=fleet.targets)
        check_of = FleetPlanCheck(preflights=preflights, clock=fleet.clock)
        [issue] = await check_of.issues(draft(target=DraftTarget(all=True)))
    assert (issue.path, issue.code.value) == ("/target/all", "NO_MATCH")


@pytest.mark.parametrize(
    ("schedule", "path", "code"),
    [
        (DraftSchedule(cron="0 25 * * *"), "/schedule/cron", "BAD_CRON"),
        (DraftSchedule(cron="0 0 30 2 *"), "/schedule/cron", "NEVER_FIRES"),
        (DraftSchedule(cron="@daily", time_zone="Europe/Berln"), "/schedule/timeZone", "UNKNOWN_ZONE"),
        (DraftSchedule(once="tomorrow"), "/schedule/once", "BAD_TIME"),
        (DraftSchedule(once="2001-01-01T00:00"), "/schedule/once", "NEVER_FIRES"),
        (DraftSchedule(window=DraftWindow(start="@daily", stop="0 25 * * *")), "/schedule/window/stop", "BAD_CRON"),
        (DraftSchedule(window=DraftWindow(start="@daily", stop="0 0 * * *")), "/schedule/window/stop", "BAD_WINDOW"),
    ],
)
async def test_times_that_cannot_be(fleet: Rolling, schedule: DraftSchedule, path: str, code: str) -> None:
    assert await wrong(fleet, draft(schedule=schedule)) == [(path, code)]


async def test_a_delay_that_is_none(fleet: Rolling) -> None:
    assert await wrong(fleet, draft(retry=DraftRetry(delay="soon"))) == [("/retry/delay", "BAD_VALUE")]


async def test_everything_that_is_wrong_is_said_at_once(fleet: Rolling) -> None:
    odd = draft(
        target=DraftTarget(device="phone-09"), schedule=DraftSchedule(cron="0 25 * * *", time_zone="Europe/Berln")
    )
    assert await wrong(fleet, odd) == [
        ("/target/device", "DEVICE_NOT_FOUND"),
        ("/schedule/cron", "BAD_CRON"),
        ("/schedule/timeZone", "UNKNOWN_ZONE"),
    ]


async def test_a_wrong_delay_hides_nothing(fleet: Rolling) -> None:
    odd = draft(target=DraftTarget(group="labb"), schedule=DraftSchedule(cron="x"), retry=DraftRetry(delay="soon"))
    assert sorted(await wrong(fleet, odd)) == [
        ("/retry/delay", "BAD_VALUE"),
        ("/schedule/cron", "BAD_CRON"),
        ("/target/group", "GROUP_NOT_FOUND"),
    ]


async def test_an_issue_says_what_to_write_instead(fleet: Rolling) -> None:
    [issue] = await checker(fleet).issues(draft(target=DraftTarget(group="labb")))
    assert "lab" in issue.hint
