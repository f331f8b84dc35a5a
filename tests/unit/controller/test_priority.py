"""Whose turn it is on a phone: what has begun, then by priority, then the older one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.window import Body, Listed, choose
from droidfleet_controller.store import executions
from droidfleet_shared.bus.messages import WINDOW
from unit.controller.builders import execution
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, finished, started

S = ExecutionState
LOW, NORMAL, HIGH = 1, 5, 9


async def begun(dispatch: Dispatch, priority: int, device: str = "phone-01") -> str:
    return (await dispatch.run(device, priority=priority)).executions[0].execution_id


def listed(dispatch: Dispatch, device: str = "phone-01") -> list[str]:
    return [each.execution_id for each in dispatch.document(device).executions]


async def test_the_higher_priority_stands_before_what_came_earlier(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        low, high, normal = [await begun(dispatch, priority) for priority in (LOW, HIGH, NORMAL)]
        assert listed(dispatch) == [high, normal, low]


async def test_of_one_priority_the_older_one_stands_first(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [await begun(dispatch, HIGH) for _ in range(WINDOW)]
        assert listed(dispatch) == ids


async def test_what_has_begun_stands_before_everything(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        low = await begun(dispatch, LOW)
        await dispatch.deliver(accepted(low), started(low))
        high = await begun(dispatch, HIGH)
        assert listed(dispatch) == [low, high]


async def test_a_window_full_of_the_less_urgent_keeps_nothing_urgent_out(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        low = [await begun(dispatch, LOW) for _ in range(WINDOW + 1)]
        high = [await begun(dispatch, HIGH) for _ in range(WINDOW + 1)]
        assert listed(dispatch) == high[:WINDOW] + low[:WINDOW]


async def test_the_next_in_line_is_the_most_urgent_and_not_the_oldest(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        first = [await begun(dispatch, HIGH) for _ in range(WINDOW)]
        await begun(dispatch, LOW)
        later = await begun(dispatch, HIGH)
        await dispatch.deliver(finished(first[0]))
        assert listed(dispatch) == [*first[1:], later]


async def test_a_document_that_is_published_again_has_the_same_order(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for priority in (LOW, HIGH, NORMAL):
            await begun(dispatch, priority)
        windows = await dispatch.database.run(lambda connection: executions.windows(connection, ["phone-01"]))
        assert [each.execution_id for each in windows["phone-01"]] == listed(dispatch)


async def test_the_same_call_with_another_priority_is_another_call(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01", request_id="same", priority=LOW)
        with pytest.raises(Exception, match="was used for another call"):
            await dispatch.run("phone-01", request_id="same", priority=HIGH)


async def test_a_priority_that_cannot_be_is_refused(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        with pytest.raises(Exception, match="0 to 9"):
            await begun(dispatch, 10)


async def test_a_line_is_read_as_far_as_asked_whatever_waits_behind(tmp_path: Path) -> None:
    queued = [
        replace(execution(S.QUEUED, execution_id=f"x-{number}"), priority=number % 3, check_at=execution().expires_at)
        for number in range(30)
    ]

    def lines(connection: Connection) -> list[Execution]:
        executions.add(connection, queued)
        return executions.lines(connection, ["phone-01"], limit=3)["phone-01"]

    async with dispatching(tmp_path) as dispatch:
        read = await dispatch.database.run(lines)
    assert [each.execution_id for each in read] == ["x-2", "x-5", "x-8"]


@given(priorities=st.lists(st.integers(0, 9), max_size=60), inside=st.lists(st.integers(0, 9), max_size=40))
def test_one_joins_exactly_when_fewer_than_a_window_come_before_it(priorities: list[int], inside: list[int]) -> None:
    window = [_entry(S.ASSIGNED, priority) for priority in inside]
    waiting = sorted((_entry(S.QUEUED, priority) for priority in priorities), key=lambda entry: entry.execution.turn)
    count = choose(window, waiting, receipts=0)
    for position, entry in enumerate(waiting):
        before = [*window, *waiting[:position]]
        urgent = sum(each.execution.priority >= entry.execution.priority for each in before)
        assert (position < count) == (urgent < WINDOW)


def _entry(state: ExecutionState, priority: int) -> Listed:
    return Listed(replace(execution(state), priority=priority), Body.of("{}"))


@pytest.mark.parametrize("seed", range(6))
async def test_no_phone_is_idle_while_work_for_it_waits(tmp_path: Path, seed: int) -> None:
    """Fast and slow phones, work of any priority that comes at any time."""
    random = Random(seed)
    names = [f"phone-{number:02}" for number in range(4)]
    slowness = {name: random.choice([1, 7]) for name in names}
    running: dict[str, tuple[str, int]] = {}
    ended: set[str] = set()
    created = 0
    async with dispatching(tmp_path, *names) as dispatch:
        for second in range(200):
            if second < 20:
                for name in random.sample(names, 2):
                    await begun(dispatch, random.randint(0, 9), name)
                    created += 1
            for name in [name for name, (_, until) in running.items() if until <= second]:
                execution_id, _ = running.pop(name)
                await dispatch.deliver(finished(execution_id, agent=name))
                ended.add(execution_id)
            backlog = await dispatch.reading.backlog(names)
            for name in names:
                if name not in running and name in backlog:
                    # An agent begins with the first one that its document lists.
                    mine = listed(dispatch, name)[0]
                    await dispatch.deliver(accepted(mine, agent=name), started(mine, agent=name))
                    running[name] = (mine, second + slowness[name])
                    await _nothing_more_urgent_waits(dispatch, mine)
            dispatch.clock.advance(timedelta(seconds=1).total_seconds())
        assert (len(ended), created) == (created, 40)


async def _nothing_more_urgent_waits(dispatch: Dispatch, begun_id: str) -> None:
    records = await dispatch.all()
    [mine] = [each for each in records if each.execution_id == begun_id]
    waiting = [each for each in records if each.device == mine.device and each.state in {S.QUEUED, S.ASSIGNED}]
    assert all(each.priority <= mine.priority for each in waiting)
