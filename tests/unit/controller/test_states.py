"""The table of moves, exhaustively."""

from __future__ import annotations

import pytest

from droidfleet_controller.dispatch import states
from droidfleet_controller.dispatch.states import IN_WINDOW, LIVE, REPORTED, TERMINAL, ExecutionState, IllegalMoveError
from unit.controller.builders import NOW, execution

S = ExecutionState

EXPECTED = {
    S.QUEUED: "ASSIGNED ACCEPTED RUNNING SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED LOST",
    S.ASSIGNED: "ACCEPTED RUNNING SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED LOST",
    S.ACCEPTED: "RUNNING SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED LOST",
    S.RUNNING: "PAUSED SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED LOST",
    S.PAUSED: "RUNNING SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED LOST",
    S.SUCCEEDED: "",
    S.FAILED: "",
    S.CANCELLED: "",
    S.TIMED_OUT: "",
    S.EXPIRED: "",
    S.REJECTED: "",
    S.LOST: "SUCCEEDED FAILED CANCELLED TIMED_OUT EXPIRED REJECTED",
}


@pytest.mark.parametrize("current", S)
@pytest.mark.parametrize("wanted", S)
def test_a_move_is_allowed_exactly_when_the_table_has_it(current: S, wanted: S) -> None:
    assert states.allowed(current, wanted) == (wanted.value in EXPECTED[current].split())


@pytest.mark.parametrize("current", S)
@pytest.mark.parametrize("wanted", S)
def test_a_record_refuses_exactly_the_moves_that_the_table_lacks(current: S, wanted: S) -> None:
    before = execution(current)
    if states.allowed(current, wanted):
        after = before.moved(wanted, now=NOW, reason="why")
        assert (after.state, after.reason, after.version) == (wanted, "why", before.version + 1)
    else:
        with pytest.raises(IllegalMoveError):
            before.moved(wanted, now=NOW)


def test_only_lost_leaves_a_terminal_state() -> None:
    assert {state for state in TERMINAL if states.MOVES[state]} == {S.LOST}


def test_every_state_is_live_or_terminal_and_none_is_both() -> None:
    assert set(S) == LIVE | TERMINAL
    assert not LIVE & TERMINAL


def test_every_live_state_can_reach_every_reported_end() -> None:
    for state in IN_WINDOW:
        assert states.MOVES[state] >= REPORTED
