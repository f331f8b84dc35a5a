"""Who belongs to a CONTINUOUS rollout while its phones work, and while the controller is away."""

from __future__ import annotations

from pathlib import Path

from droidfleet_controller.fleet.labels import Changes
from droidfleet_controller.rollouts.following import COMPARE
from droidfleet_controller.rollouts.states import Outcome, ReasonCode
from droidfleet_shared.bus.messages import ExecutionRef
from unit.controller.builders import beat
from unit.rollouts.rolling import Rolling, phones, rolling, settle, spec

ONLINE = spec(target={"query": "state=online"}, membership="CONTINUOUS", maxConcurrent=1)


async def test_a_phone_that_works_for_a_rollout_does_not_leave_it_for_being_busy(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(ONLINE)).rollout.rollout_id
        (execution,) = (await fleet.live(rollout_id)).values()
        await fleet.begin(execution)
        running = ExecutionRef(execution_id=execution.execution_id, attempt=1)
        await fleet.dispatch.heard(beat(agent="phone-01", running=running))
        await look(fleet)
        await fleet.finish(execution)
        assert await fleet.outcomes(rollout_id) == {"phone-01": Outcome.SUCCEEDED}


async def test_a_downtime_of_the_controller_removes_nobody(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(ONLINE)).rollout.rollout_id
        fleet.dispatch.clock.advance(3_600)
        await fleet.dispatch.registry.connected()
        again = fleet.second()
        await again._following._load()
        await settle(again)
        assert await fleet.outcomes(rollout_id) == {"phone-01": Outcome.NONE, "phone-02": Outcome.NONE}


async def test_who_stays_silent_after_a_downtime_leaves(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(ONLINE)).rollout.rollout_id
        fleet.dispatch.clock.advance(3_600)
        await fleet.dispatch.registry.connected()
        await look(fleet)
        fleet.dispatch.clock.advance(COMPARE.total_seconds())
        await look(fleet)
        assert set((await fleet.outcomes(rollout_id)).values()) == {Outcome.REMOVED}


async def look(fleet: Rolling) -> None:
    """What the planner's clock does each second."""
    fleet.rollouts._following.look()
    await fleet.settle()


async def test_what_has_begun_on_the_last_phone_that_left_goes_on_through_a_restart(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        await fleet.labels.change(["phone-01"], Changes(set={"site": "berlin"}), actor="test")
        text = spec(target={"query": "site=berlin"}, membership="CONTINUOUS")
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        await fleet.begin(*(await fleet.live(rollout_id)).values())
        await fleet.labels.change(["phone-01"], Changes(set={}, remove=("site",)), actor="test")
        await look(fleet)
        assert (await fleet.view(rollout_id)).rollout.reason_code is ReasonCode.MEMBERS_GONE
        again = fleet.second()
        await again._following._load()
        await settle(again)
        assert not (await fleet.live(rollout_id))["phone-01"].cancel_requested
