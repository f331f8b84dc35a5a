"""What is counted over a rollout's members and executions, for people who look at it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, func, or_, select

from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.rollouts.rollout import Signature
from droidfleet_controller.rollouts.states import MemberState, Outcome
from droidfleet_controller.store.rollouts import signature_text
from droidfleet_controller.store.schema import artifacts, executions, rollout_members
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


def ended_since(connection: Connection, rollout_id: str, since: datetime) -> int:
    """How many members ended after ``since``."""
    table = rollout_members
    query = select(func.count()).where(table.c.rollout_id == rollout_id, table.c.ended_at > since)
    return connection.execute(query).scalar() or 0


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
