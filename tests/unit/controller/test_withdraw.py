"""Ending many executions at once: where they wait at once, else by their agents, or fenced so that nothing counts."""

from __future__ import annotations

import json
from pathlib import Path

from sqlalchemy import Connection, text

from droidfleet_controller.dispatch.cancel import Withdrawal, Withdrawn, withdraw
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_shared.bus.messages import WINDOW, ExecutionRef, Wanted
from droidfleet_shared.protocol.codes import StepCode
from unit.controller.builders import beat
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, artifact, finished, rejected, started, step_started

S = ExecutionState


async def begun(dispatch: Dispatch, device: str = "phone-01") -> str:
    return (await dispatch.run(device)).executions[0].execution_id


async def running(dispatch: Dispatch, device: str = "phone-01") -> str:
    mine = await begun(dispatch, device)
    await dispatch.deliver(accepted(mine, agent=device), started(mine, agent=device))
    return mine


async def withdrawn(dispatch: Dispatch, *ids: str, fence: bool = False, reason: str = "not wanted") -> Withdrawn:
    wanted = [Withdrawal(execution_id, reason, fence) for execution_id in ids]
    now = dispatch.clock.now()
    return await dispatch.database.run(
        lambda connection: withdraw(connection, wanted, now=now), after=dispatch.cancels.announce
    )


async def applied(dispatch: Dispatch, *, running: str = "", device: str = "phone-01") -> None:
    """The agent says that it follows its newest document, and what it runs."""
    at = ExecutionRef(execution_id=running, attempt=1) if running else None
    await dispatch.heard(beat(agent=device, generation=dispatch.document(device).generation, running=at))
    await dispatch.sweeper.sweep()


async def test_each_is_ended_where_it_stands(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "phone-01", "phone-02") as dispatch:
        at_work = await running(dispatch, "phone-02")
        waiting = [await begun(dispatch) for _ in range(WINDOW + 1)]
        done = await withdrawn(dispatch, waiting[-1], waiting[0], at_work)
        states = {each.execution_id: (each.state, each.cancel_requested) for each in done.changed}
        assert states == {waiting[-1]: (S.CANCELLED, True), waiting[0]: (S.ASSIGNED, True), at_work: (S.RUNNING, True)}
        assert {each.reason for each in done.changed} == {"CANCEL_REQUESTED: not wanted"}
        assert dispatch.document("phone-01").executions[0].wanted is Wanted.CANCEL
        assert dispatch.document("phone-02").executions[0].wanted is Wanted.CANCEL


async def test_what_cannot_be_withdrawn_is_left_alone(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ended, asked = await begun(dispatch), await begun(dispatch)
        await dispatch.deliver(finished(ended))
        await withdrawn(dispatch, asked)
        assert await withdrawn(dispatch, ended, asked, "x-unknown") == Withdrawn()
        assert (await dispatch.get(ended)).state is S.SUCCEEDED


async def test_one_that_is_named_twice_is_withdrawn_once(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        done = await withdrawn(dispatch, mine, mine, fence=True)
        assert [(each.execution_id, each.attempt) for each in done.changed] == [(mine, 2)]


async def test_a_fenced_one_ends_at_once_and_is_assigned_no_more(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        await withdrawn(dispatch, mine, fence=True, reason="wrong price")
        ended = await dispatch.get(mine)
        assert (ended.state, ended.attempt, ended.reason) == (S.CANCELLED, 2, "ABORTED: wrong price")
        assert (ended.check_at, ended.stopped_at) == (None, None)
        assert dispatch.document().executions == ()


async def test_one_that_is_being_cancelled_can_still_be_fenced(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        await withdrawn(dispatch, mine)
        await withdrawn(dispatch, mine, fence=True)
        assert (await dispatch.get(mine)).state is S.CANCELLED


async def test_what_comes_of_a_fenced_attempt_is_kept_labelled_and_never_counted(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        await withdrawn(dispatch, mine, fence=True)
        before = await dispatch.get(mine)
        await dispatch.deliver(
            step_started(mine, "pay", sequence=3), artifact(mine, b"picture", sequence=4), finished(mine)
        )
        after = await dispatch.get(mine)
        assert (after.state, after.result, after.steps_done, after.updated_at) == (
            before.state,
            None,
            before.steps_done,
            before.updated_at,
        )
        labels = [event.payload for event in await dispatch.log(execution_id=mine) if "FENCED" in event.payload]
        assert len(labels) == 3
        assert await _labels(dispatch) == [(mine, 1, "FENCED")]
        assert dispatch.document().recorded == (ExecutionRef(execution_id=mine, attempt=1),)


async def test_the_end_of_a_fenced_attempt_says_when_it_stopped(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        finishing, refusing = await running(dispatch), await begun(dispatch)
        done = await withdrawn(dispatch, finishing, refusing, fence=True)
        versions = {each.execution_id: each.version for each in done.changed}
        dispatch.clock.advance(3)
        with dispatch.broadcast.watching([finishing]) as watch:
            await dispatch.deliver(finished(finishing), rejected(refusing, "START_EXPIRED"))
            [told] = await watch.take()
        assert (told.stopped_at, told.version) == (dispatch.clock.now(), versions[finishing] + 1)
        assert (await dispatch.get(refusing)).stopped_at == dispatch.clock.now()


async def test_the_first_word_of_its_end_stays(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        await withdrawn(dispatch, mine, fence=True)
        await dispatch.deliver(finished(mine))
        first = (await dispatch.get(mine)).stopped_at
        dispatch.clock.advance(3)
        await dispatch.deliver(finished(mine, sequence=10, code=StepCode.CANCELLED))
        assert (await dispatch.get(mine)).stopped_at == first


async def test_an_agent_that_never_had_it_is_known_to_have_stopped_by_its_document(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await withdrawn(dispatch, mine, fence=True)
        dispatch.clock.advance(5)
        await applied(dispatch)
        assert (await dispatch.get(mine)).stopped_at == dispatch.clock.now()


async def test_an_agent_that_still_runs_it_has_not_stopped(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        await withdrawn(dispatch, mine, fence=True)
        await applied(dispatch, running=mine)
        assert (await dispatch.get(mine)).stopped_at is None


async def test_an_agent_that_has_not_seen_its_document_has_not_stopped(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await running(dispatch)
        listed = dispatch.document().generation
        await withdrawn(dispatch, mine, fence=True)
        await dispatch.heard(beat(generation=listed))
        await dispatch.sweeper.sweep()
        assert (await dispatch.get(mine)).stopped_at is None


async def test_a_fenced_one_is_counted_once_however_its_end_is_heard(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await withdrawn(dispatch, mine, fence=True)
        await applied(dispatch)
        await dispatch.deliver(finished(mine))
        counted = dispatch.metrics.registry.get_sample_value("droidfleet_executions_total", {"result": "cancelled"})
        assert counted == 1


async def test_a_fenced_one_makes_room_for_the_next(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch) for _ in range(WINDOW + 1)]
        done = await withdrawn(dispatch, ids[0], fence=True)
        assert done.assigned is not None
        assert [each.execution_id for each in done.assigned.changed] == [ids[-1]]
        assert [each.execution_id for each in dispatch.document().executions] == ids[1:]


async def test_the_secrets_of_a_fenced_one_are_forgotten(tmp_path: Path) -> None:
    body = json.dumps({
        "schemaVersion": 1,
        "taskId": "t",
        "inputs": {"pin": {"type": "secret"}},
        "steps": [{"id": "a", "action": "INPUT", "selector": {"hint": "PIN"}, "value": "${inputs.pin}"}],
    })  # fmt: skip
    async with dispatching(tmp_path) as dispatch:
        started_run = await dispatch.run("phone-01", text=body, values={"pin": "hunter2-typed"})
        await withdrawn(dispatch, started_run.executions[0].execution_id, fence=True)
        kept = await dispatch.database.run(
            lambda connection: connection.execute(text("SELECT given || secrets FROM run_values")).scalar_one()
        )
        assert "hunter2" not in kept


async def _labels(dispatch: Dispatch) -> list[tuple[str, int, str]]:
    def read(connection: Connection) -> list[tuple[str, int, str]]:
        rows = connection.execute(text("SELECT execution_id, attempt, label FROM results"))
        return [(row[0], row[1], row[2]) for row in rows]

    return await dispatch.database.run(read)
