"""A name that goes to another host: what the earlier agent may have begun ends as lost and begins nowhere else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.registry import Asking
from droidfleet_shared.bus.messages import WINDOW, Heartbeat
from unit.controller.builders import beat
from unit.controller.dispatching import HEARTBEAT_S, Dispatch, dispatching
from unit.controller.said import accepted, finished, started

S = ExecutionState

OTHER_HOST = "h-2"


def hello(*, host_id: str) -> Heartbeat:
    return beat(instance="i-2", host_id=host_id, hello=True)


async def claimed(dispatch: Dispatch, *, host_id: str) -> None:
    """Another process gets the name, after the silence that another host needs."""
    dispatch.clock.advance(3 * HEARTBEAT_S)
    await dispatch.registry._decide([Asking(hello(host_id=host_id), "", dispatch.clock.now(), 0.0)])


async def begun(dispatch: Dispatch) -> str:
    started_now = await dispatch.run("phone-01", expires_in=timedelta(hours=1))
    return started_now.executions[0].execution_id


async def test_what_another_host_may_have_begun_is_lost_and_not_assigned_again(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        running, waiting = [await begun(dispatch) for _ in range(2)]
        await dispatch.deliver(accepted(running), started(running))
        assert dispatch.document().host_id == "h-1"
        await claimed(dispatch, host_id=OTHER_HOST)
        for mine in (running, waiting):
            ended = await dispatch.get(mine)
            assert (ended.state, ended.reason.split(":")[0]) == (S.LOST, "AGENT_REPLACED")
        assert (dispatch.document().host_id, dispatch.document().executions) == (OTHER_HOST, ())


async def test_what_was_still_queued_goes_to_the_new_host(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = [await begun(dispatch) for _ in range(WINDOW + 1)]
        await claimed(dispatch, host_id=OTHER_HOST)
        assert [each.execution_id for each in dispatch.document().executions] == mine[WINDOW:]
        assert (await dispatch.get(mine[-1])).state is S.ASSIGNED


async def test_what_the_replaced_agent_tells_later_is_what_happened(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await claimed(dispatch, host_id=OTHER_HOST)
        await dispatch.deliver(accepted(mine), started(mine), finished(mine))
        assert (await dispatch.get(mine)).state is S.SUCCEEDED


async def test_an_agent_that_starts_again_on_its_host_keeps_its_executions(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = await begun(dispatch)
        await claimed(dispatch, host_id="h-1")
        assert (await dispatch.get(mine)).state is S.ASSIGNED
        assert [each.execution_id for each in dispatch.document().executions] == [mine]
