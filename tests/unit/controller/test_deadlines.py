"""No state lasts for ever. Time is an argument."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from droidfleet_controller.dispatch.deadlines import (
    HEARD_MARGIN,
    LONGEST_HOLD,
    RECHECK,
    RUN_MARGIN,
    START_GRACE,
    Verdict,
    first_check,
    judge,
    take_on_by,
)
from droidfleet_controller.dispatch.states import LIVE, TERMINAL, ExecutionState
from unit.controller.builders import EXPIRES, NOW, execution

S = ExecutionState
MOMENT = timedelta(seconds=1)


def test_a_held_execution_has_a_day_and_then_its_bound_and_one_that_goes_on_its_bound() -> None:
    later = NOW + timedelta(hours=5)
    held = replace(execution(S.PAUSED, started_at=NOW), counts_from=later)
    run = timedelta(seconds=held.bound_s) + RUN_MARGIN
    assert first_check(held) == later + LONGEST_HOLD + run
    assert first_check(replace(held, state=S.RUNNING)) == later + run


def test_a_queued_execution_expires_at_its_expiry_and_not_before() -> None:
    queued = execution(S.QUEUED, check_at=EXPIRES)
    assert judge(queued, agent_silent=True, now=EXPIRES - MOMENT).verdict is Verdict.WAIT
    assert judge(queued, agent_silent=False, now=EXPIRES).verdict is Verdict.EXPIRE


def test_an_assigned_execution_is_withdrawn_before_it_can_be_lost() -> None:
    assigned = execution(S.ASSIGNED, check_at=EXPIRES)
    judgement = judge(assigned, agent_silent=True, now=EXPIRES + timedelta(days=2))
    assert judgement.verdict is Verdict.WITHDRAW
    assert judgement.check_at == EXPIRES + START_GRACE


def test_an_assigned_execution_of_a_silent_agent_is_lost_after_the_grace() -> None:
    withdrawn = execution(S.ASSIGNED, check_at=EXPIRES + START_GRACE)
    assert judge(withdrawn, agent_silent=True, now=EXPIRES + START_GRACE - MOMENT).verdict is Verdict.WAIT
    judgement = judge(withdrawn, agent_silent=True, now=EXPIRES + START_GRACE)
    assert judgement.verdict is Verdict.LOSE
    assert judgement.reason.startswith("AGENT_SILENT: ")


def test_an_assigned_execution_of_a_heard_agent_is_waited_for_much_longer() -> None:
    withdrawn = execution(S.ASSIGNED, check_at=EXPIRES + START_GRACE)
    now = EXPIRES + START_GRACE
    judgement = judge(withdrawn, agent_silent=False, now=now)
    assert (judgement.verdict, judgement.check_at) == (Verdict.WAIT, now + RECHECK)
    judgement = judge(withdrawn, agent_silent=False, now=now + HEARD_MARGIN)
    assert judgement.verdict is Verdict.LOSE
    assert judgement.reason.startswith("NEVER_REPORTED: ")


def test_an_assigned_execution_has_its_own_time_to_be_taken_on() -> None:
    assigned = replace(execution(S.ASSIGNED), accept_within_s=60)
    limit = NOW + timedelta(seconds=60)
    assert first_check(assigned) == take_on_by(assigned) == limit
    assert judge(assigned, agent_silent=True, now=limit - MOMENT).verdict is Verdict.WAIT
    judgement = judge(replace(assigned, check_at=limit), agent_silent=True, now=limit)
    assert (judgement.verdict, judgement.check_at) == (Verdict.WITHDRAW, limit + START_GRACE)
    judgement = judge(replace(assigned, check_at=limit + START_GRACE), agent_silent=True, now=limit + START_GRACE)
    assert judgement.verdict is Verdict.LOSE


def test_the_time_to_be_taken_on_never_goes_beyond_the_expiry() -> None:
    assert take_on_by(replace(execution(S.ASSIGNED), accept_within_s=1e9)) == EXPIRES


@pytest.mark.parametrize("state", [S.QUEUED, S.ACCEPTED, S.RUNNING])
def test_the_time_to_be_taken_on_is_of_assigned_ones_alone(state: ExecutionState) -> None:
    without = execution(state, started_at=NOW)
    assert first_check(replace(without, accept_within_s=1)) == first_check(without)


def test_a_running_execution_is_lost_when_its_bound_has_passed_and_the_agent_is_silent() -> None:
    running = execution(S.RUNNING, started_at=NOW, bound_s=30)
    end = NOW + timedelta(seconds=30) + RUN_MARGIN
    assert first_check(running) == end
    assert judge(running, agent_silent=True, now=end - MOMENT).verdict is Verdict.WAIT
    assert judge(running, agent_silent=False, now=end).verdict is Verdict.WAIT
    assert judge(running, agent_silent=True, now=end).verdict is Verdict.LOSE


def test_an_accepted_execution_may_wait_for_its_start_until_its_expiry() -> None:
    accepted = execution(S.ACCEPTED, accepted_at=NOW, bound_s=30)
    end = EXPIRES + timedelta(seconds=30) + RUN_MARGIN
    assert first_check(accepted) == end
    assert judge(accepted, agent_silent=True, now=end).verdict is Verdict.LOSE


@pytest.mark.parametrize("state", sorted(LIVE))
@pytest.mark.parametrize("silent", [True, False])
def test_every_live_state_ends_sooner_or_later(state: S, *, silent: bool) -> None:
    current = execution(state, check_at=EXPIRES + START_GRACE, started_at=NOW, accepted_at=NOW)
    judgement = judge(current, agent_silent=silent, now=NOW + timedelta(days=7))
    assert judgement.verdict in {Verdict.EXPIRE, Verdict.LOSE}


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_waiting_execution_is_always_looked_at_again(state: S) -> None:
    current = execution(state, started_at=NOW, accepted_at=NOW)
    judgement = judge(current, agent_silent=True, now=NOW)
    assert judgement.verdict is Verdict.WAIT
    assert judgement.check_at is not None
    assert judgement.check_at > NOW


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_what_has_ended_is_never_looked_at_again(state: S) -> None:
    assert first_check(execution(state)) is None
    assert judge(execution(state), agent_silent=True, now=NOW + timedelta(days=999)).check_at is None
