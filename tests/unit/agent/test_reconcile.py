"""What an agent does next, decided on documents, journal and what runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.journal.attempt import Attempt, Phase, key
from droidfleet_agent.reconcile import (
    CANCEL_WANTED,
    MAX_CRASHES,
    NOT_ASSIGNED,
    AnswerCancelled,
    CancelRunning,
    EndInterrupted,
    Expire,
    Forget,
    Key,
    Refusal,
    Refuse,
    ReportAgain,
    Situation,
    Start,
    TakeOn,
    reconcile,
)
from droidfleet_shared.bus.messages import Assignment, DesiredState, ExecutionRejected, Wanted
from support.assignments import assignment, document, ref

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def attempt(execution_id: str, phase: Phase = Phase.ACCEPTED, *, number: int = 1) -> Attempt:
    last = None
    if phase is Phase.ENDED:
        last = ExecutionRejected(
            agent="phone-01",
            execution_id=execution_id,
            attempt=number,
            sequence=1,
            at=NOW,
            code="INVALID_TASK",
            message="",
        )
    return Attempt(ref(execution_id, number), "{}", None, phase=phase, sequence=1, last=last, trail_length=1)


def situation(
    wanted: DesiredState | None,
    *attempts: Attempt,
    running: str | None = None,
    pausing: bool = False,
    broke: Sequence[str] = (),
    may_start: bool = True,
    late: Sequence[str] = (),
    unheard: Sequence[str] = (),
    forgotten: Sequence[str] = (),
    judge: Callable[[Assignment], Refusal | None] = lambda _: None,
) -> Situation:
    return Situation(
        document=wanted,
        attempts=attempts,
        forgotten=frozenset((each, 1) for each in forgotten),
        broke=frozenset((each, 1) for each in broke),
        running=(running, 1) if running else None,
        pausing=pausing,
        may_start=may_start,
        late=frozenset((each, 1) for each in late),
        unheard=frozenset((each, 1) for each in unheard),
        judge=judge,
    )


def test_without_a_document_nothing_happens() -> None:
    assert reconcile(situation(None, attempt("a"), attempt("b", Phase.RUNNING), running="b")) == []


def test_new_assignments_are_taken_on_in_the_order_of_the_document() -> None:
    a, b = assignment("a"), assignment("b")
    assert reconcile(situation(document(1, b, a))) == [TakeOn(b), TakeOn(a)]


def test_an_assignment_that_must_be_refused_is_refused() -> None:
    bad = Refusal("INVALID_TASK", "no")
    assert reconcile(situation(document(1, assignment("a")), judge=lambda _: bad)) == [Refuse(assignment("a"), bad)]


def test_the_first_accepted_one_of_the_document_starts() -> None:
    a, b = attempt("a"), attempt("b")
    assert reconcile(situation(document(1, assignment("b"), assignment("a")), a, b)) == [Start(b)]


def test_nothing_starts_while_something_runs() -> None:
    running = attempt("a", Phase.RUNNING)
    wanted = document(1, assignment("a"), assignment("b"))
    assert reconcile(situation(wanted, running, attempt("b"), running="a")) == []


def test_nothing_starts_before_it_may() -> None:
    assert reconcile(situation(document(1, assignment("a")), attempt("a"), may_start=False)) == []


def test_what_has_run_or_was_forgotten_never_starts_again() -> None:
    wanted = document(1, assignment("a"), assignment("b"), assignment("c"))
    ended = attempt("a", Phase.ENDED)
    running = attempt("c", Phase.RUNNING)
    assert reconcile(situation(wanted, ended, running, running="c", forgotten=["b"])) == []


def test_a_new_attempt_at_an_ended_execution_is_taken_on() -> None:
    again = assignment("a", attempt=2)
    assert reconcile(situation(document(1, again), attempt("a", Phase.ENDED))) == [TakeOn(again)]


def test_an_assignment_that_stands_twice_in_a_document_is_taken_on_once() -> None:
    assert reconcile(situation(document(1, assignment("a"), assignment("a")))) == [TakeOn(assignment("a"))]


def test_a_cancelled_one_that_runs_is_stopped() -> None:
    running = attempt("a", Phase.RUNNING)
    wanted = document(1, assignment("a", wanted=Wanted.CANCEL))
    assert reconcile(situation(wanted, running, running="a")) == [CancelRunning(ref("a"), CANCEL_WANTED)]


def test_a_cancel_bears_the_words_of_who_asked_for_it() -> None:
    running = attempt("a", Phase.RUNNING)
    wanted = document(1, assignment("a", wanted=Wanted.CANCEL, reason="wrong price"))
    assert reconcile(situation(wanted, running, running="a")) == [CancelRunning(ref("a"), "wrong price")]


def test_a_cancelled_one_that_never_began_is_answered_as_cancelled() -> None:
    wanted = document(1, assignment("a", wanted=Wanted.CANCEL))
    assert reconcile(situation(wanted, attempt("a"))) == [AnswerCancelled(ref("a"), CANCEL_WANTED)]


def test_one_that_is_cancelled_unseen_is_taken_on_and_then_answered() -> None:
    wanted = document(1, assignment("a", wanted=Wanted.CANCEL))
    assert reconcile(situation(wanted)) == [TakeOn(assignment("a", wanted=Wanted.CANCEL))]


def test_one_that_is_just_beginning_is_stopped_rather_than_answered_as_never_begun() -> None:
    wanted = document(1, assignment("a", wanted=Wanted.CANCEL))
    assert reconcile(situation(wanted, attempt("a"), running="a")) == [CancelRunning(ref("a"), CANCEL_WANTED)]


def test_what_is_no_longer_assigned_is_given_up() -> None:
    waiting, running = attempt("a"), attempt("b", Phase.RUNNING)
    assert reconcile(situation(document(1), waiting, running, running="b")) == [
        AnswerCancelled(ref("a"), NOT_ASSIGNED),
        CancelRunning(ref("b"), NOT_ASSIGNED),
    ]


def test_an_accepted_one_whose_time_to_start_has_passed_is_refused() -> None:
    wanted = document(1, assignment("a"), assignment("b"))
    assert reconcile(situation(wanted, attempt("a"), attempt("b"), late=["a"])) == [
        Expire(ref("a")),
        Start(attempt("b")),
    ]


def test_a_limit_on_the_start_does_not_touch_what_runs() -> None:
    running = attempt("a", Phase.RUNNING)
    assert reconcile(situation(document(1, assignment("a")), running, running="a", late=["a"])) == []


def test_one_that_an_earlier_process_began_goes_on_before_anything_else_starts() -> None:
    broken = attempt("b", Phase.RUNNING)
    wanted = document(1, assignment("a"), assignment("b"))
    assert reconcile(situation(wanted, attempt("a"), broken)) == [Start(broken)]
    assert reconcile(situation(wanted, attempt("a"), broken, may_start=False)) == []


def test_one_that_broke_off_waits_for_a_document() -> None:
    assert reconcile(situation(None, attempt("a", Phase.RUNNING))) == []


@pytest.mark.parametrize(("trail_length", "crashes"), [(None, 0), (0, 0), (1, MAX_CRASHES)])
def test_one_that_cannot_be_gone_on_with_is_ended_before_anything_starts(
    trail_length: int | None, crashes: int
) -> None:
    broken = replace(attempt("a", Phase.RUNNING), trail_length=trail_length, crashes=crashes)
    wanted = document(1, assignment("a"), assignment("b"))
    assert reconcile(situation(wanted, broken, attempt("b"))) == [EndInterrupted(broken)]


def test_one_that_broke_by_a_defect_of_this_process_is_not_gone_on_with() -> None:
    broken = attempt("a", Phase.RUNNING)
    assert reconcile(situation(document(1, assignment("a")), broken, broke=["a"])) == [EndInterrupted(broken)]


def test_one_that_broke_off_and_is_not_wanted_any_more_is_ended_with_the_reason() -> None:
    broken = attempt("a", Phase.RUNNING)
    assert reconcile(situation(document(1), broken)) == [EndInterrupted(broken, NOT_ASSIGNED)]


def test_recorded_ends_are_forgotten() -> None:
    ended = attempt("a", Phase.ENDED)
    assert reconcile(situation(document(2, recorded=[ref("a")]), ended)) == [Forget((ref("a"),))]


def test_a_receipt_for_what_has_not_ended_here_is_no_reason_to_forget_it() -> None:
    running = attempt("a", Phase.RUNNING)
    assert reconcile(situation(document(2, recorded=[ref("a")]), running, running="a")) == []


def test_a_result_that_nobody_recorded_is_sent_again() -> None:
    ended = attempt("a", Phase.ENDED)
    assert reconcile(situation(document(2), ended, unheard=["a"])) == [ReportAgain(ended)]


_IDS = st.sampled_from(["a", "b", "c", "d"])
_ASSIGNMENTS = st.lists(
    st.builds(assignment, _IDS, attempt=st.integers(1, 2), wanted=st.sampled_from(list(Wanted))), max_size=5
)
_ATTEMPTS = st.lists(
    st.builds(attempt, _IDS, st.sampled_from(list(Phase)), number=st.integers(1, 2)),
    max_size=5,
    unique_by=lambda each: key(each.ref),
)


@given(
    assigned=_ASSIGNMENTS,
    receipts=st.lists(st.builds(ref, _IDS, st.integers(1, 2)), max_size=3),
    attempts=_ATTEMPTS,
    data=st.data(),
)
def test_whatever_the_situation_at_most_one_attempt_starts_and_nothing_begins_twice(
    assigned: list[Assignment], receipts: list[object], attempts: list[Attempt], data: st.DataObject
) -> None:
    names: list[Key] = [key(each.ref) for each in attempts]
    running = data.draw(st.sampled_from([None, *names]))
    wanted = DesiredState.model_validate({"agent": "phone-01", "generation": 1, "executions": assigned})
    decided = reconcile(
        Situation(
            document=wanted,
            attempts=attempts,
            forgotten=frozenset(),
            running=running,
            pausing=data.draw(st.booleans()),
            broke=frozenset(data.draw(st.sets(st.sampled_from(names))) if names else set()),
            may_start=True,
            late=frozenset(data.draw(st.sets(st.sampled_from(names))) if names else set()),
            unheard=frozenset(),
            judge=lambda _: None,
        )
    )
    starts = [action for action in decided if isinstance(action, Start)]
    taken = [key(action.assignment) for action in decided if isinstance(action, TakeOn)]
    assert len(starts) <= (0 if running else 1)
    assert all(start.attempt.phase is not Phase.ENDED for start in starts)
    assert len(taken) == len(set(taken))
    assert not set(taken) & set(names)
    assert not starts or decided[-1] == starts[0]
