"""Cancelling, deadlines and what heartbeats say about documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.deadlines import RUN_MARGIN, START_GRACE
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.window import Document
from droidfleet_controller.store import executions, texts
from droidfleet_shared.bus.messages import WINDOW, Wanted
from droidfleet_shared.errors import NotFoundError
from droidfleet_shared.protocol.codes import StepCode
from support.controller import document
from unit.controller.builders import beat, execution
from unit.controller.dispatching import HEARTBEAT_S, Dispatch, dispatching
from unit.controller.said import accepted, finished, rejected, started

S = ExecutionState
HOUR_S = 3_600.0


async def begun(dispatch: Dispatch) -> str:
    return (await dispatch.run("phone-01")).executions[0].execution_id


async def assigned_within(dispatch: Dispatch, *, seconds: float) -> str:
    """An execution with a time to be taken on, as rollouts make them."""
    now = dispatch.clock.now()
    expires = now + timedelta(hours=1)
    fresh = replace(execution(S.QUEUED, sha256="", add_name=True), accept_within_s=seconds, check_at=expires)

    def assign_it(connection: Connection) -> tuple[Document, ...]:
        text = replace(fresh.text, sha256=texts.keep(connection, document()))
        assigned = assign.refresh(connection, ["phone-01"], now=now, fresh=[replace(fresh, text=text)])
        executions.add(connection, assigned.fresh)
        return assigned.documents

    dispatch.publisher.submit(await dispatch.database.run(assign_it))
    return fresh.execution_id


async def test_a_queued_execution_is_cancelled_at_once(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch) for _ in range(WINDOW + 1)]
        ended = await dispatch.cancels.cancel(ids[-1], reason="not needed", actor="test")
        assert (ended.state, ended.reason) == (S.CANCELLED, "CANCEL_REQUESTED: not needed")
        assert [event.kind for event in await dispatch.log(execution_id=ids[-1])] == [
            "ExecutionCreated",
            "ExecutionCancelled",
        ]


async def test_a_running_execution_is_cancelled_by_its_agent(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine))
        asked = await dispatch.cancels.cancel(mine, reason="", actor="test")
        assert (asked.state, asked.cancel_requested) == (S.RUNNING, True)
        assert dispatch.document().executions[0].wanted is Wanted.CANCEL
        await dispatch.deliver(finished(mine, code=StepCode.CANCELLED))
        assert (await dispatch.get(mine)).state is S.CANCELLED


async def test_cancelling_again_or_after_the_end_changes_nothing(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        first = await dispatch.cancels.cancel(mine, reason="a", actor="test")
        assert await dispatch.cancels.cancel(mine, reason="b", actor="test") == first
        await dispatch.deliver(finished(mine))
        ended = await dispatch.cancels.cancel(mine, reason="c", actor="test")
        assert ended.state is S.SUCCEEDED
        kinds = [event.kind for event in await dispatch.log(execution_id=mine)]
        assert kinds.count("CancelRequested") == 1


async def test_cancelling_what_does_not_exist_is_not_found(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(NotFoundError) as caught:
            await dispatch.cancels.cancel("x-none", reason="", actor="test")
        assert caught.value.code == "EXECUTION_NOT_FOUND"


async def test_an_execution_that_is_cancelled_twice_is_counted_once(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch) for _ in range(WINDOW + 1)]
        for _ in range(2):
            await dispatch.cancels.cancel(ids[-1], reason="", actor="test")
        counted = dispatch.metrics.registry.get_sample_value("droidfleet_executions_total", {"result": "cancelled"})
        assert counted == 1


async def test_a_queued_execution_expires_once(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch) for _ in range(WINDOW + 1)]
        dispatch.clock.advance(HOUR_S)
        await dispatch.sweeper.sweep()
        await dispatch.sweeper.sweep()
        ended = await dispatch.get(ids[-1])
        assert (ended.state, ended.reason.split(":")[0]) == (S.EXPIRED, "NOT_STARTED_IN_TIME")
        kinds = [event.kind for event in await dispatch.log(execution_id=ids[-1])]
        assert kinds == ["ExecutionCreated", "ExecutionExpired"]


async def test_an_assigned_execution_is_withdrawn_then_lost(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        dispatch.clock.advance(HOUR_S)
        generation = dispatch.document().generation
        await dispatch.sweeper.sweep()
        assert dispatch.document().generation == generation + 1
        assert dispatch.document().executions[0].start_within_s == 0
        assert (await dispatch.get(mine)).state is S.ASSIGNED
        dispatch.clock.advance(START_GRACE.total_seconds())
        await dispatch.sweeper.sweep()
        ended = await dispatch.get(mine)
        assert (ended.state, ended.reason.split(":")[0]) == (S.LOST, "AGENT_SILENT")
        assert dispatch.document().executions == ()


async def test_an_execution_that_nobody_takes_on_in_its_time_is_withdrawn_then_lost(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await assigned_within(dispatch, seconds=90)
        dispatch.clock.advance(89)
        await dispatch.sweeper.sweep()
        assert dispatch.document().executions[0].start_within_s == HOUR_S - 89
        dispatch.clock.advance(1)
        await dispatch.sweeper.sweep()
        assert dispatch.document().executions[0].start_within_s == 0
        dispatch.clock.advance(START_GRACE.total_seconds())
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.LOST


async def test_an_agent_that_hears_of_it_too_late_refuses_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await assigned_within(dispatch, seconds=90)
        dispatch.clock.advance(90)
        await dispatch.sweeper.sweep()
        await dispatch.deliver(rejected(mine, "START_EXPIRED"))
        assert (await dispatch.get(mine)).state is S.EXPIRED


async def test_an_execution_that_was_taken_on_in_time_has_until_its_expiry_to_start(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await assigned_within(dispatch, seconds=90)
        await dispatch.deliver(accepted(mine))
        dispatch.clock.advance(HOUR_S / 2)
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.ACCEPTED


async def test_a_running_execution_of_a_silent_agent_is_lost_and_found(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine))
        bound = (await dispatch.get(mine)).bound_s
        dispatch.clock.advance(bound + RUN_MARGIN.total_seconds())
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.LOST
        await dispatch.deliver(finished(mine))
        assert (await dispatch.get(mine)).state is S.SUCCEEDED


async def test_a_running_execution_of_a_heard_agent_is_not_lost(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine))
        dispatch.clock.advance((await dispatch.get(mine)).bound_s + RUN_MARGIN.total_seconds())
        await dispatch.heard(beat())
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.RUNNING


async def test_nothing_is_lost_while_the_controller_itself_cannot_hear(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine))
        dispatch.bus.disconnect()
        dispatch.clock.advance((await dispatch.get(mine)).bound_s + RUN_MARGIN.total_seconds())
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.RUNNING
        await dispatch.bus.reconnect()
        await dispatch.registry.connected()
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.RUNNING
        dispatch.clock.advance(3 * HEARTBEAT_S)
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).state is S.LOST


async def test_a_place_that_expires_is_not_kept_from_the_next_in_line(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for _ in range(WINDOW):
            await begun(dispatch)
        later = (await dispatch.run("phone-01", expires_in=timedelta(hours=5))).executions[0].execution_id
        dispatch.clock.advance(HOUR_S)
        await dispatch.sweeper.sweep()
        dispatch.clock.advance(START_GRACE.total_seconds())
        await dispatch.sweeper.sweep()
        assert [each.execution_id for each in dispatch.document().executions] == [later]


async def test_an_agent_that_comes_back_gets_its_times_counted_anew(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await begun(dispatch)
        generation = dispatch.document().generation
        dispatch.clock.advance(HOUR_S / 2)
        await dispatch.heard(beat())
        await dispatch.sweeper.sweep()
        assert dispatch.document().generation == generation + 1


async def test_an_agent_that_the_database_never_wrote_to_gets_an_empty_document(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        dispatch.clock.advance(3 * HEARTBEAT_S)
        await dispatch.heard(beat())
        await dispatch.sweeper.sweep()
        assert (dispatch.document().generation, dispatch.document().executions) == (1, ())


async def test_a_heartbeat_as_usual_publishes_nothing(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await begun(dispatch)
        published = len(dispatch.publisher.submitted)
        await dispatch.heard(beat(generation=1))
        await dispatch.sweeper.sweep()
        assert len(dispatch.publisher.submitted) == published


async def test_what_an_agent_applied_of_another_database_settles_no_receipt_and_raises_nothing(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine), finished(mine))
        generation = dispatch.document().generation
        await dispatch.heard(beat(epoch="db-other", generation=500))
        await dispatch.sweeper.sweep()
        await begun(dispatch)
        assert dispatch.document().generation == generation + 1
        assert [each.execution_id for each in dispatch.document().recorded] == [mine]


async def test_an_agent_that_has_seen_a_newer_document_gets_one_newer_still(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.heard(beat(generation=500))
        await dispatch.sweeper.sweep()
        assert dispatch.document().generation > 500
