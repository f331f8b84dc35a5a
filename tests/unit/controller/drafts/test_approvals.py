"""What the guard withholds is done when a person allows it, once and in time; else it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_designer.ports import Answered
from droidfleet_shared.errors import PreconditionError
from support.clock import HandClock, settle
from support.exploration_logs import ENDED, ENTRIES, Bench, bench_of

ASKED = next(entry for entry in ENTRIES if entry.kind == "approval_asked")
LONG_S = 600.0


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def approvals() -> Approvals:
    return Approvals()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_of(tmp_path) as bench:
        yield bench


@asynccontextmanager
async def waiting(
    approvals: Approvals, clock: HandClock, approval_id: str = "a-1"
) -> AsyncIterator[asyncio.Task[Answered]]:
    """An exploration that waits."""
    async with asyncio.TaskGroup() as group:
        approve = approvals.of("d-1").approve(approval_id, deadline=clock.deadline(LONG_S))
        task = group.create_task(approve, name="exploration")
        await settle()
        yield task
        task.cancel()


def refused(approvals: Approvals, approval_id: str = "a-1", *, draft_id: str = "d-1") -> None:
    with pytest.raises(PreconditionError, match="APPROVAL_OVER"):
        approvals.answer(draft_id, approval_id, allowed=True, actor="Ada")


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_person_answers(approvals: Approvals, clock: HandClock, allowed: bool) -> None:
    async with waiting(approvals, clock) as task:
        approvals.answer("d-1", "a-1", allowed=allowed, actor="Ada")
        assert await task == Answered(allowed=allowed, by="Ada")


async def test_an_answer_that_comes_before_anybody_waits_counts(approvals: Approvals, clock: HandClock) -> None:
    approvals.asked("d-1", "a-1")
    approvals.answer("d-1", "a-1", allowed=True, actor="Ada")
    assert (await approvals.of("d-1").approve("a-1", deadline=clock.deadline(LONG_S))).allowed


async def test_without_an_answer_in_time_it_is_not_allowed(approvals: Approvals, clock: HandClock) -> None:
    async with waiting(approvals, clock) as task:
        await clock.move(LONG_S)
        assert await task == Answered(allowed=False)


async def test_it_is_waited_for_until_its_time_is_over(approvals: Approvals, clock: HandClock) -> None:
    async with waiting(approvals, clock) as task:
        await clock.move(LONG_S - 1)
        assert not task.done()


async def test_the_first_answer_counts(approvals: Approvals, clock: HandClock) -> None:
    async with waiting(approvals, clock) as task:
        approvals.answer("d-1", "a-1", allowed=False, actor="Ada")
        refused(approvals)
        assert not (await task).allowed


async def test_an_answer_that_comes_too_late_is_refused(approvals: Approvals, clock: HandClock) -> None:
    async with waiting(approvals, clock):
        await clock.move(LONG_S)
        refused(approvals)


async def test_an_answer_is_refused_when_the_exploration_waits_no_more(approvals: Approvals, clock: HandClock) -> None:
    async with waiting(approvals, clock) as task:
        task.cancel()
        await settle()
        refused(approvals)


@pytest.mark.parametrize(("draft_id", "approval_id"), [("d-1", "a-2"), ("d-2", "a-1")])
async def test_an_answer_to_something_else_is_refused(
    approvals: Approvals, clock: HandClock, draft_id: str, approval_id: str
) -> None:
    async with waiting(approvals, clock):
        refused(approvals, approval_id, draft_id=draft_id)


async def test_a_question_takes_answers_from_its_entry_in_the_log_on(bench: Bench) -> None:
    await bench.logs().of("d-1").append(ASKED)
    bench.approvals.answer("d-1", "a-1", allowed=True, actor="Ada")
    assert (await bench.approvals.of("d-1").approve("a-1", deadline=bench.clock.deadline(LONG_S))).allowed


async def test_an_exploration_that_ended_takes_no_answers(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    await log.append(ASKED)
    await log.append(ENDED)
    refused(bench.approvals)


async def test_after_a_restart_nobody_waits(bench: Bench) -> None:
    await bench.logs().of("d-1").append(ASKED)
    refused(Approvals())
