"""Executions and their results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, case, func, insert, select, text, update

from droidfleet_controller.dispatch.execution import Execution, TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.store import run_values
from droidfleet_controller.store.schema import executions, results
from droidfleet_controller.store.sql import chunks
from droidfleet_shared.protocol.result import TaskResult

_COLUMNS = [column for column in executions.c if column.name != "number"]

_UPDATE = (
    update(executions)
    .where(executions.c.execution_id == bindparam("key"))
    .values({
        name: bindparam(name)
        for name in (
            "state",
            "attempt",
            "cancel_requested",
            "reason",
            "steps_done",
            "current_step_id",
            "progress_sequence",
            "iteration",
            "updated_at",
            "accepted_at",
            "started_at",
            "check_at",
            "version",
            "expires_at",
            "stopped_at",
            "result_head",
        )
    })
)  # fmt: skip


# Built once: building a statement costs more than running it.
_BY_ID = select(*_COLUMNS).where(executions.c.execution_id.in_(bindparam("ids", expanding=True)))
_QUEUED_SO_FAR = func.sum(case((executions.c.state == ExecutionState.QUEUED.value, 1), else_=0)).over(
    partition_by=executions.c.device, order_by=(executions.c.priority.desc(), executions.c.number), rows=(None, 0)
)
_PLACED = (
    select(*_COLUMNS, executions.c.number, _QUEUED_SO_FAR.label("place"))
    .where(executions.c.device.in_(bindparam("devices", expanding=True)), executions.c.check_at.is_not(None))
    .subquery()
)
_LINES = (
    select(*(column for column in _PLACED.c if column.name not in {"number", "place"}))
    .where((_PLACED.c.state != ExecutionState.QUEUED.value) | (_PLACED.c.place <= bindparam("limit")))
    .order_by(_PLACED.c.priority.desc(), _PLACED.c.number)
)
_FENCED = select(*_COLUMNS).where(
    executions.c.device.in_(bindparam("devices", expanding=True)),
    # As literals, so that the database sees that the index of exactly these serves.
    text("attempt > 1"),
    executions.c.stopped_at.is_(None),
)
_ADD = insert(executions)


@dataclass(frozen=True, slots=True)
class Result:
    """A result as it came, whole; ``label`` says why it does not count, where it does not."""

    execution_id: str
    attempt: int
    device: str
    label: str
    received_at: datetime
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a list of executions is narrowed to; empty: everything."""

    device: str = ""
    task_id: str = ""
    run_id: str = ""
    states: Sequence[ExecutionState] = ()


def add(connection: Connection, new: Sequence[Execution]) -> None:
    """Inserts executions; of one priority on one device the first runs first."""
    connection.execute(_ADD, [_values(execution) for execution in new])


def save(connection: Connection, changed: Sequence[Execution]) -> None:
    """Writes changed executions. Secrets of runs that thereby come to their end are forgotten."""
    if changed:
        connection.execute(_UPDATE, [{"key": each.execution_id, **_changing(each)} for each in changed])
    ended = {each.text.values_id for each in changed if each.terminal and each.text.values_id}
    if ended:
        run_values.forget_secrets(connection, ended)


def find(connection: Connection, execution_ids: Iterable[str]) -> dict[str, Execution]:
    """Executions by id, without the steps of their results; unknown ids are left out."""
    found: dict[str, Execution] = {}
    for some in chunks(sorted(set(execution_ids))):
        for row in connection.execute(_BY_ID, {"ids": some}):
            found[row.execution_id] = _execution(row)
    return found


def of_run(connection: Connection, run_id: str) -> list[Execution]:
    """The executions of a run, in the order asked."""
    query = select(*_COLUMNS).where(executions.c.run_id == run_id).order_by(executions.c.number)
    return [_execution(row) for row in connection.execute(query)]


def ids_of_run(connection: Connection, run_id: str) -> list[str]:
    """The ids of a run's executions; none when there is no such run."""
    return list(connection.execute(select(executions.c.execution_id).where(executions.c.run_id == run_id)).scalars())


def page(connection: Connection, wanted: Filter, *, before: int | None, limit: int) -> list[tuple[int, Execution]]:
    """Executions with their row numbers, newest first, from before row ``before`` on."""
    conditions: list[ColumnElement[bool]] = []
    if wanted.device:
        conditions.append(executions.c.device == wanted.device)
    if wanted.task_id:
        conditions.append(executions.c.task_id == wanted.task_id)
    if wanted.run_id:
        conditions.append(executions.c.run_id == wanted.run_id)
    if wanted.states:
        conditions.append(executions.c.state.in_([state.value for state in wanted.states]))
    if before is not None:
        conditions.append(executions.c.number < before)
    query = select(executions.c.number, *_COLUMNS).where(*conditions).order_by(executions.c.number.desc()).limit(limit)
    return [(row.number, _execution(row)) for row in connection.execute(query)]


def windows(connection: Connection, devices: Iterable[str]) -> dict[str, list[Execution]]:
    """What each device's document lists, in order."""
    return lines(connection, devices, limit=0)


def lines(connection: Connection, devices: Iterable[str], *, limit: int) -> dict[str, list[Execution]]:
    """What is in each device's window and the first ``limit`` of what is queued for it, in the order of their turns."""
    found: dict[str, list[Execution]] = {}
    for some in chunks(devices):
        for row in connection.execute(_LINES, {"devices": some, "limit": limit}):
            found.setdefault(row.device, []).append(_execution(row))
    for line in found.values():
        line.sort(key=lambda execution: execution.turn)
    return found


def fenced(connection: Connection, devices: Iterable[str]) -> list[Execution]:
    """Executions with a fenced attempt at which the device's agent may still be."""
    found: list[Execution] = []
    for some in chunks(devices):
        found.extend(_execution(row) for row in connection.execute(_FENCED, {"devices": some}))
    return found


def due(connection: Connection, now: datetime, *, limit: int) -> list[Execution]:
    """Live executions whose time of checking has come, the longest overdue first."""
    query = select(*_COLUMNS).where(executions.c.check_at <= now).order_by(executions.c.check_at).limit(limit)
    return [_execution(row) for row in connection.execute(query)]


def backlog(connection: Connection, devices: Sequence[str]) -> dict[str, int]:
    """How many executions wait for each device, queued or assigned; devices with none are left out."""
    counts: dict[str, int] = {}
    waiting = [ExecutionState.QUEUED.value, ExecutionState.ASSIGNED.value]
    for some in chunks(devices):
        query = (
            select(executions.c.device, func.count().label("waiting"))
            .where(executions.c.device.in_(some), executions.c.check_at.is_not(None), executions.c.state.in_(waiting))
            .group_by(executions.c.device)
        )
        counts.update((row.device, row.waiting) for row in connection.execute(query))
    return counts


def live_counts(connection: Connection) -> dict[ExecutionState, int]:
    """How many executions are in each live state."""
    query = (
        select(executions.c.state, func.count()).where(executions.c.check_at.is_not(None)).group_by(executions.c.state)
    )
    return {ExecutionState(state): count for state, count in connection.execute(query)}


def add_results(connection: Connection, new: Sequence[Result]) -> None:
    """Keeps results; the first one of an attempt stays."""
    columns = (results.c.execution_id, results.c.attempt, results.c.device)
    known: set[tuple[str, int, str]] = set()
    for some in chunks({result.execution_id for result in new}):
        for row in connection.execute(select(*columns).where(results.c.execution_id.in_(some))):
            known.add((row.execution_id, row.attempt, row.device))
    rows: list[dict[str, object]] = []
    for result in new:
        key = (result.execution_id, result.attempt, result.device)
        if key not in known:
            known.add(key)
            rows.append({name: getattr(result, name) for name in Result.__slots__})
    if rows:
        connection.execute(insert(results), rows)


def result(connection: Connection, execution_id: str) -> TaskResult | None:
    """The result that counts, whole; None when there is none."""
    query = select(results.c.body).where(results.c.execution_id == execution_id, results.c.label == "")
    body = connection.execute(query).scalar()
    return None if body is None else TaskResult.model_validate_json(body)


def _values(execution: Execution) -> dict[str, object]:
    return {
        "execution_id": execution.execution_id,
        "run_id": execution.run_id,
        "device": execution.device,
        "task_id": execution.task_id,
        "revision": execution.revision,
        "sha256": execution.text.sha256,
        "add_name": execution.text.add_name,
        "add_revision": execution.text.add_revision,
        "values_id": execution.text.values_id,
        "priority": execution.priority,
        "try_number": execution.try_number,
        "accept_within_s": execution.accept_within_s,
        "step_count": execution.step_count,
        "bound_s": execution.bound_s,
        "created_at": execution.created_at,
        **_changing(execution),
    }


def _changing(execution: Execution) -> dict[str, object]:
    return {
        "state": execution.state.value,
        "attempt": execution.attempt,
        "cancel_requested": execution.cancel_requested,
        "reason": execution.reason,
        "steps_done": execution.steps_done,
        "current_step_id": execution.current_step_id,
        "progress_sequence": execution.progress_sequence,
        "iteration": execution.iteration,
        "updated_at": execution.updated_at,
        "accepted_at": execution.accepted_at,
        "started_at": execution.started_at,
        "check_at": execution.check_at,
        "version": execution.version,
        "expires_at": execution.expires_at,
        "stopped_at": execution.stopped_at,
        "result_head": None if execution.result is None else _head(execution.result),
    }


def _head(result: TaskResult) -> str:
    """A result without its steps, for lists."""
    return result.model_copy(update={"steps": ()}).model_dump_json(by_alias=True, exclude_none=True)


def _execution(row: Row[Any]) -> Execution:
    head = row.result_head
    return Execution(
        execution_id=row.execution_id,
        run_id=row.run_id,
        device=row.device,
        task_id=row.task_id,
        revision=row.revision,
        text=TaskText(sha256=row.sha256, add_name=row.add_name, add_revision=row.add_revision, values_id=row.values_id),
        step_count=row.step_count,
        bound_s=row.bound_s,
        state=ExecutionState(row.state),
        attempt=row.attempt,
        cancel_requested=row.cancel_requested,
        reason=row.reason,
        steps_done=row.steps_done,
        current_step_id=row.current_step_id,
        progress_sequence=row.progress_sequence,
        iteration=row.iteration,
        created_at=row.created_at,
        updated_at=row.updated_at,
        expires_at=row.expires_at,
        accepted_at=row.accepted_at,
        started_at=row.started_at,
        check_at=row.check_at,
        version=row.version,
        result=None if head is None else TaskResult.model_validate_json(head),
        priority=row.priority,
        try_number=row.try_number,
        accept_within_s=row.accept_within_s,
        stopped_at=row.stopped_at,
    )
