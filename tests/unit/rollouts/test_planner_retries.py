"""When a failed try is made again, and when not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.planner.plan import RetryBudget
from droidfleet_controller.rollouts.planner.retries import delay
from droidfleet_controller.rollouts.rollout import Rule, Signature, Wait
from droidfleet_controller.rollouts.spec import Retry
from droidfleet_controller.rollouts.states import MemberState, Outcome, RolloutState
from unit.rollouts.planning import START, Planning, devices

S = ExecutionState

PLAIN: dict[str, object] = {"maxAttempts": 3, "delay": "10s", "jitter": "0%"}


def retrying(phones: int = 1, *, repeatable: bool = False, **retry: object) -> Planning:
    return Planning(phones, repeatable=repeatable, retry={**PLAIN, **retry})


def test_a_failed_try_is_made_again_after_a_growing_delay_until_the_tries_are_used_up() -> None:
    plan = retrying()
    plan.fail("p1")
    assert (plan.member("p1").state, plan.waits()) == (MemberState.RETRYING, [Wait.RETRY_DELAY])
    assert plan.said(Rule.RETRY) == [
        "p1 failed with TARGET_NOT_FOUND at s1 on try 1 of 3, and is tried again 10s later."
    ]
    assert devices(plan.wait(9)) == []
    assert devices(plan.wait(1)) == ["p1"]
    plan.fail("p1")
    assert (devices(plan.wait(19)), devices(plan.wait(1))) == ([], ["p1"])
    plan.fail("p1")
    assert plan.said(Rule.NO_RETRY) == [
        "p1 failed with TARGET_NOT_FOUND at s1 and is not tried again: it had its 3 tries."
    ]
    assert plan.rollout.state is RolloutState.FAILED


def test_a_retry_that_succeeds_counts_as_a_success() -> None:
    plan = retrying()
    plan.fail("p1")
    plan.wait(10)
    plan.end("p1")
    assert plan.rollout.state is RolloutState.SUCCEEDED


def test_retries_that_are_due_come_before_fresh_members() -> None:
    plan = Planning(3, maxConcurrent=1, retry={**PLAIN, "delay": "0s"})
    assert devices(plan.fail("p1")) == ["p1"]


def test_a_late_report_of_an_earlier_try_does_nothing() -> None:
    plan = retrying()
    first = plan.executions["p1"]
    plan.fail("p1")
    plan.wait(10)
    assert plan.end("p1", execution_id=first).changed is False


@pytest.mark.parametrize(
    ("state", "code", "acted", "repeatable", "again"),
    [
        (S.FAILED, "TARGET_NOT_FOUND", False, False, True),
        (S.FAILED, "TARGET_NOT_FOUND", True, False, False),
        (S.FAILED, "TARGET_NOT_FOUND", True, True, True),
        (S.FAILED, "OUTCOME_UNKNOWN", False, False, False),
        (S.FAILED, "OUTCOME_UNKNOWN", True, True, True),
        (S.FAILED, "TARGET_AMBIGUOUS", False, True, False),
        (S.FAILED, "INVALID_TASK", False, True, False),
        (S.FAILED, "VALUE_MISSING", False, True, False),
        (S.FAILED, "NOT_SUPPORTED", False, True, False),
        (S.FAILED, "AGENT_MISMATCH", False, True, False),
        (S.TIMED_OUT, "TASK_TIMEOUT", False, False, True),
        (S.TIMED_OUT, "TASK_TIMEOUT", True, False, False),
        (S.LOST, "AGENT_SILENT", False, False, False),
        (S.LOST, "AGENT_SILENT", True, True, True),
        (S.REJECTED, "REJECTED", False, True, False),
        (S.EXPIRED, "NOT_STARTED_IN_TIME", False, True, False),
        (S.CANCELLED, "CANCELLED", False, True, False),
    ],
)
def test_what_may_be_tried_again(state: ExecutionState, code: str, acted: bool, repeatable: bool, again: bool) -> None:
    plan = retrying(repeatable=repeatable)
    plan.end("p1", state=state, code=code, acted=acted)
    assert (plan.member("p1").state is MemberState.RETRYING) is again


def test_only_the_codes_that_are_listed_are_tried_again() -> None:
    plan = retrying(2, onlyCodes=["ACTION_FAILED"])
    plan.fail("p1", code="ACTION_FAILED")
    plan.fail("p2", code="TARGET_NOT_FOUND")
    assert plan.said(Rule.NO_RETRY) == [
        "p2 failed with TARGET_NOT_FOUND at s1 and is not tried again: retry.onlyCodes does not list TARGET_NOT_FOUND."
    ]
    assert plan.member("p1").state is MemberState.RETRYING


def test_the_same_failure_on_many_phones_opens_a_breaker_that_ends_the_retries_that_wait() -> None:
    plan = retrying(4, breaker=3)
    plan.fail("p1")
    plan.fail("p2", step="s2")
    plan.fail("p3")
    plan.fail("p4")
    assert plan.said(Rule.BREAKER) == [
        "3 phones failed with TARGET_NOT_FOUND at s1: it is not tried again, and 2 that waited for another try end."
    ]
    states = {device: plan.member(device).state for device in ("p1", "p2", "p3", "p4")}
    assert states == {
        "p1": MemberState.ENDED,
        "p2": MemberState.RETRYING,  # it failed at another step
        "p3": MemberState.ENDED,
        "p4": MemberState.ENDED,
    }
    assert plan.member("p1").outcome is Outcome.FAILED


def test_one_phone_that_fails_again_and_again_opens_no_breaker() -> None:
    plan = retrying(1, breaker=2, maxAttempts=5)
    for _ in range(4):
        plan.fail("p1")
        plan.wait(1_000)
    assert plan.rollout.memory.open_breakers == frozenset()


def test_a_breaker_stays_open_for_later_failures() -> None:
    plan = retrying(3, breaker=2)
    plan.fail("p1", "p2")
    plan.fail("p3")
    assert plan.said(Rule.NO_RETRY) == [
        "p3 failed with TARGET_NOT_FOUND at s1 and is not tried again: 3 phones failed so, and 2 are the limit."
    ]


def test_people_see_how_many_phones_failed_so() -> None:
    plan = Planning(3)
    plan.fail("p1", "p2")
    plan.end("p3", state=S.LOST, code="AGENT_SILENT")
    assert plan.rollout.memory.signatures == {Signature("TARGET_NOT_FOUND", "s1"): 2, Signature("AGENT_SILENT"): 1}


def test_the_budget_of_all_rollouts_ends_retries() -> None:
    budget = RetryBudget()
    budget.note(START, begun=50, retries=9)
    plan = retrying(2, breaker=100)
    plan.budget = budget
    plan.fail("p1", "p2")
    assert plan.member("p1").state is MemberState.RETRYING
    assert plan.said(Rule.NO_RETRY)[0].endswith(
        "the retries of all rollouts in the last hour are used up (10 of 10, with 50 begun)."
    )


@pytest.mark.parametrize(
    ("begun", "retries", "allowed"), [(0, 9, True), (0, 10, False), (200, 19, True), (200, 20, False)]
)
def test_the_budget_is_a_share_of_what_began_with_a_floor(begun: int, retries: int, allowed: bool) -> None:
    assert RetryBudget([(START, begun, retries)]).allows(START) is allowed


def test_the_budget_forgets_after_an_hour() -> None:
    budget = RetryBudget([(START, 0, 10)])
    assert not budget.allows(START + timedelta(minutes=59, seconds=59))
    assert budget.allows(START + timedelta(hours=1))
    assert (budget.begun, budget.retries) == (0, 0)


def test_the_jitter_is_stable_and_spreads() -> None:
    retry = Retry(delay=timedelta(seconds=10), jitter=Retry.model_validate({"jitter": "50%"}).jitter)
    found = [delay(retry, failed_try=1, rollout_id="r-1", device=f"p{number}") for number in range(200)]
    assert found == [delay(retry, failed_try=1, rollout_id="r-1", device=f"p{number}") for number in range(200)]
    assert min(found) >= timedelta(seconds=10)
    assert max(found) < timedelta(seconds=15)
    assert len({round(each.total_seconds()) for each in found}) == 6


def test_a_delay_never_grows_past_what_a_clock_can_show() -> None:
    retry = Retry.model_validate({"maxAttempts": 10, "delay": "366d", "backoff": 10.0, "jitter": "100%"})
    assert delay(retry, failed_try=9, rollout_id="r-1", device="p1") < timedelta(days=2 * 366)


def test_a_lost_try_that_turns_out_to_have_succeeded_is_not_made_again() -> None:
    plan = retrying(repeatable=True)
    plan.end("p1", state=S.LOST, code="AGENT_SILENT")
    plan.end("p1")
    assert plan.rollout.state is RolloutState.SUCCEEDED
