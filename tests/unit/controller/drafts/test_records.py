"""Drafts in the database: whole, compared before they change, and found again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from droidfleet_controller.drafts.record import (
    MAX_TRIALS,
    Accepted,
    DraftIssue,
    DraftState,
    StoredDraft,
    Trial,
    found,
    tried,
)
from droidfleet_controller.store import drafts
from droidfleet_shared.protocol.codes import StepCode, ValidationCode
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import TaskResult
from support.exploration_logs import NOW, Bench, bench_of, stored_draft

TRIAL = Trial(
    at=NOW,
    version=3,
    withheld=("send",),
    result=TaskResult(
        task_id="buy-tea",
        revision=2,
        agent_name="phone-01",
        execution_id="x-1",
        started_at=NOW,
        duration_ms=5,
        successful=False,
        code=StepCode.TARGET_NOT_FOUND,
        message="no",
    ),
    execution_id="x-1",
    request_id="r-1",
)
FULL = replace(
    stored_draft("d-2"),
    state=DraftState.ACCEPTED,
    version=7,
    text="{}",
    issues=(DraftIssue(path="/task/steps/0", code="NO_EVIDENCE", message="found nothing", hint="Look again."),),
    code="C",
    message="m",
    spent_tokens=12,
    spent_money=0.5,
    currency="EUR",
    last_sequence=4,
    entry_bytes=99,
    pending_approval_id="a-1",
    accepted=Accepted(task_id="buy-tea", revision=2, schedule="tea", rollout_id="r-9", request_id="q"),
    trials=(TRIAL,),
)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_of(tmp_path) as bench:
        yield bench


async def page(bench: Bench, *states: DraftState, before: int | None = None, limit: int = 10) -> list[str]:
    rows = await bench.database.run(
        lambda connection: drafts.page(connection, states=states, before=before, limit=limit)
    )
    return [draft.draft_id for _, draft in rows]


async def test_a_draft_is_read_as_it_was_written(bench: Bench) -> None:
    await bench.add(FULL)
    assert await bench.draft("d-2") == FULL


async def test_a_changed_draft_is_read_as_it_was_changed(bench: Bench) -> None:
    changed = replace(FULL, draft_id="d-1", request_id="request-d-1")
    started = await bench.draft()
    changed = replace(changed, currency=started.currency)
    assert await bench.database.run(lambda connection: drafts.replace(connection, changed, version=1))
    assert await bench.draft() == changed


async def test_a_draft_that_changed_meanwhile_is_left_as_it_is(bench: Bench) -> None:
    before = await bench.draft()
    changed = replace(before, version=2, text="{}")
    assert not await bench.database.run(lambda connection: drafts.replace(connection, changed, version=9))
    assert await bench.draft() == before


async def test_a_request_begins_one_draft(bench: Bench) -> None:
    with pytest.raises(IntegrityError):
        await bench.add(stored_draft("d-2", request_id="request-d-1"))


async def test_a_draft_is_found_by_its_request(bench: Bench) -> None:
    same = await bench.database.run(lambda connection: drafts.by_request(connection, "request-d-1"))
    assert same == await bench.draft()


async def test_nothing_is_found_by_another_request(bench: Bench) -> None:
    assert await bench.database.run(lambda connection: drafts.by_request(connection, "another")) is None


async def test_the_drafts_to_go_on_with_are_those_that_explore(bench: Bench) -> None:
    await bench.add(FULL, stored_draft("d-3"))
    open_ones = await bench.database.run(drafts.exploring)
    assert [draft.draft_id for draft in open_ones] == ["d-1", "d-3"]


async def test_drafts_are_listed_newest_first(bench: Bench) -> None:
    await bench.add(FULL, stored_draft("d-3"))
    assert await page(bench) == ["d-3", "d-2", "d-1"]


async def test_a_page_goes_on_where_the_one_before_ended(bench: Bench) -> None:
    await bench.add(FULL, stored_draft("d-3"))
    [_, (number, _)] = await bench.database.run(
        lambda connection: drafts.page(connection, states=(), before=None, limit=2)
    )
    assert await page(bench, before=number) == ["d-1"]


async def test_drafts_of_some_states_are_listed(bench: Bench) -> None:
    await bench.add(FULL)
    assert await page(bench, DraftState.ACCEPTED, DraftState.READY) == ["d-2"]


async def test_a_list_leaves_out_texts_and_trials(bench: Bench) -> None:
    await bench.add(FULL)
    [(_, listed)] = await bench.database.run(
        lambda connection: drafts.page(connection, states=(DraftState.ACCEPTED,), before=None, limit=1)
    )
    assert listed == replace(FULL, text="", trials=())


def test_the_oldest_trial_goes_when_there_are_too_many() -> None:
    draft: StoredDraft = stored_draft()
    for version in range(MAX_TRIALS + 1):
        draft = tried(draft, TRIAL.model_copy(update={"version": version}))
    assert [trial.version for trial in draft.trials] == list(range(1, MAX_TRIALS + 1))


def test_an_issue_is_kept_with_all_that_it_says() -> None:
    issue = Issue("/task", ValidationCode.BAD_JSON, "message", "hint")
    assert found([issue]) == (DraftIssue(path="/task", code="BAD_JSON", message="message", hint="hint"),)
