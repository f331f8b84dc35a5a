"""Rollouts, their members, decisions and membership logs. What is counted over them is `rollout_counts`' business."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, bindparam, insert, or_, select, update

from droidfleet_controller.dispatch.execution import Execution, TaskText
from droidfleet_controller.dispatch.states import BEGUN, LIVE, ExecutionState
from droidfleet_controller.rollouts.rollout import (
    Decision,
    Member,
    MembershipChange,
    Memory,
    Movement,
    Rollout,
    Rule,
    Signature,
    Subject,
)
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.rollouts.states import MemberState, Outcome, ReasonCode, RolloutState
from droidfleet_controller.rollouts.views import MemberFilter, MemberView, RolloutFilter
from droidfleet_controller.store import executions as stored_executions
from droidfleet_controller.store.schema import (
    executions,
    microseconds,
    rollout_decisions,
    rollout_members,
    rollout_membership,
    rollouts,
)
from droidfleet_controller.store.sql import ManyRows, Plain, chunks

SPECS_KEPT = 32
"""Documents that are not read again each time that their rollout is: one may hold values for ten thousand phones."""

ENDING = (RolloutState.CANCELLING, RolloutState.CANCELLED, RolloutState.ABORTED)
"""States in which nothing of a rollout should go on running."""

_CHANGING = (
    "state",
    "reason_code",
    "reason",
    "wave",
    "wave_sizes",
    "wave_opened_at",
    "version",
    "tick",
    "memory",
    "updated_at",
    "moved_at",
    "last_result_at",
    "ended_at",
)
_SAVE = (
    update(rollouts)
    .where(rollouts.c.rollout_id == bindparam("key"), rollouts.c.tick == bindparam("read_tick"))
    .values({name: bindparam(name) for name in _CHANGING})
)
_MEMBER = [column for column in rollout_members.c if column.name != "rollout_id"]
_MEMBER_NAMES = (
    "device",
    "wave",
    "state",
    "outcome",
    "tries",
    "execution_id",
    "values_id",
    "started_at",
    "ended_at",
    "retry_at",
    "signature",
    "reason",
)
_ADD_MEMBERS = ManyRows(insert(rollout_members), (*_MEMBER_NAMES, "rollout_id", "place"))
_SAVE_MEMBERS = ManyRows(
    update(rollout_members)
    .where(rollout_members.c.rollout_id == bindparam("of_rollout"), rollout_members.c.place == bindparam("at_place"))
    .values({name: bindparam(name) for name in _MEMBER_NAMES}),
    (*_MEMBER_NAMES, "of_rollout", "at_place"),
)


def add(connection: Connection, rollout: Rollout, *, request_id: str, digest: str) -> None:
    """Inserts a rollout. Its document holds no secrets."""
    connection.execute(
        insert(rollouts).values(
            rollout_id=rollout.rollout_id,
            request_id=request_id,
            digest=digest,
            spec=rollout.spec.model_dump_json(by_alias=True, exclude_none=True),
            task_id=rollout.subject.task_id,
            revision=rollout.subject.revision,
            subject=_subject_text(rollout.subject),
            created_at=rollout.created_at,
            schedule_id=rollout.schedule_id,
            intended_at=rollout.intended_at,
            actor=rollout.actor,
            **_changing(rollout),
        )
    )


def save(connection: Connection, rollout: Rollout, *, read_tick: int) -> bool:
    """Writes a changed rollout. False: somebody else wrote it since it had ``read_tick``, and nothing is written."""
    values = {"key": rollout.rollout_id, "read_tick": read_tick, **_changing(rollout)}
    return connection.execute(_SAVE, values).rowcount == 1


def get(connection: Connection, rollout_id: str) -> Rollout | None:
    """One rollout; None when there is none."""
    row = connection.execute(select(rollouts).where(rollouts.c.rollout_id == rollout_id)).first()
    return None if row is None else _rollout(row)


def by_request(connection: Connection, request_id: str) -> tuple[Rollout, str] | None:
    """The rollout of a request with the digest of what was asked for, if it was carried out."""
    row = connection.execute(select(rollouts).where(rollouts.c.request_id == request_id)).first()
    return None if row is None else (_rollout(row), row.digest)


def open_ids(connection: Connection) -> list[str]:
    """The rollouts that go on, the oldest first."""
    query = select(rollouts.c.rollout_id).where(rollouts.c.ended_at.is_(None)).order_by(rollouts.c.number)
    return list(connection.execute(query).scalars())


def page(connection: Connection, wanted: RolloutFilter, *, before: int | None, limit: int) -> list[tuple[int, Rollout]]:
    """Rollouts with their row numbers, newest first, from before row ``before`` on."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.states:
        conditions.append(rollouts.c.state.in_(sorted(wanted.states)))
    if wanted.schedule_id:
        conditions.append(rollouts.c.schedule_id == wanted.schedule_id)
    if before is not None:
        conditions.append(rollouts.c.number < before)
    query = select(rollouts).where(*conditions).order_by(rollouts.c.number.desc()).limit(limit)
    return [(row.number, _rollout(row)) for row in connection.execute(query)]


# Members.


def add_members(connection: Connection, rollout_id: str, members: Iterable[Member]) -> None:
    """Inserts members."""
    _ADD_MEMBERS.write(connection, [_member_row(rollout_id, member) for member in members])


def save_members(connection: Connection, rollout_id: str, members: Sequence[Member]) -> None:
    """Writes members by their places, new ones among them."""
    known: set[int] = set()
    for some in chunks(member.place for member in members):
        query = select(rollout_members.c.place).where(
            rollout_members.c.rollout_id == rollout_id, rollout_members.c.place.in_(some)
        )
        known.update(connection.execute(query).scalars())
    _SAVE_MEMBERS.write(connection, [_member_row(rollout_id, member) for member in members if member.place in known])
    add_members(connection, rollout_id, [member for member in members if member.place not in known])


def members(connection: Connection, rollout_id: str) -> list[Member]:
    """All members, by place."""
    query = select(*_MEMBER).where(rollout_members.c.rollout_id == rollout_id).order_by(rollout_members.c.place)
    return [_member(row) for row in connection.execute(query)]


def member_page(
    connection: Connection, rollout_id: str, wanted: MemberFilter, *, after: int, limit: int
) -> list[MemberView]:
    """Members by place from after place ``after`` on, with where their executions stand."""
    conditions: list[ColumnElement[bool]] = [
        rollout_members.c.rollout_id == rollout_id,
        rollout_members.c.place > after,
    ]
    if wanted.wave is not None:
        conditions.append(rollout_members.c.wave == wanted.wave)
    if wanted.states:
        conditions.append(rollout_members.c.state.in_(sorted(wanted.states)))
    if wanted.outcomes:
        conditions.append(rollout_members.c.outcome.in_(sorted(wanted.outcomes)))
    columns: list[ColumnElement[Any]] = [*_MEMBER, executions.c.state.label("execution_state")]
    query = (
        select(*columns)
        .outerjoin(executions, executions.c.execution_id == rollout_members.c.execution_id)
        .where(*conditions)
        .order_by(rollout_members.c.place)
        .limit(limit)
    )
    return [
        MemberView(
            member=_member(row),
            execution_state=None if row.execution_state is None else ExecutionState(row.execution_state),
        )
        for row in connection.execute(query)
    ]


def ended_unnoticed(connection: Connection, rollout_id: str) -> list[Execution]:
    """Executions of members that have ended, or turned out to have ended otherwise, which the members do not say."""
    ended = executions.c.check_at.is_(None)
    unnoticed = or_(
        and_(rollout_members.c.state == MemberState.STARTED.value, ended),
        and_(
            rollout_members.c.outcome == Outcome.SILENT.value,
            ended,
            executions.c.state != ExecutionState.LOST.value,
        ),
    )
    query = (
        select(executions.c.execution_id)
        .join(rollout_members, executions.c.execution_id == rollout_members.c.execution_id)
        .where(rollout_members.c.rollout_id == rollout_id, unnoticed)
    )
    found = stored_executions.find(connection, connection.execute(query).scalars().all())
    return list(found.values())


def still_running(connection: Connection, *, limit: int) -> list[tuple[str, RolloutState, str]]:
    """Executions that nobody has asked to end although their rollout has been ended: execution, the rollout's state and
    its reason. What has begun on members that left is let go on."""
    live = [state.value for state in LIVE]
    aborted = rollouts.c.state == RolloutState.ABORTED.value
    all_left = rollouts.c.reason_code == ReasonCode.MEMBERS_GONE.value
    query = (
        select(executions.c.execution_id, rollouts.c.state, rollouts.c.reason)
        .join(rollouts, rollouts.c.rollout_id == executions.c.run_id)
        .where(
            executions.c.check_at.is_not(None),
            executions.c.state.in_(live),
            rollouts.c.state.in_([state.value for state in ENDING]),
            or_(executions.c.cancel_requested.is_(False), aborted),
            or_(~all_left, executions.c.state.not_in([state.value for state in BEGUN])),
        )
        .order_by(executions.c.number)
        .limit(limit)
    )
    return [(row.execution_id, RolloutState(row.state), row.reason) for row in connection.execute(query)]


# Decisions and the membership log.


def add_decisions(connection: Connection, rollout_id: str, decisions: Sequence[Decision]) -> None:
    """Appends decisions."""
    if decisions:
        rows = [
            {
                "rollout_id": rollout_id,
                "at": decision.at,
                "rule": decision.rule.value,
                "wave": decision.wave,
                "numbers": json.dumps(dict(decision.numbers), ensure_ascii=False),
                "sentence": decision.sentence,
            }
            for decision in decisions
        ]
        connection.execute(insert(rollout_decisions), rows)


def decision_page(connection: Connection, rollout_id: str, *, after: int, limit: int) -> list[tuple[int, Decision]]:
    """Decisions with their row numbers, oldest first, from after row ``after`` on."""
    return [
        (
            row.number,
            Decision(
                at=row.at, rule=Rule(row.rule), wave=row.wave, numbers=json.loads(row.numbers), sentence=row.sentence
            ),
        )
        for row in _log(connection, rollout_decisions, rollout_id, after=after, limit=limit)
    ]


def add_membership(connection: Connection, rollout_id: str, changes: Sequence[MembershipChange]) -> None:
    """Appends lines to the membership log."""
    if changes:
        rows = [
            {
                "rollout_id": rollout_id,
                "at": change.at,
                "device": change.device,
                "movement": change.movement.value,
                "wave": change.wave,
                "reason": change.reason,
            }
            for change in changes
        ]
        connection.execute(insert(rollout_membership), rows)


def membership_page(
    connection: Connection, rollout_id: str, *, after: int, limit: int
) -> list[tuple[int, MembershipChange]]:
    """The membership log with row numbers, oldest first, from after row ``after`` on."""
    return [
        (
            row.number,
            MembershipChange(
                at=row.at, device=row.device, movement=Movement(row.movement), wave=row.wave, reason=row.reason
            ),
        )
        for row in _log(connection, rollout_membership, rollout_id, after=after, limit=limit)
    ]


def _log(connection: Connection, table: Table, rollout_id: str, *, after: int, limit: int) -> Iterable[Row[Any]]:
    return connection.execute(
        select(table)
        .where(table.c.rollout_id == rollout_id, table.c.number > after)
        .order_by(table.c.number)
        .limit(limit)
    )


# Rows and records.


def _changing(rollout: Rollout) -> dict[str, object]:
    return {
        "state": rollout.state.value,
        "reason_code": rollout.reason_code.value,
        "reason": rollout.reason,
        "wave": rollout.wave,
        "wave_sizes": json.dumps(rollout.wave_sizes),
        "wave_opened_at": rollout.wave_opened_at,
        "version": rollout.version,
        "tick": rollout.tick,
        "memory": _memory_text(rollout.memory),
        "updated_at": rollout.updated_at,
        "moved_at": rollout.moved_at,
        "last_result_at": rollout.last_result_at,
        "ended_at": rollout.ended_at,
    }


def _rollout(row: Row[Any]) -> Rollout:
    return Rollout(
        rollout_id=row.rollout_id,
        spec=_spec(row.spec),
        subject=_subject(row.task_id, row.revision, row.subject),
        state=RolloutState(row.state),
        reason_code=ReasonCode(row.reason_code),
        reason=row.reason,
        wave=row.wave,
        wave_sizes=tuple(json.loads(row.wave_sizes)),
        wave_opened_at=row.wave_opened_at,
        version=row.version,
        tick=row.tick,
        memory=_memory(row.memory),
        created_at=row.created_at,
        updated_at=row.updated_at,
        moved_at=row.moved_at,
        last_result_at=row.last_result_at,
        ended_at=row.ended_at,
        schedule_id=row.schedule_id,
        intended_at=row.intended_at,
        actor=row.actor,
    )


@lru_cache(maxsize=SPECS_KEPT)
def _spec(text: str) -> RolloutSpec:
    return RolloutSpec.model_validate_json(text)


def _subject_text(subject: Subject) -> str:
    return json.dumps(
        {
            "sha256": subject.text.sha256,
            "addName": subject.text.add_name,
            "addRevision": subject.text.add_revision,
            "stepCount": subject.step_count,
            "boundS": subject.bound_s,
            "repeatable": subject.repeatable,
        }
    )


def _subject(task_id: str, revision: int, text: str) -> Subject:
    kept = json.loads(text)
    return Subject(
        task_id=task_id,
        revision=revision,
        text=TaskText(sha256=kept["sha256"], add_name=kept["addName"], add_revision=kept["addRevision"]),
        step_count=kept["stepCount"],
        bound_s=kept["boundS"],
        repeatable=kept["repeatable"],
    )


def _memory_text(memory: Memory) -> str:
    soak_until = memory.soak_until
    kept = {
        "starts": [[at.isoformat(), count] for at, count in memory.starts],
        "signatures": [[*_parts(signature), count] for signature, count in memory.signatures.items()],
        "openBreakers": sorted(_parts(signature) for signature in memory.open_breakers),
        "acknowledged": [[wave, dict(counts)] for wave, counts in memory.acknowledged.items()],
        "soakUntil": None if soak_until is None else soak_until.isoformat(),
    }
    return json.dumps(kept, ensure_ascii=False)


def _memory(text: str) -> Memory:
    kept = json.loads(text)
    soak_until = kept["soakUntil"]
    return Memory(
        starts=tuple((datetime.fromisoformat(at), count) for at, count in kept["starts"]),
        signatures={Signature(*parts): count for *parts, count in kept["signatures"]},
        open_breakers=frozenset(Signature(*parts) for parts in kept["openBreakers"]),
        acknowledged=dict(kept["acknowledged"]),
        soak_until=None if soak_until is None else datetime.fromisoformat(soak_until),
    )


def _parts(signature: Signature) -> list[str]:
    return [signature.code, signature.step_id, signature.screen]


def signature_text(signature: Signature | None) -> str | None:
    """A signature as it is stored with a member."""
    return None if signature is None else json.dumps(_parts(signature), ensure_ascii=False)


def _member_row(rollout_id: str, member: Member) -> tuple[Plain, ...]:
    """In the order of `_MEMBER_NAMES`, then the key."""
    return (
        member.device,
        member.wave,
        member.state.value,
        member.outcome.value,
        member.tries,
        member.execution_id,
        member.values_id,
        microseconds(member.started_at),
        microseconds(member.ended_at),
        microseconds(member.retry_at),
        signature_text(member.signature),
        member.reason,
        rollout_id,
        member.place,
    )


def _member(row: Row[Any]) -> Member:
    return Member(
        device=row.device,
        place=row.place,
        wave=row.wave,
        state=MemberState(row.state),
        outcome=Outcome(row.outcome),
        tries=row.tries,
        execution_id=row.execution_id,
        values_id=row.values_id,
        started_at=row.started_at,
        ended_at=row.ended_at,
        retry_at=row.retry_at,
        signature=None if row.signature is None else Signature(*json.loads(row.signature)),
        reason=row.reason,
    )
