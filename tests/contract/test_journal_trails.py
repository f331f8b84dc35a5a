"""What every journal does with the trails of attempts, past its bounds in bytes, and where a call fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from droidfleet_agent.journal.attempt import Attempt, IllegalMoveError, OpenStep, Phase
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Journal, JournalFullError, Limits
from droidfleet_agent.journal.sqlite import JournalUnusableError, SqliteJournal
from support.journals import (
    BEGAN,
    A,
    B,
    FailingJournal,
    Open,
    accepted,
    artifact,
    begun,
    continued,
    decision,
    ended,
    finished,
    paused,
    resumed,
    started,
    step_end,
    step_finished,
    step_started,
    take_on,
)


async def _only(journal: Journal) -> Attempt:
    [attempt] = await journal.attempts()
    return attempt


async def test_a_trail_is_kept_in_the_order_of_writing_beside_its_events(journal: Journal) -> None:
    await begun(journal, A)
    await journal.note(A, decision(1))
    await journal.append(A, step_started(A))
    await journal.append(A, step_finished(A), trail=step_end({"price": "€ 3"}))
    await journal.note(A, decision(2))
    assert list(await journal.trail(A)) == [BEGAN, decision(1), step_end({"price": "€ 3"}), decision(2)]
    assert (await _only(journal)).trail_length == 4


async def test_a_note_is_no_event(journal: Journal) -> None:
    await begun(journal, A)
    before, waiting = (await _only(journal)).sequence, await journal.outbox(10)
    await journal.note(A, decision())
    assert ((await _only(journal)).sequence, await journal.outbox(10)) == (before, waiting)


async def test_trails_of_two_attempts_are_two(journal: Journal) -> None:
    await begun(journal, A)
    await take_on(journal, B)
    await journal.note(A, decision(1))
    assert list(await journal.trail(A)) == [BEGAN, decision(1)]
    assert list(await journal.trail(B)) == []


async def test_a_trail_goes_with_the_end_of_its_attempt(journal: Journal) -> None:
    await begun(journal, A)
    await journal.note(A, decision())
    await journal.append(A, finished(A))
    assert list(await journal.trail(A)) == []


async def test_only_what_runs_has_a_trail(journal: Journal) -> None:
    await take_on(journal, A)
    await ended(journal, B)
    for ref in (A, B):
        with pytest.raises(IllegalMoveError):
            await journal.note(ref, decision())
    assert [*await journal.trail(A), *await journal.trail(B)] == []


async def test_what_is_refused_leaves_no_entry(journal: Journal) -> None:
    await begun(journal, A)
    with pytest.raises(IllegalMoveError):
        await journal.append(A, started(A), trail=decision())
    assert (list(await journal.trail(A)), (await _only(journal)).trail_length) == ([BEGAN], 1)


async def test_a_trail_past_its_bound_is_dropped_whole_and_stays_so(open_journal: Open) -> None:
    journal = open_journal(Limits(trail=2))
    await begun(journal, A)
    await journal.note(A, decision(1))
    assert (await _only(journal)).trail_length == 2
    await journal.append(A, step_started(A))
    await journal.append(A, step_finished(A), trail=step_end())
    await journal.note(A, decision(2))
    assert (list(await journal.trail(A)), (await _only(journal)).trail_length) == ([], None)
    assert (await _only(journal)).sequence == 4


async def test_who_goes_on_is_counted_and_finds_the_open_step_as_it_was(journal: Journal) -> None:
    await begun(journal, A)
    await journal.append(A, step_started(A))
    await journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1)
    await journal.append(A, resumed(A, 1))
    await journal.append(A, resumed(A, 2))
    attempt = await _only(journal)
    assert (attempt.phase, attempt.restarts) == (Phase.RUNNING, 2)
    assert attempt.open_step == OpenStep("s1", "/steps/0", dispatched=1)


async def test_going_on_with_what_was_left_in_order_is_no_crash(journal: Journal) -> None:
    await begun(journal, A)
    await journal.leave(A)
    await journal.append(A, resumed(A, 1))
    attempt = await _only(journal)
    assert (attempt.restarts, attempt.crashes, attempt.left) == (1, 0, False)
    await journal.append(A, resumed(A, 2))
    attempt = await _only(journal)
    assert (attempt.restarts, attempt.crashes) == (2, 1)


async def test_only_what_runs_can_be_left(journal: Journal) -> None:
    await take_on(journal, A)
    await ended(journal, B)
    for ref in (A, B):
        with pytest.raises(IllegalMoveError):
            await journal.leave(ref)


async def test_only_what_began_is_gone_on_with(journal: Journal) -> None:
    await take_on(journal, A)
    await ended(journal, B)
    for ref in (A, B):
        with pytest.raises(IllegalMoveError):
            await journal.append(ref, resumed(ref))


async def test_what_runs_is_held_and_goes_on_in_turns(journal: Journal) -> None:
    await begun(journal, A)
    with pytest.raises(IllegalMoveError):
        await journal.append(A, continued(A))
    await journal.append(A, paused(A))
    with pytest.raises(IllegalMoveError):
        await journal.append(A, paused(A))
    assert (await _only(journal)).paused
    await journal.append(A, continued(A))
    assert not (await _only(journal)).paused


async def test_past_its_bound_in_bytes_nothing_is_taken_on_until_something_is_forgotten(open_journal: Open) -> None:
    journal = open_journal(Limits(kept_bytes=1_000))
    await journal.take_on(Attempt(ref=A, task="x" * 1_000, start_by=None), accepted(A))
    with pytest.raises(JournalFullError):
        await take_on(journal, B)
    await journal.append(A, started(A))
    await journal.append(A, finished(A))
    with pytest.raises(JournalFullError):
        await take_on(journal, B)
    await journal.forget([A])
    await take_on(journal, B)


async def test_what_ended_an_attempt_counts_among_the_kept_bytes(open_journal: Open) -> None:
    journal = open_journal(Limits(kept_bytes=100))
    await ended(journal, A)
    with pytest.raises(JournalFullError):
        await take_on(journal, B)


async def test_progress_past_its_bound_in_bytes_goes_the_oldest_first(open_journal: Open) -> None:
    journal = open_journal(Limits(progress_bytes=600))
    await begun(journal, A)
    for number in range(6):
        await journal.append(A, step_started(A, f"s{number}", f"/steps/{number}"))
    waiting = [event for event in await journal.outbox(100) if event.kind == "StepStarted"]
    assert sum(len(event.encode()) for event in waiting) <= 600
    assert [event.sequence for event in waiting] == list(range(9 - len(waiting), 9))
    assert (await _only(journal)).unsent == 6 - len(waiting) > 0


async def test_artifacts_take_no_room_from_progress(open_journal: Open) -> None:
    journal = open_journal(Limits(progress_bytes=600, artifact_bytes=10_000))
    await begun(journal, A)
    await journal.append(A, step_started(A))
    await journal.append(A, artifact(A, "A" * 5_000))
    assert (await _only(journal)).unsent == 0


# A call that raised has changed nothing, and can be made again.


async def _sent(journal: Journal) -> None:
    await journal.sent(await journal.outbox(1))


CALLS: dict[str, Callable[[Journal], Awaitable[object]]] = {
    "take_on": lambda journal: take_on(journal, B),
    "append": lambda journal: journal.append(A, step_finished(A), trail=step_end()),
    "dispatching": lambda journal: journal.dispatching(A, step_id="s1", path="/steps/0", ordinal=1),
    "note": lambda journal: journal.note(A, decision()),
    "leave": lambda journal: journal.leave(A),
    "sent": _sent,
    "forget": lambda journal: journal.forget([A]),
}


async def _content(journal: Journal) -> tuple[object, ...]:
    return (
        await journal.attempts(),
        await journal.outbox(100),
        await journal.trail(A),
        await journal.forgotten(A),
        await journal.forgotten(B),
    )


async def _prepared(journal: Journal, call: str) -> None:
    await begun(journal, A)
    await journal.append(A, step_started(A))
    if call == "forget":
        await journal.append(A, finished(A))


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_that_failed_has_changed_nothing_and_can_be_made_again(call: str) -> None:
    failing = FailingJournal(MemoryJournal())
    await _prepared(failing, call)
    before = await _content(failing)
    failing.fails = lambda name: name == call
    with pytest.raises(JournalUnusableError):
        await CALLS[call](failing)
    failing.fails = lambda _name: False
    assert await _content(failing) == before
    await CALLS[call](failing)
    assert await _content(failing) != before


@pytest.mark.parametrize("call", ["take_on", "append", "dispatching", "note", "leave"])
async def test_a_call_that_the_disk_refuses_has_changed_nothing_when_it_is_opened_again(
    call: str, tmp_path: Path
) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    await _prepared(journal, call)
    before = await _content(journal)
    journal._connection.execute("PRAGMA query_only = ON").close()
    with pytest.raises(JournalUnusableError):
        await CALLS[call](journal)
    await journal.close()
    again = SqliteJournal(tmp_path / "journal")
    assert await _content(again) == before
    await CALLS[call](again)
    assert await _content(again) != before
    await again.close()
