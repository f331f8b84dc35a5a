"""What is counted over a rollout's members and executions, for people who look at it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, case, func, or_, select

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.rollout import Signature
from droidfleet_controller.rollouts.states import MemberState, Outcome
from droidfleet_controller.store.rollouts import signature_text
from droidfleet_controller.store.schema import artifacts, executions, rollout_members, rollouts
from droidfleet_controller.store.sql import chunks

FAILURE_PICTURE = "failure"
"""The name of the artifact that shows the screen at a failure."""


@dataclass(frozen=True, slots=True)
class MemberCount:
    """So many members of a wave in a state, with an outcome, and with executions (of started ones) in a state."""

    wave: int
    state: MemberState
    outcome: Outcome
    execution_state: ExecutionState | None
    count: int


@dataclass(frozen=True, slots=True)
class Lately:
    """How many members' last tries began, and how many members ended."""

    started: int
    ended: int


@dataclass(frozen=True, slots=True)
class Asked:
    """How many executions were asked to end, and the devices of those that are not known to have ended."""

    asked: int
    unconfirmed: tuple[str, ...]


def of_members(connection: Connection, rollout_id: str) -> list[MemberCount]:
    """The members by wave, state, outcome and the state of their executions while those go on."""
    table = rollout_members
    # Of started ones only: what has ended is counted by its outcome.
    live = and_(executions.c.execution_id == table.c.execution_id, table.c.state == MemberState.STARTED.value)
    query = (
        select(table.c.wave, table.c.state, table.c.outcome, executions.c.state.label("execution_state"), func.count())
        .select_from(table.outerjoin(executions, live))
        .where(table.c.rollout_id == rollout_id)
        .group_by(table.c.wave, table.c.state, table.c.outcome, executions.c.state)
    )
    return [
        MemberCount(
            wave, MemberState(state), Outcome(outcome), None if execution is None else ExecutionState(execution), count
        )
        for wave, state, outcome, execution, count in connection.execute(query)
    ]


def lately(connection: Connection, rollout_id: str, since: datetime) -> Lately:
    """What happened after ``since``."""
    table = rollout_members
    query = select(
        func.coalesce(func.sum(case((table.c.started_at > since, 1), else_=0)), 0),
        func.coalesce(func.sum(case((table.c.ended_at > since, 1), else_=0)), 0),
    ).where(table.c.rollout_id == rollout_id)
    started, ended = connection.execute(query).one()
    return Lately(started, ended)


def tried_lately(connection: Connection, since: datetime) -> list[tuple[datetime, int, int]]:
    """What rollouts began from ``since`` on, by whole minutes, ascending: how many executions, and how many of those
    were retries."""
    lasting = select(rollouts.c.rollout_id).where(or_(rollouts.c.ended_at.is_(None), rollouts.c.ended_at > since))
    query = select(executions.c.created_at, executions.c.try_number).where(
        executions.c.run_id.in_(lasting), executions.c.created_at > since
    )
    minutes: dict[datetime, list[int]] = {}
    for created_at, try_number in connection.execute(query):
        counts = minutes.setdefault(created_at.replace(second=0, microsecond=0), [0, 0])
        counts[0] += 1
        counts[1] += try_number > 1
    return [(minute, begun, retries) for minute, (begun, retries) in sorted(minutes.items())]


def asked_to_end(connection: Connection, rollout_id: str) -> Asked:
    """How far the executions of a rollout that were asked to end are known to have ended."""
    table = executions
    asked = and_(table.c.run_id == rollout_id, table.c.cancel_requested.is_(True))
    # A fenced one has ended for us at once; until its agent is known to have left it, the phone may be at it.
    unconfirmed = or_(table.c.check_at.is_not(None), and_(table.c.attempt > 1, table.c.stopped_at.is_(None)))
    count = connection.execute(select(func.count()).where(asked)).scalar() or 0
    devices = connection.execute(select(table.c.device).where(asked, unconfirmed)).scalars()
    return Asked(count, tuple(devices))


def examples(connection: Connection, rollout_id: str, signatures: Iterable[Signature]) -> dict[Signature, str]:
    """An execution for each signature, always the same one of those whose member failed so last."""
    texts = {signature_text(signature): signature for signature in signatures}
    table = rollout_members
    found: dict[Signature, str] = {}
    for some in chunks(texts):
        query = (
            select(table.c.signature, func.max(table.c.execution_id))
            .where(table.c.rollout_id == rollout_id, table.c.signature.in_(some), table.c.execution_id != "")
            .group_by(table.c.signature)
        )
        for text, execution_id in connection.execute(query):
            found[texts[text]] = execution_id
    return found


def pictures(connection: Connection, execution_ids: Iterable[str]) -> dict[str, str]:
    """The digest of the picture of each execution's failure, where it has one."""
    found: dict[str, str] = {}
    for some in chunks(execution_ids):
        query = (
            select(artifacts.c.execution_id, artifacts.c.sha256)
            .where(artifacts.c.execution_id.in_(some), artifacts.c.name == FAILURE_PICTURE)
            .order_by(artifacts.c.number)
        )
        found.update((execution_id, digest) for execution_id, digest in connection.execute(query))
    return found
