"""Events of agents, in any order and any number of times."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.progress import Label, apply
from droidfleet_controller.dispatch.states import TERMINAL, ExecutionState
from droidfleet_shared.bus.messages import (
    Event,
    ExecutionAccepted,
    ExecutionContinued,
    ExecutionFinished,
    ExecutionPaused,
    ExecutionRejected,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.protocol.codes import StepCode
from support.controller import step_result, task_result
from unit.controller.builders import NOW, execution

S = ExecutionState


def history(
    *, steps: int, end: StepCode | str | None, attempt: int = 1, holds: int = 0, held: bool = False
) -> list[Event]:
    """What an agent reports of one attempt, in order. ``end``: the code of a result or a rejection; None: not yet.
    ``holds``: how often it was held before its steps, and went on; ``held``: it is held at the end."""
    events: list[Event] = []

    def base() -> dict[str, object]:
        return {
            "agent": "phone-01",
            "execution_id": "x-1",
            "attempt": attempt,
            "sequence": len(events) + 1,
            "at": NOW + timedelta(seconds=len(events)),
        }

    if isinstance(end, str) and not isinstance(end, StepCode):
        return [ExecutionRejected.model_validate({**base(), "code": end, "message": "no"})]
    events.append(ExecutionAccepted.model_validate(base()))
    events.append(ExecutionStarted.model_validate(base()))
    for number in range(steps):
        events.append(StepStarted.model_validate({**base(), "step_id": f"back-{number}", "path": f"/steps/{number}"}))
        if number < holds:
            events.append(ExecutionPaused.model_validate({**base(), "step_id": f"back-{number}"}))
            events.append(ExecutionContinued.model_validate({**base(), "step_id": f"back-{number}"}))
        events.append(StepFinished.model_validate({**base(), "result": step_result(f"back-{number}").model_dump()}))
    if held:
        events.append(ExecutionPaused.model_validate(base()))
    if end is not None:
        result = task_result("phone-01", "x-1", code=end, steps=steps)
        events.append(ExecutionFinished.model_validate({**base(), "result": result.model_dump()}))
    return events


def replay(events: list[Event], start: Execution) -> Execution:
    """What ingest does: each event once, however often it comes."""
    seen: set[int] = set()
    current = start
    for event in events:
        if event.sequence not in seen:
            seen.add(event.sequence)
            current = apply(current, event, now=NOW).execution
    return current


def essence(record: Execution) -> tuple[object, ...]:
    """What must not depend on the order of arrival."""
    result = record.result.successful if record.result else None
    return (record.state, record.reason, record.steps_done, record.current_step_id, result)


histories = st.builds(
    history,
    steps=st.integers(0, 4),
    holds=st.integers(0, 2),
    held=st.booleans(),
    end=st.sampled_from(
        [None, StepCode.OK, StepCode.TARGET_AMBIGUOUS, StepCode.CANCELLED, StepCode.TASK_TIMEOUT, "INVALID_TASK"]
    ),
)


@given(data=st.data(), events=histories)
def test_any_order_and_repetition_of_an_attempts_events_ends_in_the_same_state(
    data: st.DataObject, events: list[Event]
) -> None:
    in_order = replay(events, execution())
    repeated = events + data.draw(st.lists(st.sampled_from(events), max_size=5))
    shuffled = data.draw(st.permutations(repeated))
    assert essence(replay(shuffled, execution())) == essence(in_order)


@given(data=st.data(), events=histories)
def test_an_attempts_events_never_leave_a_terminal_state(data: st.DataObject, events: list[Event]) -> None:
    current = execution()
    ended = False
    for event in data.draw(st.permutations(events)):
        current = apply(current, event, now=NOW).execution
        assert not (ended and current.state not in TERMINAL)
        ended = current.state in TERMINAL


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (StepCode.OK, S.SUCCEEDED),
        (StepCode.TARGET_NOT_FOUND, S.FAILED),
        (StepCode.OUTCOME_UNKNOWN, S.FAILED),
        (StepCode.CANCELLED, S.CANCELLED),
        (StepCode.TASK_TIMEOUT, S.TIMED_OUT),
        ("INVALID_TASK", S.REJECTED),
        ("AGENT_MISMATCH", S.REJECTED),
        ("START_EXPIRED", S.EXPIRED),
        ("CANCELLED", S.CANCELLED),
    ],
)
def test_what_the_agent_says_decides_the_end(end: StepCode | str, state: S) -> None:
    assert replay(history(steps=1, end=end), execution()).state is state


def test_an_accepted_execution_without_a_start_is_accepted() -> None:
    assert replay(history(steps=0, end=None)[:1], execution()).state is S.ACCEPTED


def test_progress_names_the_step_that_is_under_way() -> None:
    events = history(steps=2, end=None)
    assert replay(events[:3], execution()).current_step_id == "back-0"
    between = replay(events[:4], execution())
    assert (between.current_step_id, between.steps_done) == ("", 1)
    assert replay(events[:5], execution()).current_step_id == "back-1"


def test_held_it_is_paused_and_its_bound_counts_from_there() -> None:
    events = history(steps=1, end=None, holds=1)
    asked = replace(execution(), pause_requested=True, reason="PAUSE_REQUESTED: look")
    paused = replay(events[:4], asked)
    assert (paused.state, paused.reason) == (S.PAUSED, "PAUSE_REQUESTED: look")
    assert (paused.current_step_id, paused.counts_from) == ("back-0", NOW)
    assert replay(events[4:5], paused).state is S.RUNNING


def test_news_from_before_the_hold_does_not_end_it() -> None:
    events = history(steps=1, end=None, holds=1)
    assert replay([events[3], *events[:3]], execution()).state is S.PAUSED


def test_a_held_execution_can_end() -> None:
    assert replay(history(steps=1, end=StepCode.CANCELLED, held=True), execution()).state is S.CANCELLED


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED, S.CANCELLED, S.TIMED_OUT, S.EXPIRED, S.REJECTED])
def test_a_late_result_is_labelled_and_changes_nothing(state: S) -> None:
    ended = execution(state)
    applied = apply(ended, history(steps=1, end=StepCode.OK)[-1], now=NOW)
    assert applied.execution == ended
    assert applied.label is Label.LATE


def test_what_really_happened_replaces_lost() -> None:
    found = apply(execution(S.LOST), history(steps=1, end=StepCode.OK)[-1], now=NOW)
    assert found.label is Label.COUNTS
    assert found.execution.state is S.SUCCEEDED


@pytest.mark.parametrize("index", range(4))
def test_a_sign_of_life_does_not_revive_a_lost_execution(index: int) -> None:
    lost = execution(S.LOST)
    assert apply(lost, history(steps=1, end=None)[index], now=NOW).execution == lost


def test_events_of_another_attempt_are_fenced() -> None:
    current = execution()
    for event in history(steps=1, end=StepCode.OK, attempt=2):
        assert apply(current, event, now=NOW).label is Label.FENCED
        assert apply(current, event, now=NOW).execution == current


def test_a_step_changes_its_progress_alone() -> None:
    current = execution(S.RUNNING, accepted_at=NOW, started_at=NOW)
    later = NOW + timedelta(seconds=5)
    begun, ended = history(steps=1, end=None)[2:4]
    assert apply(current, begun, now=later).execution == replace(
        current, current_step_id="back-0", progress_sequence=3, updated_at=later, version=2
    )
    assert apply(current, ended, now=later).execution == replace(
        current, steps_done=1, progress_sequence=4, updated_at=later, version=2
    )
