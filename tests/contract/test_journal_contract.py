"""What every journal does, but for its trails (`test_journal_trails`)."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest

from droidfleet_agent.journal.attempt import Attempt, IllegalMoveError, OpenStep, Phase
from droidfleet_agent.journal.port import Journal, JournalFullError, Limits
from droidfleet_shared.bus.messages import ExecutionFinished, ExecutionRef
from droidfleet_shared.clock import Uptime
from support.journals import (
    NOW,
    A,
    B,
    Open,
    accepted,
    artifact,
    ended,
    finished,
    rejected,
    started,
    step_finished,
    step_started,
    take_on,
)


async def _only(journal: Journal) -> Attempt:
    [attempt] = await journal.attempts()
    return attempt


async def test_attempts_come_back_in_the_order_in_which_they_were_taken_on(journal: Journal) -> None:
    await take_on(journal, B)
    await take_on(journal, A)
    assert [(attempt.ref, attempt.phase) for attempt in await journal.attempts()] == [
        (B, Phase.ACCEPTED),
        (A, Phase.ACCEPTED),
    ]


async def test_task_and_latest_start_are_kept(journal: Journal) -> None:
    uptime = Uptime("boot-1", 17.5)
    await journal.take_on(Attempt(A, '{"taskId": "ü"}', NOW, start_by_uptime=uptime), accepted(A))
    kept = await _only(journal)
    assert (kept.task, kept.start_by, kept.start_by_uptime) == ('{"taskId": "ü"}', NOW, uptime)


async def test_events_are_numbered_from_one_without_gaps_within_each_attempt(journal: Journal) -> None:
    first = await take_on(journal, A)
    other = await take_on(journal, B)
    second = await journal.append(A, started(A))
    third = await journal.append(A, step_started(A))
    assert [event.sequence for event in (first, second, third, other)] == [1, 2, 3, 1]
    assert [attempt.sequence for attempt in await journal.attempts()] == [3, 1]


async def test_an_attempt_moves_from_accepted_over_running_to_ended(journal: Journal) -> None:
    await take_on(journal, A)
    await journal.append(A, started(A))
    assert (await _only(journal)).phase is Phase.RUNNING
    last = await journal.append(A, finished(A))
    ended = await _only(journal)
    assert (ended.phase, ended.last) == (Phase.ENDED, last)


async def test_an_attempt_begins_only_once(journal: Journal) -> None:
    await take_on(journal, A)
    await journal.append(A, started(A))
    with pytest.raises(IllegalMoveError):
        await journal.append(A, started(A))


async def test_an_attempt_is_taken_on_only_once(journal: Journal) -> None:
    await take_on(journal, A)
    with pytest.raises(IllegalMoveError):
        await take_on(journal, A)


async def test_a_forgotten_attempt_is_never_taken_on_again(journal: Journal) -> None:
    await ended(journal, A)
    await journal.forget([A])
    assert await journal.forgotten(A)
    assert not await journal.forgotten(B)
    assert list(await journal.attempts()) == []
    with pytest.raises(IllegalMoveError):
        await take_on(journal, A)


async def test_another_attempt_at_the_same_execution_is_another_attempt(journal: Journal) -> None:
    await ended(journal, A)
    await journal.forget([A])
    await take_on(journal, ExecutionRef(execution_id="a", attempt=2))
    assert (await _only(journal)).ref.attempt == 2


async def test_a_refused_task_ends_with_its_first_event(journal: Journal) -> None:
    last = await journal.take_on(Attempt(ref=A, task="?", start_by=None), rejected(A))
    kept = await _only(journal)
    assert (kept.phase, kept.last) == (Phase.ENDED, last)


async def test_an_accepted_attempt_may_be_refused_later_and_a_running_one_may_not(journal: Journal) -> None:
    await take_on(journal, A)
    await take_on(journal, B)
    await journal.append(B, started(B))
    await journal.append(A, rejected(A))
    with pytest.raises(IllegalMoveError):
        await journal.append(B, rejected(B))


async def test_an_ended_attempt_takes_no_more_events(journal: Journal) -> None:
    await ended(journal, A)
    for make in (started(A), step_started(A), artifact(A), step_finished(A), finished(A), rejected(A)):
        with pytest.raises(IllegalMoveError):
            await journal.append(A, make)


async def test_what_is_refused_changes_nothing(journal: Journal) -> None:
    await take_on(journal, A)
    before, waiting = await journal.attempts(), await journal.outbox(10)
    for call in (
        journal.append(A, step_started(A)),
        journal.append(B, started(B)),
        journal.append(A, started(B)),
        journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1),
        journal.take_on(Attempt(ref=B, task="{}", start_by=None), started(B)),
        journal.take_on(Attempt(ref=B, task="{}", start_by=None), finished(B)),
    ):
        await _refused(call)
    assert (await journal.attempts(), await journal.outbox(10)) == (before, waiting)


async def _refused(call: Awaitable[object]) -> None:
    with pytest.raises(IllegalMoveError):
        await call


async def test_an_announced_action_shows_until_its_step_ends(journal: Journal) -> None:
    await take_on(journal, A)
    await journal.append(A, started(A))
    await journal.append(A, step_started(A))
    assert (await _only(journal)).open_step == OpenStep("s1", "/steps/0", dispatched=0)
    await journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1)
    assert (await _only(journal)).open_step == OpenStep("s1", "/steps/0", dispatched=1)
    await journal.append(A, step_finished(A))
    assert (await _only(journal)).open_step is None


async def test_an_action_is_announced_only_once_and_only_for_the_open_step(journal: Journal) -> None:
    await take_on(journal, A)
    await journal.append(A, started(A))
    await journal.append(A, step_started(A))
    await journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1)
    await _refused(journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1))
    await _refused(journal.dispatching(A, step_id="s2", path="/steps/1", ordinal=1))
    await journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=2)


async def test_events_wait_in_order_until_sent(journal: Journal) -> None:
    events = [await take_on(journal, A), await take_on(journal, B), await journal.append(A, started(A))]
    assert list(await journal.outbox(10)) == events
    assert list(await journal.outbox(2)) == events[:2]
    await journal.sent(events[:2])
    await journal.sent(events[:1])
    assert list(await journal.outbox(10)) == events[2:]


async def test_what_ended_an_attempt_stays_after_it_was_sent(journal: Journal) -> None:
    await ended(journal, A)
    await journal.sent(await journal.outbox(10))
    assert list(await journal.outbox(10)) == []
    assert isinstance((await _only(journal)).last, ExecutionFinished)


async def test_only_ended_attempts_are_forgotten(journal: Journal) -> None:
    await take_on(journal, A)
    await ended(journal, B)
    await journal.forget([A, B, ExecutionRef(execution_id="c", attempt=1)])
    assert (await _only(journal)).ref == A
    assert not await journal.forgotten(A)


async def test_a_full_journal_takes_nothing_on_until_something_is_forgotten(open_journal: Open) -> None:
    journal = open_journal(Limits(attempts=1))
    await ended(journal, A)
    with pytest.raises(JournalFullError):
        await take_on(journal, B)
    await journal.forget([A])
    await take_on(journal, B)


async def test_past_its_bound_the_oldest_progress_goes_and_nothing_else(open_journal: Open) -> None:
    journal = open_journal(Limits(progress=4))
    await take_on(journal, A)
    await journal.append(A, started(A))
    for number in range(5):
        await journal.append(A, step_started(A, f"s{number}", f"/steps/{number}"))
        await journal.append(A, step_finished(A, f"s{number}", f"/steps/{number}"))
    await journal.append(A, finished(A))
    assert [event.sequence for event in await journal.outbox(100)] == [1, 2, 9, 10, 11, 12, 13]


async def test_progress_that_had_to_make_room_is_counted_with_its_attempt(open_journal: Open) -> None:
    journal = open_journal(Limits(progress=2))
    await take_on(journal, A)
    await journal.append(A, started(A))
    for _ in range(3):
        await journal.append(A, step_started(A))
        await journal.append(A, step_finished(A))
    assert (await _only(journal)).unsent == 4


async def test_sent_progress_takes_no_room(open_journal: Open) -> None:
    journal = open_journal(Limits(progress=2))
    await take_on(journal, A)
    await journal.append(A, started(A))
    for _ in range(1_000):
        await journal.append(A, step_started(A))
        await journal.append(A, step_finished(A))
        await journal.sent(await journal.outbox(10))
    assert (await _only(journal)).unsent == 0


async def test_an_artifact_is_kept_within_its_open_step(journal: Journal) -> None:
    await take_on(journal, A)
    with pytest.raises(IllegalMoveError):
        await journal.append(A, artifact(A))
    await journal.append(A, started(A))
    await journal.append(A, step_started(A))
    event = await journal.append(A, artifact(A))
    assert (await journal.outbox(10))[-1] == event
    assert (await _only(journal)).open_step is not None


async def test_an_artifact_that_does_not_fit_is_refused_until_others_are_sent(open_journal: Open) -> None:
    journal = open_journal(Limits(artifact_bytes=400))
    await take_on(journal, A)
    await journal.append(A, started(A))
    await journal.append(A, artifact(A, "A" * 40))
    before = await _only(journal)
    with pytest.raises(JournalFullError):
        await journal.append(A, artifact(A, "A" * 40))
    assert await _only(journal) == before
    await journal.sent(await journal.outbox(10))
    await journal.append(A, artifact(A, "A" * 40))


async def test_names_of_forgotten_attempts_are_bounded(open_journal: Open) -> None:
    journal = open_journal(Limits(forgotten=1))
    for ref in (A, B):
        await ended(journal, ref)
        await journal.forget([ref])
    assert not await journal.forgotten(A)
    assert await journal.forgotten(B)


async def test_closing_twice_is_harmless(journal: Journal) -> None:
    await journal.close()
    await journal.close()
