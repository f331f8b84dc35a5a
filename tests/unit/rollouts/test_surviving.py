"""What a rollout survives: a controller that dies, a database that fails, and another controller beside it."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts import following
from droidfleet_controller.rollouts.planner.plan import Decided
from droidfleet_controller.rollouts.rollout import Rollout
from droidfleet_controller.rollouts.states import Control, Outcome, RolloutState
from droidfleet_controller.rollouts.writing import CHUNK, write
from droidfleet_controller.store import rollouts as stored
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.codes import StepCode
from unit.rollouts.rolling import Rolling, phones, rolling, settle, spec

TWO_WAVES = [{"size": 2}, {}]


async def restart(fleet: Rolling) -> None:
    """The controller dies and another one is started: all that was in memory is gone."""
    fleet.dispatch.broadcast._told.clear()
    fleet.rollouts = fleet.second()
    await fleet.rollouts._following._load()
    await fleet.settle()


async def test_results_that_came_while_the_controller_was_down_are_counted(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(4), waves=TWO_WAVES))).rollout.rollout_id
        live = await fleet.live(rollout_id)
        fleet.dispatch.broadcast._told.clear()
        await fleet.finish(*live.values())
        assert (await fleet.view(rollout_id)).rollout.wave == 1
        await restart(fleet)
        assert (await fleet.live(rollout_id)).keys() == {"phone-03", "phone-04"}
        await fleet.run_all(rollout_id)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED
        assert len(await fleet.tries(rollout_id)) == 4


async def test_a_result_that_nobody_announced_is_found_by_comparing(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1)))).rollout.rollout_id
        told = list(fleet.dispatch.broadcast._told)
        fleet.dispatch.broadcast._told.clear()
        await fleet.finish(*(await fleet.live(rollout_id)).values())
        fleet.dispatch.broadcast._told.extend(told)
        await fleet.pass_time(following.COMPARE.total_seconds() + 1)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED


async def test_a_wait_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        retry = {"maxAttempts": 2, "delay": "60s", "jitter": "0%"}
        rollout_id = (await fleet.start(spec(*phones(1), retry=retry))).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values(), code=StepCode.TARGET_NOT_FOUND)
        await restart(fleet)
        assert await fleet.live(rollout_id) == {}
        await fleet.pass_time(61)
        assert (await fleet.live(rollout_id))["phone-01"].try_number == 2


async def test_a_decision_that_cannot_be_written_is_made_again_and_nothing_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = [0, 1, 3]
    calls = 0

    def fails(connection: Connection, before: Rollout, decided: Decided, **options: object) -> object:
        nonlocal calls
        done = write(connection, before, decided, **options)  # type: ignore[arg-type]  # passed on
        calls += 1
        if calls - 1 in failures:
            raise UnavailableError("DATABASE_UNAVAILABLE", "the disk is full.")
        return done

    async with rolling(tmp_path, *phones(4)) as fleet:
        monkeypatch.setattr(following, "write", fails)
        rollout_id = (await fleet.start(spec(*phones(4), waves=TWO_WAVES))).rollout.rollout_id
        for _ in range(20):
            await fleet.pass_time(2)
            await fleet.run_all(rollout_id)
        assert calls > max(failures)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED
        assert Counter(each.device for each in await fleet.tries(rollout_id)) == dict.fromkeys(phones(4), 1)


async def test_a_rollout_that_breaks_its_planner_does_not_hold_up_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        broken = (await fleet.start(spec("phone-01", waves=[{}]))).rollout.rollout_id
        plan = fleet.rollouts._following._open[broken].plan
        assert plan is not None
        monkeypatch.setattr(plan, "decide", lambda *_, **__: 1 // 0)
        fleet.rollouts._following._open[broken].is_due = True
        other = (await fleet.start(spec("phone-02"))).rollout.rollout_id
        await fleet.run_all(other)
        assert (await fleet.view(other)).rollout.state is RolloutState.SUCCEEDED
        await fleet.run_all(broken)
        await fleet.pass_time(2)
        assert (await fleet.view(broken)).rollout.state is RolloutState.SUCCEEDED, "a plan made anew works"


async def test_a_command_whose_caller_went_away_is_carried_out_or_not_at_all(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        view = await fleet.start(spec(*phones(2)))
        rollout_id = view.rollout.rollout_id
        async with asyncio.TaskGroup() as group:
            call = group.create_task(
                fleet.rollouts.control(rollout_id, Control.PAUSE, version=view.rollout.version, reason="", actor="test")
            )
            await asyncio.sleep(0)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
        await fleet.settle()
        after = await fleet.view(rollout_id)
        await fleet.run_all(rollout_id)
        if after.rollout.state is RolloutState.PAUSED:
            await fleet.control(rollout_id, Control.RESUME)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED


async def test_two_controllers_on_one_database_begin_nothing_twice(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(6)) as fleet:
        database = Database(sqlite_url(tmp_path / "test.db"))
        try:
            rollout_id = (await fleet.start(spec(*phones(6), waves=TWO_WAVES, maxConcurrent=2))).rollout.rollout_id
            other = fleet.second(database)
            await other._following._load()
            for _ in range(20):
                for each in (fleet.rollouts, other):
                    each._following._open.setdefault(rollout_id, following._Followed(rollout_id)).is_due = True
                await asyncio.gather(settle(fleet.rollouts), settle(other))
                live = await fleet.live(rollout_id)
                assert len(live) <= 2
                if live:
                    await fleet.finish(next(iter(live.values())))
            assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED
            assert Counter(each.device for each in await fleet.tries(rollout_id)) == dict.fromkeys(phones(6), 1)
        finally:
            await database.close()


async def test_the_one_that_was_overtaken_decides_on_what_the_other_wrote(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        view = await fleet.start(spec(*phones(2), maxConcurrent=1))
        rollout_id = view.rollout.rollout_id
        other = fleet.second()
        fleet.dispatch.broadcast._told.pop()
        await other.control(rollout_id, Control.PAUSE, version=view.rollout.version, reason="", actor="other")
        await fleet.finish(*(await fleet.live(rollout_id)).values())
        after = await fleet.view(rollout_id)
        assert (after.rollout.state, await fleet.live(rollout_id)) == (RolloutState.PAUSED, {})
        assert (await fleet.outcomes(rollout_id))["phone-01"] is Outcome.SUCCEEDED


async def test_an_abort_of_many_is_finished_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("droidfleet_controller.rollouts.writing.CHUNK", 2)
    async with rolling(tmp_path, *phones(5)) as fleet:
        view = await fleet.start(spec(*phones(5)))
        rollout_id = view.rollout.rollout_id
        await fleet.rollouts.control(rollout_id, Control.ABORT, version=view.rollout.version, reason="", actor="test")
        states = Counter(each.state for each in await fleet.tries(rollout_id))
        assert states == {ExecutionState.CANCELLED: 2, ExecutionState.ASSIGNED: 3}
        await restart(fleet)
        assert {each.state for each in await fleet.tries(rollout_id)} == {ExecutionState.CANCELLED}


async def test_many_phones_start_in_transactions_of_bounded_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"phone-{number:05}" for number in range(1_500))
    async with rolling(tmp_path, *names) as fleet:
        sizes: list[int] = []

        def counting(connection: Connection, before: Rollout, decided: Decided, **options: object) -> object:
            sizes.append(len(decided.starts))
            return write(connection, before, decided, **options)  # type: ignore[arg-type]  # passed on

        monkeypatch.setattr(following, "write", counting)
        rollout_id = (await fleet.start(spec(*names))).rollout.rollout_id
        assert sizes == [CHUNK, CHUNK, CHUNK]
        wave = (await fleet.view(rollout_id)).waves[0]
        assert (wave.members, wave.live.assigned) == (1_500, 1_500)


async def test_what_is_written_is_read_as_it_was(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        text = spec(
            *phones(3), waves=[{"size": 1, "gate": {"minSuccessPercent": "0%", "soak": "1h"}}, {}], ratePerMinute=9
        )
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        await fleet.finish(
            *(await fleet.live(rollout_id)).values(), code=StepCode.TARGET_NOT_FOUND, screen="com.shop/.Main"
        )
        followed = fleet.rollouts._following._open[rollout_id]
        assert followed.rollout is not None
        assert followed.rollout.memory.soak_until is not None
        found = await fleet.dispatch.database.run(lambda connection: stored.get(connection, rollout_id))
        assert found == followed.rollout
