"""Who begins and when: order, limits, windows, phones that are offline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.planner.pace import GrowingRate
from droidfleet_controller.rollouts.rollout import Movement, Rule, Wait
from droidfleet_controller.rollouts.spec import Rate
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, ReasonCode, RolloutState
from unit.rollouts.planning import START, Planning, devices

S = ExecutionState
R = RolloutState
C = ReasonCode

TWO_WAVES = [{"size": 2}, {}]


@dataclass
class Switch:
    """A window that opens at an instant."""

    opens_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        return self.opens_at is not None and now >= self.opens_at

    def next_opening(self, now: datetime) -> datetime | None:
        return self.opens_at


def test_members_begin_in_the_order_of_their_places_as_many_as_may_be_live() -> None:
    plan = Planning(4, maxConcurrent=2)
    assert (plan.started, plan.waits()) == (["p1", "p2"], [Wait.RESULTS, Wait.CONCURRENCY])
    assert devices(plan.end("p2")) == ["p3"]
    assert devices(plan.end("p1", "p3")) == ["p4"]


def test_only_so_many_begin_in_any_minute() -> None:
    plan = Planning(5, ratePerMinute=2)
    assert (plan.started, plan.last.look_at) == (["p1", "p2"], START + timedelta(seconds=60))
    plan.end("p1", "p2")
    assert devices(plan.wait(59)) == []
    assert plan.waits() == [Wait.RATE]
    assert devices(plan.wait(1)) == ["p3", "p4"]


def test_a_start_counts_for_a_whole_minute_from_the_end_of_its_second() -> None:
    plan = Planning(2, ratePerMinute=1, opening=Switch(START + timedelta(seconds=0.5)))
    assert devices(plan.wait(0.5)) == ["p1"]
    assert plan.last.look_at == START + timedelta(seconds=61)


def test_a_rate_is_raised_by_successes() -> None:
    plan = Planning(9, ratePerMinute={"base": 1, "factor": 2.0, "raiseAfter": 1})
    assert plan.started == ["p1"]
    assert devices(plan.end("p1")) == ["p2"]
    plan.end("p2")
    assert devices(plan.last) == ["p3", "p4"]


@pytest.mark.parametrize(
    ("factor", "successes", "rate"), [(1.5, 3, 15), (1.5, 6, 22), (1.5, 9, 33), (1.1, 300, 1_000), (1.0, 900, 10)]
)
def test_the_rate_grows_exactly_and_has_a_limit(factor: float, successes: int, rate: int) -> None:
    assert GrowingRate(Rate(base=10, factor=factor, raise_after=3, limit=1_000)).after(successes) == rate


@given(st.lists(st.integers(0, 20), max_size=9))
def test_a_rate_asked_step_by_step_is_the_one_asked_at_once(steps: list[int]) -> None:
    rate = Rate(base=3, factor=1.3, raise_after=4)
    growing = GrowingRate(rate)
    for steps_so_far in range(len(steps)):
        growing.after(sum(steps[:steps_so_far]))
    assert growing.after(sum(steps)) == GrowingRate(rate).after(sum(steps))


def test_nothing_begins_while_the_window_is_closed() -> None:
    plan = Planning(1, opening=Switch(START + timedelta(hours=1)))
    assert (plan.waits(), plan.last.look_at) == ([Wait.WINDOW], START + timedelta(hours=1))
    assert devices(plan.wait(3_600)) == ["p1"]


def test_a_window_that_never_opens_again_is_waited_for_without_end() -> None:
    plan = Planning(1, opening=Switch())
    assert (plan.waits(), plan.last.look_at) == ([Wait.WINDOW], None)


def test_the_window_of_the_document_counts() -> None:
    plan = Planning(1, window={"start": "0 22 * * *", "stop": "0 6 * * *", "timeZone": "Europe/Berlin"})
    assert plan.last.look_at == datetime(2027, 3, 1, 21, tzinfo=UTC)


def test_one_call_begins_no_more_than_it_may_and_asks_for_the_next_one() -> None:
    plan = Planning(5, opening=Switch(START + timedelta(seconds=1)))
    plan.now = START + timedelta(seconds=1)
    assert (devices(plan.decide(limit=2)), plan.last.look_at) == (["p1", "p2"], plan.now)
    assert devices(plan.decide(limit=2)) == ["p3", "p4"]
    assert devices(plan.decide(limit=2)) == ["p5"]
    assert plan.last.look_at != plan.now


def offline(policy: str, *away: str, waves: object = ({},)) -> Planning:
    """A rollout whose window has just opened, when these phones are away."""
    plan = Planning(4, offline=policy, opening=Switch(START + timedelta(seconds=1)), waves=waves)
    plan.offline = set(away)
    plan.wait(1)
    return plan


def test_an_offline_phone_is_queued_under_wait() -> None:
    assert devices(offline("WAIT", "p1").last) == ["p1", "p2", "p3", "p4"]


def test_an_offline_phone_is_left_out_of_the_ratio_under_skip() -> None:
    plan = offline("SKIP", "p1", "p2", waves=[{"gate": {"minSuccessPercent": "100%"}}])
    assert plan.said(Rule.OFFLINE) == ["2 offline phones of wave 1 are left out: p1, p2."]
    plan.end("p3", "p4")
    assert (plan.member("p1").outcome, plan.stands) == (Outcome.SKIPPED, (R.SUCCEEDED, C.NONE, 1))


def test_one_that_expires_is_left_out_too_under_skip_but_not_one_that_failed_before() -> None:
    plan = Planning(2, offline="SKIP", retry={"maxAttempts": 2, "delay": "0s"})
    plan.end("p1", state=S.EXPIRED)
    plan.fail("p2")
    plan.end("p2", state=S.EXPIRED)
    assert (plan.member("p1").outcome, plan.member("p2").outcome) == (Outcome.SKIPPED, Outcome.EXPIRED)


def test_an_offline_phone_fails_at_once_under_fail() -> None:
    plan = offline("FAIL", "p2", waves=[{"gate": {"maxFailures": 0}}])
    assert (plan.member("p2").outcome, plan.stands) == (Outcome.EXPIRED, (R.PAUSED, C.TOO_MANY_FAILURES, 1))
    assert devices(plan.last) == ["p1"]


def test_an_offline_phone_changes_places_with_the_next_one_that_is_there() -> None:
    plan = offline("SUBSTITUTE", "p1", "p3", waves=TWO_WAVES)
    assert devices(plan.last) == ["p4", "p2"]
    assert (plan.member("p4").place, plan.member("p4").wave) == (1, 1)
    assert (plan.member("p1").place, plan.member("p1").wave) == (4, 2)
    assert [(line.device, line.movement, line.wave) for line in plan.last.log] == [
        ("p4", Movement.MOVED, 1),
        ("p1", Movement.MOVED, 2),
    ]


def test_without_a_substitute_an_offline_phone_is_queued() -> None:
    plan = offline("SUBSTITUTE", "p1", "p3", "p4", waves=TWO_WAVES)
    assert devices(plan.last) == ["p1", "p2"]


def test_the_policy_is_for_the_first_try_only() -> None:
    plan = Planning(1, offline="SKIP", retry={"maxAttempts": 2, "delay": "0s"})
    plan.offline = {"p1"}
    assert devices(plan.fail("p1")) == ["p1"]


CONTINUOUS = "CONTINUOUS"


def test_a_joiner_enters_the_open_wave_under_the_same_limits() -> None:
    plan = Planning(3, waves=TWO_WAVES, maxConcurrent=2, membership=CONTINUOUS)
    plan.join("new")
    assert (plan.member("new").wave, plan.member("new").state) == (1, MemberState.WAITING)
    plan.end("p1", "p2")
    assert devices(plan.last) == ["new"]  # and not p3: wave 1 is not complete
    assert devices(plan.end("new")) == ["p3"]


def test_a_joiner_before_the_first_wave_enters_the_last_one() -> None:
    plan = Planning(3, waves=TWO_WAVES, approval="MANUAL", membership=CONTINUOUS)
    plan.join("new")
    assert plan.member("new").wave == 2


def test_a_joiner_while_a_wave_waits_for_approval_begins_after_it() -> None:
    plan = Planning(2, waves=[{"size": 1, "gate": {"approval": "MANUAL"}}, {}], membership=CONTINUOUS)
    plan.end("p1")
    assert devices(plan.join("new")) == []
    plan.command(Control.PROMOTE)
    assert devices(plan.last) == ["p2", "new"]
    plan.end("p2")
    assert plan.stands == (R.RUNNING, C.NONE, 2)
    plan.end("new")
    assert plan.stands == (R.SUCCEEDED, C.NONE, 2)


def test_who_leaves_while_waiting_is_removed_at_once() -> None:
    plan = Planning(2, maxConcurrent=1, membership=CONTINUOUS)
    plan.leave("p2")
    assert (plan.member("p2").state, plan.member("p2").outcome) == (MemberState.ENDED, Outcome.REMOVED)
    plan.end("p1")
    assert plan.stands == (R.SUCCEEDED, C.NONE, 1)


def test_what_runs_on_a_phone_that_left_goes_on_and_is_not_counted() -> None:
    plan = Planning(3, maxConcurrent=2, membership=CONTINUOUS)
    plan.leave("p1")
    assert [(drawn.device, drawn.unless_begun) for drawn in plan.last.withdraws] == [("p1", True)]
    assert plan.started == ["p1", "p2"]  # it still takes one of the two places
    assert devices(plan.fail("p1")) == ["p3"]
    plan.end("p2", "p3")
    assert (plan.stands, plan.member("p1").outcome) == ((R.SUCCEEDED, C.NONE, 1), Outcome.REMOVED)


def test_a_rollout_that_ends_leaves_nobody_who_left_as_started() -> None:
    plan = Planning(2, membership=CONTINUOUS)
    plan.leave("p1")
    plan.end("p2")
    assert plan.stands == (R.SUCCEEDED, C.NONE, 1)
    assert (plan.member("p1").state, plan.member("p1").outcome) == (MemberState.ENDED, Outcome.REMOVED)


def test_who_comes_back_waits_again_unless_it_has_begun() -> None:
    plan = Planning(3, maxConcurrent=1, membership=CONTINUOUS)
    plan.leave("p1", "p2")
    plan.join("p1")
    plan.join("p2")
    assert (plan.member("p1").outcome, plan.member("p2").state) == (Outcome.REMOVED, MemberState.WAITING)
    assert devices(plan.end("p1")) == ["p2"]


def test_a_rollout_that_all_left_ends() -> None:
    plan = Planning(2, maxConcurrent=1, membership=CONTINUOUS)
    plan.leave("p1", "p2")
    assert plan.stands == (R.CANCELLING, C.MEMBERS_GONE, 1)
    plan.end("p1")
    assert plan.stands == (R.CANCELLED, C.MEMBERS_GONE, 1)


def test_a_wave_that_all_left_is_passed_over() -> None:
    plan = Planning(3, waves=[{"size": 1}, {"size": 1}, {}], membership=CONTINUOUS)
    plan.leave("p2")
    assert devices(plan.end("p1")) == ["p3"]
    assert plan.said(Rule.OPEN_WAVE) == [
        "Wave 3 opens with 1 phone: advances at 1 of 1. Nobody waits in wave 2: it is passed over."
    ]


def test_a_gate_that_an_offline_phone_fails_comes_before_the_next_start() -> None:
    waves = [{"size": 1, "gate": {"approval": "MANUAL"}}, {"size": 1}, {}]
    plan = Planning(3, offline="FAIL", waves=waves, membership=CONTINUOUS)
    plan.end("p1")
    plan.join("new")
    plan.offline = {"p2"}
    plan.command(Control.PROMOTE)
    assert (plan.stands, devices(plan.last)) == ((R.PAUSED, C.BELOW_THRESHOLD, 2), [])
