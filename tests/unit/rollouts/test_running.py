"""A rollout from its start to its end, over the real database and the real parts of dispatch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.fleet.labels import Changes
from droidfleet_controller.rollouts.rollout import Movement, Rule, Wait
from droidfleet_controller.rollouts.states import Control, MemberState, Outcome, ReasonCode, RolloutState, WaveState
from droidfleet_controller.rollouts.views import Confirmation, MemberFilter, RolloutFilter, StartRollout
from droidfleet_controller.store import executions
from droidfleet_shared.bus.messages import Wanted
from droidfleet_shared.errors import ConflictError, NotFoundError, PreconditionError
from droidfleet_shared.protocol.codes import StepCode
from unit.controller.said import finished
from unit.rollouts.rolling import Rolling, phones, rolling, spec

TWO_WAVES = [{"size": 1}, {}]


async def test_waves_follow_one_another_and_the_rollout_succeeds(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout = (await fleet.start(spec(*phones(3), waves=TWO_WAVES))).rollout
        assert (await fleet.live(rollout.rollout_id)).keys() == {"phone-01"}
        await fleet.finish(*(await fleet.live(rollout.rollout_id)).values())
        assert (await fleet.live(rollout.rollout_id)).keys() == {"phone-02", "phone-03"}
        await fleet.run_all(rollout.rollout_id)
        view = await fleet.view(rollout.rollout_id)
        assert view.rollout.state is RolloutState.SUCCEEDED
        assert [wave.state for wave in view.waves] == [WaveState.PASSED, WaveState.PASSED]
        assert [dict(wave.outcomes) for wave in view.waves] == [{Outcome.SUCCEEDED: 1}, {Outcome.SUCCEEDED: 2}]
        assert view.rollout.ended_at is not None


async def test_the_view_counts_where_the_members_are(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(4)) as fleet:
        rollout = (await fleet.start(spec(*phones(4), maxConcurrent=3))).rollout
        live = await fleet.live(rollout.rollout_id)
        await fleet.begin(live["phone-01"])
        view = await fleet.view(rollout.rollout_id)
        wave = view.waves[0]
        assert (wave.members, wave.waiting, wave.live.running, wave.live.assigned) == (4, 1, 1, 2)
        assert wave.gate.startswith("advances at 4 of 4")
        assert view.started_last_minute == 3
        assert {wait.why for wait in view.waits} == {Wait.RESULTS, Wait.CONCURRENCY}


async def test_a_wave_below_its_gate_pauses_and_promote_opens_the_next(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2), waves=TWO_WAVES))).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values(), code=StepCode.TARGET_NOT_FOUND)
        view = await fleet.view(rollout_id)
        assert (view.rollout.state, view.rollout.reason_code) == (RolloutState.PAUSED, ReasonCode.BELOW_THRESHOLD)
        assert view.waves[0].state is WaveState.FAILED
        assert [str(failure.signature) for failure in view.failures] == ["TARGET_NOT_FOUND at back-1"]
        assert await fleet.live(rollout_id) == {}
        await fleet.control(rollout_id, Control.PROMOTE)
        assert (await fleet.live(rollout_id)).keys() == {"phone-02"}


async def test_decisions_are_on_record_in_order(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2), waves=TWO_WAVES))).rollout.rollout_id
        await fleet.run_all(rollout_id)
        rows = await fleet.rollouts.decisions(rollout_id, after=0, limit=100)
        rules = [decision.rule for _, decision in rows]
        assert rules == [
            Rule.CREATED,
            Rule.OPEN_WAVE,
            Rule.START,
            Rule.GATE_PASSED,
            Rule.OPEN_WAVE,
            Rule.START,
            Rule.GATE_PASSED,
            Rule.FINISH,
        ]
        assert await fleet.rollouts.decisions(rollout_id, after=rows[5][0], limit=1) == [rows[6]]


async def test_pause_holds_back_and_resume_goes_on(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(3), maxConcurrent=1))).rollout.rollout_id
        await fleet.control(rollout_id, Control.PAUSE)
        await fleet.finish(*(await fleet.live(rollout_id)).values())
        view = await fleet.view(rollout_id)
        assert (await fleet.live(rollout_id), view.waits[0].why) == ({}, Wait.PAUSED)
        await fleet.control(rollout_id, Control.RESUME)
        assert (await fleet.live(rollout_id)).keys() == {"phone-02"}


async def test_a_stale_version_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        view = await fleet.start(spec(*phones(1)))
        await fleet.control(view.rollout.rollout_id, Control.PAUSE)
        before = (await fleet.view(view.rollout.rollout_id)).rollout
        with pytest.raises(ConflictError) as caught:
            await fleet.control(before.rollout_id, Control.ABORT, version=view.rollout.version)
        assert caught.value.code == "STALE_VERSION"
        assert (await fleet.view(before.rollout_id)).rollout == before


async def test_a_cancel_is_confirmed_phone_by_phone(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(3), waves=[{"size": 2}, {}]))).rollout.rollout_id
        live = await fleet.live(rollout_id)
        await fleet.begin(*live.values())
        view = await fleet.control(rollout_id, Control.CANCEL)
        assert (view.rollout.state, view.rollout.reason_code) == (
            RolloutState.CANCELLING,
            ReasonCode.CANCELLED_BY_OPERATOR,
        )
        assert view.confirmation == Confirmation(asked=2, confirmed=0, offline=0)
        assert {fleet.dispatch.document(name).executions[0].wanted for name in live} == {Wanted.CANCEL}
        await fleet.finish(live["phone-01"], code=StepCode.CANCELLED)
        assert (await fleet.view(rollout_id)).confirmation == Confirmation(asked=2, confirmed=1, offline=0)
        await fleet.finish(live["phone-02"])
        view = await fleet.view(rollout_id)
        assert view.rollout.state is RolloutState.CANCELLED
        assert await fleet.outcomes(rollout_id) == {
            "phone-01": Outcome.CANCELLED,
            "phone-02": Outcome.SUCCEEDED,
            "phone-03": Outcome.CANCELLED,
        }


async def test_an_abort_ends_at_once_and_late_results_are_labelled_and_not_counted(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(2)))).rollout.rollout_id
        live = await fleet.live(rollout_id)
        await fleet.begin(*live.values())
        view = await fleet.control(rollout_id, Control.ABORT)
        assert view.rollout.state is RolloutState.ABORTED
        assert view.confirmation == Confirmation(asked=2, confirmed=0, offline=0)
        assert await fleet.live(rollout_id) == {}
        late = live["phone-01"]
        await fleet.dispatch.deliver(finished(late.execution_id, agent="phone-01"))
        await fleet.settle()
        after = await fleet.dispatch.get(late.execution_id)
        assert (after.state, after.result) == (ExecutionState.CANCELLED, None)
        log = await fleet.dispatch.log(execution_id=late.execution_id)
        assert "[FENCED: not counted]" in log[-1].summary
        assert set((await fleet.outcomes(rollout_id)).values()) == {Outcome.CANCELLED}
        assert (await fleet.view(rollout_id)).confirmation == Confirmation(asked=2, confirmed=1, offline=0)


async def test_what_told_the_phone_nothing_is_tried_again(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        retry = {"maxAttempts": 2, "delay": "30s", "jitter": "0%"}
        rollout_id = (await fleet.start(spec(*phones(1), retry=retry))).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values(), code=StepCode.TARGET_NOT_FOUND)
        assert (await fleet.members(rollout_id))[0].member.state is MemberState.RETRYING
        await fleet.pass_time(29)
        assert await fleet.live(rollout_id) == {}
        await fleet.pass_time(2)
        again = (await fleet.live(rollout_id))["phone-01"]
        assert again.try_number == 2
        await fleet.finish(again)
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED


@pytest.mark.parametrize("acted", [True, None])
async def test_what_may_have_acted_is_not_tried_again(tmp_path: Path, acted: bool | None) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1), retry={"maxAttempts": 3}))).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values(), code=StepCode.TARGET_NOT_FOUND, acted=acted)
        assert await fleet.outcomes(rollout_id) == {"phone-01": Outcome.FAILED}


async def test_a_dry_run_comes_first_and_counts_nowhere(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        dry = {"device": "phone-02"}
        rollout_id = (await fleet.start(spec(*phones(2), dryRun=dry, approval="MANUAL"))).rollout.rollout_id
        assert (await fleet.live(rollout_id)).keys() == {"phone-02"}
        await fleet.finish(*(await fleet.live(rollout_id)).values())
        view = await fleet.view(rollout_id)
        assert (view.rollout.state, view.rollout.reason_code) == (
            RolloutState.AWAITING_APPROVAL,
            ReasonCode.APPROVAL_NEEDED,
        )
        assert [wave.state for wave in view.waves] == [WaveState.PASSED, WaveState.CLOSED]
        await fleet.control(rollout_id, Control.PROMOTE)
        await fleet.run_all(rollout_id)
        view = await fleet.view(rollout_id)
        assert (view.rollout.state, len(await fleet.tries(rollout_id))) == (RolloutState.SUCCEEDED, 3)


async def test_joiners_and_leavers_of_a_continuous_rollout_are_followed_and_logged(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        await fleet.labels.change(["phone-01", "phone-02"], Changes(set={"site": "berlin"}), actor="test")
        text = spec(target={"query": "site=berlin"}, membership="CONTINUOUS", maxConcurrent=1)
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        await fleet.labels.change(["phone-03"], Changes(set={"site": "berlin"}), actor="test")
        await fleet.labels.change(["phone-02"], Changes(set={}, remove=("site",)), actor="test")
        await fleet.pass_time(1)
        await fleet.run_all(rollout_id)
        assert await fleet.outcomes(rollout_id) == {
            "phone-01": Outcome.SUCCEEDED,
            "phone-02": Outcome.REMOVED,
            "phone-03": Outcome.SUCCEEDED,
        }
        log = await fleet.rollouts.membership(rollout_id, after=0, limit=10)
        assert {(change.device, change.movement) for _, change in log} == {
            ("phone-03", Movement.JOINED),
            ("phone-02", Movement.LEFT),
        }


async def test_a_group_that_is_deleted_removes_nobody(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        await fleet.groups.create("lab", devices=["phone-01", "phone-02"], actor="test")
        text = spec(target={"group": "lab"}, membership="CONTINUOUS")
        rollout_id = (await fleet.start(text)).rollout.rollout_id
        await fleet.groups.delete("lab", version=1, actor="test")
        await fleet.pass_time(1)
        await fleet.run_all(rollout_id)
        assert set((await fleet.outcomes(rollout_id)).values()) == {Outcome.SUCCEEDED}


async def test_an_execution_that_somebody_cancels_alone_ends_its_member(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (
            await fleet.start(spec(*phones(2), waves=[{"gate": {"minSuccessPercent": "50%"}}]))
        ).rollout.rollout_id
        live = await fleet.live(rollout_id)
        await fleet.dispatch.cancels.cancel(live["phone-01"].execution_id, reason="", actor="test")
        await fleet.finish(live["phone-01"], code=StepCode.CANCELLED)
        await fleet.finish(live["phone-02"])
        assert await fleet.outcomes(rollout_id) == {"phone-01": Outcome.CANCELLED, "phone-02": Outcome.SUCCEEDED}
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED


async def test_executions_bear_the_priority_and_the_deadlines_of_their_rollout(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        deadlines = {"startWithin": "2h", "acceptWithin": "5m"}
        rollout_id = (await fleet.start(spec(*phones(1), priority=8, deadlines=deadlines))).rollout.rollout_id
        execution = (await fleet.live(rollout_id))["phone-01"]
        assert (execution.priority, execution.accept_within_s) == (8, 300.0)
        assert (execution.expires_at - execution.created_at).total_seconds() == 7_200


async def test_the_same_request_has_the_same_rollout_and_another_one_is_a_conflict(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        first = await fleet.start(spec(*phones(2)), request_id="req-1")
        again = await fleet.start(spec(*phones(2)), request_id="req-1")
        assert again.rollout.rollout_id == first.rollout.rollout_id
        with pytest.raises(ConflictError) as caught:
            await fleet.start(spec("phone-01"), request_id="req-1")
        assert caught.value.code == "REQUEST_ID_REUSED"
        assert len(await fleet.rollouts.page(RolloutFilter(), before=None, limit=10)) == 1


async def test_members_are_listed_by_wave_state_and_outcome(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(3)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(3), waves=TWO_WAVES))).rollout.rollout_id
        await fleet.finish(*(await fleet.live(rollout_id)).values())

        async def names(wanted: MemberFilter, *, after: int = -1, limit: int = 10) -> list[str]:
            found = await fleet.rollouts.members(rollout_id, wanted, after=after, limit=limit)
            return [view.member.device for view in found]

        assert await names(MemberFilter(wave=2)) == ["phone-02", "phone-03"]
        assert await names(MemberFilter(states=frozenset({MemberState.ENDED}))) == ["phone-01"]
        assert await names(MemberFilter(outcomes=frozenset({Outcome.SUCCEEDED}))) == ["phone-01"]
        assert await names(MemberFilter(), after=1, limit=1) == ["phone-02"]


async def test_an_unknown_rollout_is_refused_everywhere(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        for call in (
            fleet.rollouts.get("ro-none"),
            fleet.rollouts.members("ro-none", MemberFilter(), after=-1, limit=1),
            fleet.rollouts.decisions("ro-none", after=0, limit=1),
            fleet.rollouts.membership("ro-none", after=0, limit=1),
            fleet.rollouts.control("ro-none", Control.PAUSE, version=1, reason="", actor=""),
        ):
            with pytest.raises(NotFoundError) as caught:
                await call
            assert caught.value.code == "ROLLOUT_NOT_FOUND"


async def test_one_that_has_ended_takes_no_commands(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1)))).rollout.rollout_id
        await fleet.run_all(rollout_id)
        with pytest.raises(PreconditionError) as caught:
            await fleet.control(rollout_id, Control.CANCEL)
        assert caught.value.code == "ROLLOUT_ENDED"
        await fleet.rollouts.end(rollout_id, reason_code=ReasonCode.REPLACED, reason="", actor="a schedule")
        assert (await fleet.view(rollout_id)).rollout.state is RolloutState.SUCCEEDED


async def test_a_rule_ends_a_rollout_whatever_its_version(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1)))).rollout.rollout_id
        await fleet.rollouts.end(rollout_id, reason_code=ReasonCode.WINDOW_CLOSED, reason="its window closed", actor="")
        view = await fleet.view(rollout_id)
        assert (view.rollout.state, view.rollout.reason_code) == (RolloutState.CANCELLING, ReasonCode.WINDOW_CLOSED)


async def test_a_watcher_sees_each_change_and_the_end(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        rollout_id = (await fleet.start(spec(*phones(1)))).rollout.rollout_id
        views = fleet.rollouts.watch(rollout_id)
        first = await anext(views)
        assert first.waves[0].live.assigned == 1
        await fleet.run_all(rollout_id)
        rest = [view async for view in views]
        assert rest[-1].rollout.state is RolloutState.SUCCEEDED
        assert fleet.rollouts._watchers == {}


async def test_a_try_that_was_lost_and_reports_after_all_is_counted_as_it_was(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(2)) as fleet:
        rollout_id = (
            await fleet.start(spec(*phones(2), waves=[{"gate": {"minSuccessPercent": "0%"}}]))
        ).rollout.rollout_id
        live = await fleet.live(rollout_id)
        await lose(fleet, live["phone-01"].execution_id)
        assert (await fleet.outcomes(rollout_id))["phone-01"] is Outcome.SILENT
        await fleet.finish(live["phone-01"])
        assert (await fleet.outcomes(rollout_id))["phone-01"] is Outcome.SUCCEEDED


async def lose(fleet: Rolling, execution_id: str) -> None:
    """The execution ends as LOST, as the sweeper does it."""
    execution = await fleet.dispatch.get(execution_id)
    lost = replace(
        execution.moved(ExecutionState.LOST, now=fleet.dispatch.clock.now(), reason="AGENT_SILENT: x"), check_at=None
    )
    await fleet.dispatch.database.run(
        lambda connection: executions.save(connection, [lost]),
        after=lambda _: fleet.dispatch.broadcast.executions([lost]),
    )
    await fleet.settle()


async def test_who_starts_a_rollout_sees_where_it_stands_and_can_command_it_in_that_version(tmp_path: Path) -> None:
    async with rolling(tmp_path, *phones(1)) as fleet:
        asked = StartRollout(spec_json=spec(*phones(1), approval="MANUAL"))
        begun = (await fleet.rollouts.start(asked)).view.rollout
        assert begun.state is RolloutState.AWAITING_APPROVAL
        promoted = await fleet.rollouts.control(
            begun.rollout_id, Control.PROMOTE, version=begun.version, reason="", actor=""
        )
        assert promoted.rollout.state is RolloutState.RUNNING
