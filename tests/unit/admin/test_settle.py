"""What a restored database does with what agents may have done since the backup."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sqlalchemy import Connection, select

from droidfleet_controller.admin.settle import PAUSE, Settled, settle
from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.deadlines import RUN_MARGIN
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.states import RolloutState
from droidfleet_controller.schedules.schedule import OccurrenceState
from droidfleet_controller.store import documents, identity, lock
from droidfleet_controller.store.schema import audit, controllers, run_values
from droidfleet_shared.bus.messages import WINDOW, DesiredState
from unit.controller.builders import NOW
from unit.controller.dispatching import Dispatch, dispatching
from unit.controller.said import accepted, finished, started
from unit.rollouts.rolling import phones, rolling, rollouts_of, spec
from unit.schedules.scheduling import scheduling

S = ExecutionState


async def restored(dispatch: Dispatch, *, after: timedelta = timedelta(seconds=5)) -> Settled:
    """Does to the database what a restore does."""
    now = dispatch.clock.now() + after
    return await dispatch.database.run(lambda connection: settle(connection, made_at=NOW, now=now))


async def listed(dispatch: Dispatch, agent: str = "phone-01") -> DesiredState:
    """The document that the database has for an agent now."""
    [made] = await dispatch.database.run(lambda connection: assign.current(connection, [agent]))
    return DesiredState.decode(made.encode(dispatch.clock.now() + timedelta(seconds=5)))


async def test_what_had_not_begun_is_lost_and_begins_nowhere(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        ids = [(await dispatch.run("phone-01")).executions[0].execution_id for _ in range(WINDOW + 2)]
        await dispatch.deliver(accepted(ids[1]))
        settled = await restored(dispatch)
        assert (settled.lost, settled.going_on) == (len(ids), 0)
        for each in ids:
            found = await dispatch.get(each)
            assert (found.state, found.reason.partition(":")[0]) == (S.LOST, "RESTORED")
        assert (await listed(dispatch)).executions == ()
        # A new one finds nothing before it.
        fresh = (await dispatch.run("phone-01")).executions[0].execution_id
        assert [each.execution_id for each in dispatch.document().executions] == [fresh]


async def test_what_really_happened_replaces_the_loss(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        queued = [(await dispatch.run("phone-01")).executions[0].execution_id for _ in range(WINDOW + 1)][-1]
        await restored(dispatch)
        await dispatch.deliver(accepted(queued), started(queued), finished(queued))
        assert (await dispatch.get(queued)).state is S.SUCCEEDED


async def test_what_ran_goes_on_and_cannot_begin_where_it_does_not_run(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = (await dispatch.run("phone-01")).executions[0].execution_id
        await dispatch.deliver(accepted(mine), started(mine))
        settled = await restored(dispatch)
        assert (settled.lost, settled.going_on) == (0, 1)
        [assignment] = (await listed(dispatch)).executions
        assert (assignment.execution_id, assignment.attempt, assignment.start_within_s) == (mine, 1, 0.0)
        await dispatch.deliver(finished(mine))
        assert (await dispatch.get(mine)).state is S.SUCCEEDED


async def test_what_must_have_ended_long_ago_is_lost(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = (await dispatch.run("phone-01")).executions[0]
        await dispatch.deliver(accepted(mine.execution_id), started(mine.execution_id))
        settled = await restored(dispatch, after=timedelta(seconds=mine.bound_s + 1) + RUN_MARGIN)
        assert (settled.lost, settled.going_on) == (1, 0)


async def test_what_had_ended_stays_as_it_was(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        mine = (await dispatch.run("phone-01")).executions[0].execution_id
        await dispatch.deliver(accepted(mine), started(mine), finished(mine))
        before = await dispatch.get(mine)
        assert (await restored(dispatch)).lost == 0
        assert await dispatch.get(mine) == before


async def test_it_is_another_database_for_agents_and_everything_is_published_anew(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01")

        def confirm(connection: Connection) -> str:
            documents.published(connection, [documents.Publication("phone-01", 1, 7)])
            return documents.epoch(connection)

        before = await dispatch.database.run(confirm)
        settled = await restored(dispatch)
        assert settled.epoch != before
        assert await dispatch.database.run(documents.epoch) == settled.epoch
        assert await dispatch.database.run(
            lambda connection: documents.unpublished(connection, after="", limit=10)
        ) == ["phone-01"]
        assert await dispatch.database.run(identity.read_events_again)


async def test_secrets_of_what_is_lost_are_forgotten(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        text = (
            '{"schemaVersion": 1, "taskId": "tea", "inputs": {"pin": {"type": "secret"}},'
            ' "steps": [{"id": "a", "action": "BACK"}]}'
        )
        await dispatch.run("phone-01", text=text, values={"pin": "4711"})
        await restored(dispatch)
        kept = await dispatch.database.run(
            lambda connection: list(connection.execute(select(run_values.c.secrets)).scalars())
        )
        assert kept == ['{"pin": null}']


async def test_nobody_claims_a_restored_database(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        now = dispatch.clock.now()
        await dispatch.database.run(
            lambda connection: lock.claim_database(connection, instance="c-1", data_id="elsewhere", now=now)
        )
        await restored(dispatch)
        assert await dispatch.database.run(lambda connection: connection.execute(select(controllers)).first()) is None


async def test_it_stands_in_the_events_and_in_the_audit(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01")
        await restored(dispatch)
        kinds = [event.kind for event in await dispatch.log()]
        assert kinds[-2:] == ["ExecutionLost", "DatabaseRestored"]
        asked = await dispatch.database.run(lambda connection: connection.execute(select(audit)).all())
        assert [(line.actor, line.command) for line in asked][-1] == ("admin restore", "Restore")


async def test_a_running_rollout_is_paused_and_starts_nobody(tmp_path: Path) -> None:
    """Whom it had waiting in the backup may have been done since, by executions that nobody knows any more."""
    names = phones(4)
    async with rolling(tmp_path, *names) as world:
        view = await world.start(spec(*names, waves=[{"size": 1}, {}]))
        rollout_id = view.rollout.rollout_id
        settled = await restored(world.dispatch)
        assert settled.paused == (rollout_id,)
        world.rollouts = rollouts_of(world.dispatch, world.targets)
        await world.rollouts._following._load()
        await world.settle()
        after = await world.view(rollout_id)
        assert after.rollout.state is RolloutState.PAUSED
        assert PAUSE in after.rollout.reason
        assert await world.live(rollout_id) == {}


async def test_occurrences_between_backup_and_restore_are_not_made_up_for(tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    async with scheduling(file) as world:
        await world.create(when={"cron": "0 12 * * *"}, misfire="ALL")
        world.clock.move(days=3)
        now = world.clock.now()
        settled = await world.database.run(lambda connection: settle(connection, made_at=None, now=now))
        assert settled.schedules == 1
        await world.look()
        assert OccurrenceState.STARTED.value not in (await world.became()).values()
        world.clock.move(days=1)
        await world.look()
        assert OccurrenceState.STARTED.value in (await world.became()).values()
