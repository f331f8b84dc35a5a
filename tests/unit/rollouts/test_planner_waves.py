"""From wave to wave: gates, limits of failures, soaking, approval, dry run, progress, and how a rollout ends."""

from __future__ import annotations

import pytest

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.rollout import Rule, Wait
from droidfleet_controller.rollouts.states import Control, Outcome, ReasonCode, RolloutState
from droidfleet_shared.errors import PreconditionError
from unit.rollouts.planning import Planning, devices

R = RolloutState
C = ReasonCode
S = ExecutionState


def waves(*gates: dict[str, object], first: object = 1) -> list[dict[str, object]]:
    """Waves of ``first`` members each, and the rest."""
    return [{"size": first, "gate": gate} for gate in gates[:-1]] + [{"gate": gates[-1]}]


def test_a_wave_opens_when_the_one_before_it_has_passed() -> None:
    plan = Planning(3, waves=waves({}, {}))
    assert plan.started == ["p1"]
    assert devices(plan.end("p1")) == ["p2", "p3"]
    assert plan.said(Rule.GATE_PASSED) == ["1 of 1 phone of wave 1 succeeded, 1 needed: its gate is passed."]
    assert plan.said(Rule.OPEN_WAVE) == ["Wave 2 opens with 2 phones: advances at 2 of 2."]
    assert plan.said(Rule.START) == ["2 phones of wave 2 begin: 2 going on, 0 waiting."]


def test_a_rollout_succeeds_when_its_last_wave_passes() -> None:
    plan = Planning(2, waves=waves({}, {}))
    plan.end("p1")
    plan.end("p2")
    assert plan.stands == (R.SUCCEEDED, C.NONE, 2)
    assert (plan.rollout.ended_at, plan.last.waits, plan.last.look_at) == (plan.now, (), None)


def test_a_rollout_fails_when_its_last_wave_stays_below_its_gate() -> None:
    plan = Planning(10)
    plan.end(*(f"p{number}" for number in range(1, 9)))
    assert plan.stands == (R.RUNNING, C.NONE, 1)
    plan.fail("p9", "p10")
    assert plan.stands == (R.FAILED, C.BELOW_THRESHOLD, 1)
    assert plan.rollout.reason == "8 of 10 phones of wave 1 succeeded, 9 needed."


def test_no_wave_opens_below_the_gate_of_the_one_before() -> None:
    plan = Planning(4, waves=waves({"minSuccessPercent": "67%"}, {}, first=3))
    plan.end("p1", "p2")
    plan.fail("p3")  # 66.7% of three
    assert plan.stands == (R.PAUSED, C.BELOW_THRESHOLD, 1)
    assert plan.waits() == [Wait.PAUSED]


def test_the_percent_is_compared_exactly() -> None:
    plan = Planning(4, waves=waves({"minSuccessPercent": "66.66%"}, {}, first=3))
    plan.end("p1", "p2")
    plan.fail("p3")
    assert plan.stands == (R.RUNNING, C.NONE, 2)


@pytest.mark.parametrize(("limit", "stops_at"), [(2, 3), ("5%", 3), ("4.99%", 2), (0, 1), ("0%", 1)])
def test_exceeding_the_failures_acts_in_mid_wave(limit: object, stops_at: int) -> None:
    plan = Planning(40, waves=waves({"maxFailures": limit, "minSuccessPercent": "0%"}))
    for number in range(1, stops_at):
        plan.fail(f"p{number}")
        assert plan.stands == (R.RUNNING, C.NONE, 1)
    plan.fail(f"p{stops_at}")
    assert plan.stands == (R.PAUSED, C.TOO_MANY_FAILURES, 1)


def test_exceeding_the_failures_can_cancel() -> None:
    plan = Planning(4, maxConcurrent=2, waves=waves({"maxFailures": 0, "onExceeded": "CANCEL"}))
    plan.fail("p1")
    assert plan.stands == (R.CANCELLING, C.TOO_MANY_FAILURES, 1)
    assert [(drawn.device, drawn.fence, drawn.unless_begun) for drawn in plan.last.withdraws] == [("p2", False, False)]
    assert plan.member("p3").outcome is Outcome.CANCELLED
    plan.end("p2")
    assert plan.stands == (R.CANCELLED, C.TOO_MANY_FAILURES, 1)
    assert plan.member("p2").outcome is Outcome.SUCCEEDED


def test_a_code_can_have_a_limit_of_its_own() -> None:
    plan = Planning(9, waves=waves({"maxFailuresByCode": {"OUTCOME_UNKNOWN": 1}, "minSuccessPercent": "0%"}))
    plan.fail("p1", "p2", "p3")
    plan.fail("p4", code="OUTCOME_UNKNOWN")
    assert plan.stands == (R.RUNNING, C.NONE, 1)
    plan.fail("p5", code="OUTCOME_UNKNOWN")
    assert plan.stands == (R.PAUSED, C.TOO_MANY_FAILURES, 1)
    assert plan.rollout.reason == "Wave 1 has 2 OUTCOME_UNKNOWN of 9 members; more than 1 is too many."


def test_failures_that_somebody_resumed_over_do_not_pause_again_but_one_more_does() -> None:
    plan = Planning(9, waves=waves({"maxFailures": 1}))
    plan.fail("p1", "p2")
    plan.command(Control.RESUME)
    assert plan.stands == (R.RUNNING, C.NONE, 1)
    plan.end("p3")
    assert plan.stands == (R.RUNNING, C.NONE, 1)
    plan.fail("p4")
    assert plan.stands == (R.PAUSED, C.TOO_MANY_FAILURES, 1)


def test_a_failure_that_turned_out_to_be_none_is_not_acknowledged_for_the_next_one() -> None:
    plan = Planning(9, waves=waves({"maxFailures": 0}))
    lost = plan.executions["p1"]
    plan.end("p1", state=S.LOST)
    plan.command(Control.RESUME)
    plan.end("p1", execution_id=lost)
    plan.fail("p2")
    assert plan.stands == (R.PAUSED, C.TOO_MANY_FAILURES, 1)


def test_too_many_failures_while_paused_say_so_that_nobody_resumes_unaware() -> None:
    plan = Planning(9, waves=waves({"maxFailures": 0}))
    plan.command(Control.PAUSE)
    version = plan.rollout.version
    plan.fail("p1")
    assert plan.stands == (R.PAUSED, C.TOO_MANY_FAILURES, 1)
    assert plan.rollout.version > version


def test_too_many_failures_of_the_last_wave_fail_a_rollout_in_which_nothing_is_left() -> None:
    plan = Planning(2, waves=waves({"maxFailures": 1}))
    plan.fail("p1", "p2")
    assert plan.stands == (R.FAILED, C.TOO_MANY_FAILURES, 1)


@pytest.mark.parametrize(("wanted", "passes"), [(2, True), (3, False)])
def test_too_few_results_decide_nothing(wanted: int, passes: bool) -> None:
    plan = Planning(4, offline="SKIP", waves=waves({"minSample": wanted}, {}, first=3), maxConcurrent=1)
    plan.offline = {"p3"}
    plan.end("p1")
    plan.end("p2")
    assert plan.stands == ((R.RUNNING, C.NONE, 2) if passes else (R.PAUSED, C.SAMPLE_TOO_SMALL, 1))


def test_a_wave_smaller_than_the_sample_needs_all_its_members() -> None:
    plan = Planning(3, waves=waves({"minSample": 100}, {}, first=2))
    plan.end("p1", "p2")
    assert plan.stands == (R.RUNNING, C.NONE, 2)


def test_a_wave_without_any_result_pauses() -> None:
    plan = Planning(2, waves=waves({}, {}), offline="SKIP", window={"start": "0 13 * * *", "stop": "0 14 * * *"})
    plan.offline = {"p1"}
    plan.wait(3_600)
    assert plan.stands == (R.PAUSED, C.SAMPLE_TOO_SMALL, 1)


def test_the_next_wave_opens_a_while_after_the_last_result() -> None:
    plan = Planning(3, waves=waves({"soak": "10m"}, {}, first=2))
    plan.end("p1")
    plan.wait(60)
    plan.end("p2")
    assert (plan.waits(), plan.said(Rule.SOAK)) == (
        [Wait.SOAK],
        ["Wave 1 is complete; the next one waits 10m after its last result."],
    )
    assert plan.wait(599).changed is False
    assert devices(plan.wait(1)) == ["p3"]


def test_somebody_may_end_the_soaking() -> None:
    plan = Planning(2, waves=waves({"soak": "10m"}, {}))
    plan.end("p1")
    plan.command(Control.PROMOTE)
    assert devices(plan.last) == ["p2"]


def test_the_last_wave_does_not_soak() -> None:
    plan = Planning(1, waves=waves({"soak": "10m", "approval": "MANUAL"}))
    plan.end("p1")
    assert plan.stands == (R.SUCCEEDED, C.NONE, 1)


def test_a_wave_that_needs_approval_waits_for_a_person() -> None:
    plan = Planning(2, waves=waves({"approval": "MANUAL"}, {}))
    plan.end("p1")
    assert plan.stands == (R.AWAITING_APPROVAL, C.WAVE_APPROVAL_NEEDED, 1)
    assert plan.waits() == [Wait.APPROVAL]
    plan.command(Control.PROMOTE)
    assert (plan.stands, devices(plan.last)) == ((R.RUNNING, C.NONE, 2), ["p2"])


def test_the_first_wave_can_wait_for_a_person() -> None:
    plan = Planning(1, approval="MANUAL")
    assert (plan.stands, plan.started) == ((R.AWAITING_APPROVAL, C.APPROVAL_NEEDED, 0), [])
    plan.command(Control.PROMOTE)
    assert (plan.stands, plan.started) == ((R.RUNNING, C.NONE, 1), ["p1"])


def test_a_dry_run_comes_before_the_approval_and_counts_nowhere() -> None:
    plan = Planning(2, dryRun={"device": "p2"}, approval="MANUAL")
    assert (plan.started, plan.rollout.wave) == (["p2"], 0)
    plan.end("p2")
    assert plan.stands == (R.AWAITING_APPROVAL, C.APPROVAL_NEEDED, 0)
    plan.command(Control.PROMOTE)
    assert plan.started == ["p2", "p1", "p2"]
    plan.end("p1", "p2")
    assert plan.last.decisions[0].numbers == {"succeeded": 2, "members": 2, "needed": 2, "results": 2}


def test_a_dry_run_that_failed_pauses_until_somebody_promotes() -> None:
    plan = Planning(1, dryRun={"device": "v"})
    plan.fail("v")
    assert plan.stands == (R.PAUSED, C.DRY_RUN_FAILED, 0)
    with pytest.raises(PreconditionError, match="ROLLOUT_BELOW_GATE"):
        plan.command(Control.RESUME)
    plan.command(Control.PROMOTE)
    assert (plan.stands, plan.started) == ((R.RUNNING, C.NONE, 1), ["v", "p1"])


def test_a_dry_run_waits_for_its_phone_whatever_the_policy() -> None:
    plan = Planning(1, dryRun={"device": "v"}, offline="SKIP", window={"start": "0 13 * * *", "stop": "0 14 * * *"})
    plan.offline = {"v"}
    assert devices(plan.wait(3_600)) == ["v"]


def test_no_result_for_too_long_pauses() -> None:
    plan = Planning(2, maxConcurrent=1, deadlines={"progress": "1h"})
    plan.wait(1_800)
    plan.end("p1")
    assert plan.wait(3_599).changed is False
    plan.wait(1)
    assert plan.stands == (R.PAUSED, C.NO_PROGRESS, 1)
    plan.command(Control.RESUME)
    assert plan.stands == (R.RUNNING, C.NONE, 1)
    assert plan.wait(3_599).changed is False


def test_a_closed_window_is_no_lack_of_progress() -> None:
    plan = Planning(1, deadlines={"progress": "1h"}, window={"start": "0 22 * * *", "stop": "0 6 * * *"})
    assert plan.waits() == [Wait.WINDOW]
    assert devices(plan.wait(10 * 3_600)) == ["p1"]
    assert plan.stands == (R.RUNNING, C.NONE, 1)


def test_what_runs_on_a_phone_that_left_is_not_waited_for() -> None:
    plan = Planning(2, deadlines={"progress": "1h"}, membership="CONTINUOUS", maxConcurrent=1)
    plan.leave("p1")
    assert (plan.wait(3_600).changed, plan.last.look_at) == (False, None)
    assert plan.stands == (R.RUNNING, C.NONE, 1)


def test_a_lost_execution_that_turns_out_to_have_succeeded_corrects_the_counts() -> None:
    plan = Planning(3, waves=waves({"minSuccessPercent": "100%"}, {}, first=2))
    plan.end("p1")
    plan.end("p2", state=S.LOST)
    assert plan.stands == (R.PAUSED, C.BELOW_THRESHOLD, 1)
    with pytest.raises(PreconditionError, match="ROLLOUT_BELOW_GATE"):
        plan.command(Control.RESUME)
    plan.end("p2")
    plan.command(Control.RESUME)
    assert plan.stands == (R.RUNNING, C.NONE, 2)


def test_an_outcome_that_is_known_stays() -> None:
    plan = Planning(2)
    plan.fail("p1")
    assert plan.end("p1").changed is False
    assert plan.member("p1").outcome is Outcome.FAILED
