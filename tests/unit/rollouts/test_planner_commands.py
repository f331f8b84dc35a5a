"""Pause, resume, promote, cancel, abort: what each does, and when it is refused."""

from __future__ import annotations

import pytest

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.planner.plan import TryEnded
from droidfleet_controller.rollouts.rollout import Rule, Signature, Wait
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, ReasonCode, RolloutState
from droidfleet_shared.errors import ConflictError, DroidfleetError
from unit.rollouts.planning import Planning, devices

R = RolloutState
C = ReasonCode


def test_nothing_new_starts_while_it_is_paused_and_what_runs_goes_on() -> None:
    plan = Planning(3, maxConcurrent=2)
    decided = plan.command(Control.PAUSE)
    assert [decision.sentence for decision in decided.decisions] == ["ann paused the rollout."]
    assert (plan.stands, plan.waits()) == ((R.PAUSED, C.PAUSED_BY_OPERATOR, 1), [Wait.PAUSED, Wait.RESULTS])
    assert devices(plan.end("p1")) == []
    plan.command(Control.RESUME)
    assert devices(plan.last) == ["p3"]


def test_a_stale_version_is_refused() -> None:
    plan = Planning(1)
    seen = plan.rollout.version
    plan.command(Control.PAUSE)
    with pytest.raises(ConflictError, match="STALE_VERSION"):
        plan.command(Control.CANCEL, version=seen)
    assert plan.rollout.state is R.PAUSED


def test_a_rule_commands_whatever_the_version() -> None:
    plan = Planning(1)
    plan.plan.command(
        Control.CANCEL, version=None, now=plan.now, actor="", reason="the window ends", reason_code=C.WINDOW_CLOSED
    )
    assert plan.stands == (R.CANCELLING, C.WINDOW_CLOSED, 1)


def test_cancel_withdraws_what_is_live_and_ends_the_rest() -> None:
    plan = Planning(3, maxConcurrent=2, retry={"maxAttempts": 2, "delay": "1h"})
    plan.fail("p1")
    decided = plan.command(Control.CANCEL)
    assert [(drawn.device, drawn.fence) for drawn in decided.withdraws] == [("p2", False), ("p3", False)]
    assert (plan.member("p1").outcome, plan.waits()) == (Outcome.CANCELLED, [Wait.CONFIRMATION])
    plan.end("p2", state=ExecutionState.CANCELLED)
    assert plan.stands == (R.CANCELLING, C.CANCELLED_BY_OPERATOR, 1)
    plan.fail("p3")  # and is not tried again
    assert plan.stands == (R.CANCELLED, C.CANCELLED_BY_OPERATOR, 1)
    assert plan.member("p3").outcome is Outcome.FAILED


def test_cancel_ends_at_once_when_nothing_is_live() -> None:
    plan = Planning(2, approval="MANUAL")
    assert plan.command(Control.CANCEL).rollout.state is R.CANCELLED


def test_abort_fences_what_is_live_and_ends_at_once() -> None:
    plan = Planning(2, maxConcurrent=1)
    decided = plan.command(Control.ABORT)
    assert [(drawn.device, drawn.fence) for drawn in decided.withdraws] == [("p1", True)]
    assert (plan.stands, plan.member("p1").outcome) == ((R.ABORTED, C.ABORTED_BY_OPERATOR, 1), Outcome.CANCELLED)
    assert plan.end("p1").changed is False


def test_what_was_told_before_an_abort_happened_before_it() -> None:
    plan = Planning(2)
    plan.plan.take(
        TryEnded(
            device="p1",
            execution_id=plan.executions["p1"],
            state=ExecutionState.SUCCEEDED,
            signature=Signature("OK"),
            may_have_acted=True,
            reason="",
            at=plan.now,
        )
    )
    decided = plan.command(Control.ABORT)
    assert [drawn.device for drawn in decided.withdraws] == ["p2"]
    assert plan.member("p1").outcome is Outcome.SUCCEEDED


def test_a_cancel_that_is_not_confirmed_can_be_hardened_to_an_abort() -> None:
    plan = Planning(1)
    plan.command(Control.CANCEL)
    plan.command(Control.ABORT)
    assert plan.rollout.state is R.ABORTED


def test_promote_opens_the_next_wave_below_the_gate() -> None:
    plan = Planning(3, waves=[{"size": 1}, {}])
    plan.fail("p1")
    assert plan.stands == (R.PAUSED, C.BELOW_THRESHOLD, 1)
    plan.command(Control.PROMOTE)
    assert (plan.stands, devices(plan.last)) == ((R.RUNNING, C.NONE, 2), ["p2", "p3"])


def test_every_command_is_recorded_and_grows_the_version() -> None:
    plan = Planning(2, waves=[{"size": 1, "gate": {"approval": "MANUAL"}}, {}])
    plan.end("p1")
    for control in (Control.PROMOTE, Control.PAUSE, Control.RESUME, Control.CANCEL):
        before = plan.rollout
        decided = plan.command(control)
        assert decided.decisions[0].rule is Rule.COMMAND
        assert decided.rollout.version > before.version
        assert decided.rollout.tick == before.tick + 1


def running() -> Planning:
    return Planning(2)


def paused() -> Planning:
    plan = Planning(2)
    plan.command(Control.PAUSE)
    return plan


def awaiting() -> Planning:
    return Planning(2, approval="MANUAL")


def below() -> Planning:
    plan = Planning(2, waves=[{"size": 1}, {}])
    plan.fail("p1")
    return plan


def cancelling() -> Planning:
    plan = Planning(2)
    plan.command(Control.CANCEL)
    return plan


def over() -> Planning:
    plan = Planning(1)
    plan.end("p1")
    return plan


REFUSED = [
    (running, Control.RESUME, "ROLLOUT_NOT_PAUSED"),
    (running, Control.PROMOTE, "ROLLOUT_NOT_PROMOTABLE"),
    (paused, Control.PAUSE, "ROLLOUT_NOT_RUNNING"),
    (paused, Control.PROMOTE, "ROLLOUT_PAUSED"),
    (awaiting, Control.PAUSE, "ROLLOUT_NOT_RUNNING"),
    (awaiting, Control.RESUME, "ROLLOUT_NOT_PAUSED"),
    (below, Control.RESUME, "ROLLOUT_BELOW_GATE"),
    *((cancelling, control, "ROLLOUT_CANCELLING") for control in Control if control is not Control.ABORT),
    *((over, control, "ROLLOUT_ENDED") for control in Control),
]


@pytest.mark.parametrize(("make", "control", "code"), REFUSED, ids=lambda value: getattr(value, "__name__", str(value)))
def test_what_the_state_does_not_allow_is_refused_and_changes_nothing(
    make: object, control: Control, code: str
) -> None:
    assert callable(make)
    plan = make()
    assert isinstance(plan, Planning)
    before = plan.rollout
    with pytest.raises(DroidfleetError) as raised:
        plan.command(control)
    assert (raised.value.code, raised.value.kind) == (code, "precondition")
    assert plan.rollout is before


def test_members_that_wait_end_as_cancelled_with_the_reason() -> None:
    plan = Planning(2, maxConcurrent=1)
    plan.command(Control.CANCEL)
    waiting = plan.member("p2")
    assert (waiting.state, waiting.reason) == (MemberState.ENDED, "CANCELLED_BY_OPERATOR: ann cancelled the rollout.")
