"""Events of agents into the database: once each, whatever comes, and never stuck."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from droidfleet_controller.dispatch.progress import apply
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import WINDOW, Event, ExecutionRef
from droidfleet_shared.bus.port import BusUnavailableError, StoredMessage
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.codes import StepCode
from support.waiting import until
from unit.controller.builders import beat
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, finished, rejected, started, step_finished, step_started

S = ExecutionState


async def begun(dispatch: Dispatch, device: str = "phone-01") -> str:
    return (await dispatch.run(device)).executions[0].execution_id


async def test_an_execution_goes_through_its_states_and_keeps_its_whole_result(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine))
        assert (await dispatch.get(mine)).state is S.ACCEPTED
        await dispatch.deliver(started(mine), step_started(mine, "back-0", sequence=3))
        running = await dispatch.get(mine)
        assert (running.state, running.current_step_id) == (S.RUNNING, "back-0")
        await dispatch.deliver(step_finished(mine, "back-0", sequence=4), finished(mine))
        ended = await dispatch.get(mine)
        assert ended.state is S.SUCCEEDED
        assert ended.result is not None
        assert [step.id for step in ended.result.steps] == ["back-0", "back-1"]
        assert ended.check_at is None


async def test_a_batch_is_acknowledged_after_it_was_recorded(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        messages = await dispatch.deliver(accepted(mine), started(mine))
        assert dispatch.bus.acknowledged == [message.sequence for message in messages]


async def test_nothing_is_acknowledged_when_the_database_fails(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.database.run(_drop_events)
        with pytest.raises(UnavailableError):
            await dispatch.deliver(accepted(mine))
        assert dispatch.bus.acknowledged == []


def _drop_events(connection: Connection) -> None:
    connection.execute(text("DROP TABLE events"))


async def test_a_batch_that_the_database_could_not_take_is_tried_again_before_anything_else(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.database.run(lambda connection: connection.execute(text("ALTER TABLE events RENAME TO away")))
        dispatch.bus.waiting = [
            [StoredMessage(subjects.event("phone-01", mine), event.encode(), sequence)]
            for sequence, event in enumerate((accepted(mine), started(mine)), 1)
        ]
        async with asyncio.TaskGroup() as group:
            task = group.create_task(dispatch.ingest.run())
            await until(lambda: len(dispatch.bus.waiting) == 1)
            await dispatch.database.run(
                lambda connection: connection.execute(text("ALTER TABLE away RENAME TO events"))
            )
            await until(lambda: dispatch.bus.acknowledged == [1, 2])
            task.cancel()
        assert (await dispatch.get(mine)).state is S.RUNNING


async def test_a_lost_acknowledgement_records_nothing_twice(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        batch: list[Event] = [accepted(mine), started(mine), step_finished(mine, "back-0", sequence=3)]
        dispatch.bus.lose_acks = True
        with pytest.raises(BusUnavailableError):
            await dispatch.deliver(*batch)
        dispatch.bus.lose_acks = False
        before = await dispatch.get(mine)
        await dispatch.deliver(*batch, *batch)
        assert await dispatch.get(mine) == before
        assert len(await dispatch.log(execution_id=mine)) == 4


async def test_a_result_may_come_before_the_acceptance(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine))
        await dispatch.deliver(accepted(mine), started(mine))
        ended = await dispatch.get(mine)
        assert (ended.state, ended.steps_done) == (S.SUCCEEDED, 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(data=st.data())
async def test_any_order_repetition_and_batching_ends_in_the_same_state(tmp_path: Path, data: st.DataObject) -> None:
    async with dispatching(Path(mkdtemp(dir=tmp_path))) as dispatch:
        mine = await begun(dispatch)
        events: list[Event] = [
            accepted(mine),
            started(mine),
            step_started(mine, "back-0", sequence=3),
            step_finished(mine, "back-0", sequence=4),
            finished(mine, code=StepCode.TARGET_NOT_FOUND, sequence=5, steps=1),
        ]
        line = data.draw(st.permutations(events + data.draw(st.lists(st.sampled_from(events), max_size=4))))
        while line:
            size = data.draw(st.integers(1, len(line)))
            await dispatch.deliver(*line[:size])
            line = line[size:]
        ended = await dispatch.get(mine)
        assert (ended.state, ended.steps_done, ended.current_step_id) == (S.FAILED, 1, "")
        assert ended.reason == "TARGET_NOT_FOUND: it did not work"
        reported = [event for event in await dispatch.log(execution_id=mine) if event.sequence is not None]
        assert sorted(event.sequence or 0 for event in reported) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"[]", "version"),
        (b'{"v": 99, "kind": "ExecutionAccepted"}', "version 99"),
        (b'{"v": 1, "kind": "SomethingNew"}', "event"),
        (b'{"v": 1, "kind": "ExecutionAccepted", "agent": "phone-01"}', "event"),
        (accepted("x-1", sequence=0).encode(), "cannot be"),
        (accepted("x-1", sequence=2**70).encode(), "cannot be"),
        (accepted("x-1", attempt=-1).encode(), "cannot be"),
        (accepted("x-2").encode(), "another agent or execution"),
        (accepted("x-1", agent="phone-02").encode(), "another agent or execution"),
    ],
)
async def test_what_cannot_be_read_is_reported_and_blocks_nothing(tmp_path: Path, said: bytes, error: str) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(said, subject=subjects.event("phone-01", "x-1"))
        await dispatch.deliver(accepted(mine))
        assert dispatch.bus.acknowledged == [1, 2]
        [bad] = [event for event in await dispatch.log() if event.kind == "BadMessage"]
        assert bad.device == "phone-01"
        assert error in json.loads(bad.payload)["error"]
        assert (await dispatch.get(mine)).state is S.ACCEPTED


async def test_an_unreadable_message_among_others_costs_only_itself(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        where = subjects.event("phone-01", mine)
        await dispatch.deliver(b"{", accepted(mine).encode(), started(mine).encode(), subject=where)
        assert (await dispatch.get(mine)).state is S.RUNNING


async def test_one_event_that_breaks_recording_is_reported_and_does_not_block_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(execution: object, event: object, **fields: object) -> object:
        if getattr(event, "kind", "") == "ExecutionStarted":
            raise RuntimeError("a defect")
        return apply(execution, event, **fields)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr("droidfleet_controller.dispatch.ingest.apply", broken)
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(accepted(mine), started(mine), step_finished(mine, "back-0", sequence=3))
        assert (await dispatch.get(mine)).steps_done == 1
        assert [event.kind for event in await dispatch.log() if event.kind == "BadMessage"] == ["BadMessage"]
        assert dispatch.bus.acknowledged == [1, 2, 3]


async def test_a_finished_execution_is_receipted_and_leaves_the_document(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine))
        made = dispatch.document()
        assert made.executions == ()
        assert made.recorded == (ExecutionRef(execution_id=mine, attempt=1),)


async def test_the_next_in_line_takes_the_free_place(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch) for _ in range(WINDOW + 1)]
        await dispatch.deliver(finished(ids[0]))
        assert [each.execution_id for each in dispatch.document().executions] == ids[1:]
        assert (await dispatch.get(ids[-1])).state is S.ASSIGNED
        assert [event.kind for event in await dispatch.log(execution_id=ids[-1])][-1] == "ExecutionAssigned"


async def test_a_rejection_is_receipted_too(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(rejected(mine, "AGENT_MISMATCH"))
        ended = await dispatch.get(mine)
        assert (ended.state, ended.reason) == (S.REJECTED, "AGENT_MISMATCH: no")
        assert dispatch.document().recorded == (ExecutionRef(execution_id=mine, attempt=1),)


async def test_a_result_that_comes_again_is_receipted_again(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine))
        await _applied(dispatch, dispatch.document().generation)
        await begun(dispatch)
        assert dispatch.document().recorded == ()
        await dispatch.deliver(finished(mine))
        assert dispatch.document().recorded == (ExecutionRef(execution_id=mine, attempt=1),)


async def _applied(dispatch: Dispatch, generation: int) -> None:
    await dispatch.heard(beat(generation=generation))
    await dispatch.sweeper.sweep()


async def test_receipts_past_the_bound_follow_when_the_first_were_applied(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = []
        for _ in range(70):
            ids.append(await begun(dispatch))
            await dispatch.deliver(finished(ids[-1]))
        assert [each.execution_id for each in dispatch.document().recorded] == ids[:64]
        await _applied(dispatch, dispatch.document().generation)
        assert [each.execution_id for each in dispatch.document().recorded] == ids[64:]


async def test_a_late_result_is_stored_labelled_and_receipted(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(rejected(mine, "START_EXPIRED"))
        await dispatch.deliver(finished(mine))
        assert (await dispatch.get(mine)).state is S.EXPIRED
        assert (await dispatch.get(mine)).result is None
        assert await _results(dispatch) == [(mine, 1, "phone-01", "LATE")]
        assert dispatch.document().recorded == (ExecutionRef(execution_id=mine, attempt=1),)


async def test_a_result_of_an_unknown_execution_is_kept_and_receipted_so_that_it_does_not_come_for_ever(
    tmp_path: Path,
) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.deliver(finished("x-unknown"))
        assert await _results(dispatch) == [("x-unknown", 1, "phone-01", "UNKNOWN_EXECUTION")]
        assert dispatch.document().recorded == (ExecutionRef(execution_id="x-unknown", attempt=1),)


async def test_an_agent_cannot_end_another_agents_execution(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "phone-01", "phone-02") as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine, agent="phone-02"))
        assert (await dispatch.get(mine)).state is S.ASSIGNED
        await dispatch.deliver(finished(mine))
        assert (await dispatch.get(mine)).state is S.SUCCEEDED
        assert (await dispatch.get(mine)).result is not None


async def test_a_fenced_attempts_result_is_stored_and_not_counted(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await dispatch.deliver(finished(mine, attempt=2))
        assert (await dispatch.get(mine)).state is S.ASSIGNED
        assert await _results(dispatch) == [(mine, 2, "phone-01", "FENCED")]


async def _results(dispatch: Dispatch) -> list[tuple[str, int, str, str]]:
    def read(connection: Connection) -> list[tuple[str, int, str, str]]:
        rows = connection.execute(text("SELECT execution_id, attempt, device, label FROM results ORDER BY 1, 2"))
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    return await dispatch.database.run(read)
