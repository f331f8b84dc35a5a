"""Makes a database that was restored from a backup safe for a fleet that has gone on since.

Agents, phones and schedules know more than a backup does. What it holds as waiting may have been done, so nothing of it
begins by itself; what really happened replaces "lost" as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, delete, select, update

from droidfleet_controller.dispatch.deadlines import first_check
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.states import BEGUN, LIVE, ExecutionState
from droidfleet_controller.ids import new_id
from droidfleet_controller.rollouts import writing
from droidfleet_controller.rollouts.planner.plan import RolloutPlan
from droidfleet_controller.rollouts.states import Control, RolloutState
from droidfleet_controller.store import documents, events, executions, identity, rollouts, schedules
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_controller.store.schema import controllers
from droidfleet_controller.store.schema import schedules as schedules_table

RESTORED = "RESTORED"

REASON = (
    f"{RESTORED}: the database was restored from a backup in which this had not begun; whether it was done since is "
    "unknown."
)
OVER = f"{RESTORED}: the database was restored from a backup in which this ran; it must have ended since."
PAUSE = "the database was restored from a backup. Phones that are waiting here may have been done since: look first."
NOT_RUN = f"{RESTORED}: the database was restored from a backup in which this waited; it may have begun since."

ACTOR = "admin restore"

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Settled:
    """What had to be done. ``going_on``: executions that ran in the backup and may still run."""

    epoch: str
    lost: int
    going_on: int
    paused: tuple[str, ...]
    schedules: int


def settle(connection: Connection, *, made_at: datetime | None, now: datetime) -> Settled:
    """Inside the caller's transaction, before any controller works on the database. ``made_at``: of the backup.

    - It becomes another database for agents (its epoch): they leave what they were told since the backup.
    - What ran in the backup and can still run goes on, and can begin on no agent that is not at it.
    - Everything else that had not ended is lost.
    - Rollouts that run are paused, and occurrences up to now are not made up for.
    - What agents reported since is read again from the broker, as far back as it reaches.
    """
    lost: list[Execution] = []
    going_on: list[Execution] = []
    for execution in _live(connection):
        check_at = first_check(execution)
        if execution.state in BEGUN and check_at is not None and check_at > now:
            going_on.append(replace(execution, expires_at=min(execution.expires_at, now)))
        else:
            reason = OVER if execution.state in BEGUN else REASON
            ended = execution.moved(ExecutionState.LOST, now=now, reason=reason)
            lost.append(replace(ended, check_at=None, current_step_id=""))
    executions.save(connection, [*lost, *going_on])
    events.add(connection, [happening("ExecutionLost", execution, now=now) for execution in lost])
    paused = tuple(_pause_rollouts(connection, now))
    settled = Settled(
        epoch=identity.renew(connection),
        lost=len(lost),
        going_on=len(going_on),
        paused=paused,
        schedules=_pass_over(connection, now),
    )
    documents.forget_publications(connection)
    connection.execute(delete(controllers))
    _tell(connection, settled, made_at=made_at, now=now)
    return settled


def _live(connection: Connection) -> Iterator[Execution]:
    wanted = executions.Filter(states=sorted(LIVE))
    before: int | None = None
    while page := executions.page(connection, wanted, before=before, limit=_PAGE):
        yield from (execution for _, execution in page)
        before = page[-1][0]


def _pause_rollouts(connection: Connection, now: datetime) -> Iterator[str]:
    for rollout_id in rollouts.open_ids(connection):
        rollout = rollouts.get(connection, rollout_id)
        if rollout is None or rollout.state is not RolloutState.RUNNING:
            continue
        plan = RolloutPlan(rollout, rollouts.members(connection, rollout_id), new_id=lambda: new_id("x"))
        decided = plan.command(Control.PAUSE, version=None, now=now, actor=ACTOR, reason=PAUSE)
        writing.write(connection, rollout, decided, now=now)
        yield rollout_id


def _pass_over(connection: Connection, now: datetime) -> int:
    """Occurrences between the backup and now may have had their runs: none of them is made up for."""
    for schedule_id in schedules.with_queued(connection):
        schedules.drop_queued(connection, schedule_id, reason=NOT_RUN, now=now)
    behind: Sequence[str] = (
        connection.execute(select(schedules_table.c.schedule_id).where(schedules_table.c.decided_until < now))
        .scalars()
        .all()
    )
    connection.execute(update(schedules_table).where(schedules_table.c.decided_until < now).values(decided_until=now))
    return len(behind)


def _tell(connection: Connection, settled: Settled, *, made_at: datetime | None, now: datetime) -> None:
    made = f"of {made_at:%Y-%m-%d %H:%M:%S} UTC" if made_at is not None else "of an unknown time"
    summary = (
        f"the database was restored from a backup {made}: {settled.lost} execution(s) lost, {settled.going_on} may go "
        f"on, {len(settled.paused)} rollout(s) paused"
    )
    events.add(connection, [FleetEvent(occurred_at=now, recorded_at=now, kind="DatabaseRestored", summary=summary)])
    events.add_audit(
        connection, AuditLine(at=now, actor=ACTOR, command="Restore", subject=settled.epoch, details=summary)
    )
