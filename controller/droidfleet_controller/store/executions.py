"""Executions and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, case, func, insert, select, text, update

from droidfleet_controller.dispatch.execution import Execution, TaskText
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.store import run_values
from droidfleet_controller.store.schema import executions, instant, microseconds, plain, results
from droidfleet_controller.store.sql import KeyedRows, ManyRows, Plain, chunks
from droidfleet_shared.protocol.result import TaskResult

_FIXED = (
    "execution_id",
    "run_id",
    "device",
    "task_id",
    "revision",
    "sha256",
    "add_name",
    "add_revision",
    "values_id",
    "priority",
    "try_number",
    "accept_within_s",
    "step_count",
    "bound_s",
    "created_at",
)
"""Columns that never change, in the order of `_fixed`."""

_STANDING = (
    "state",
    "attempt",
    "cancel_requested",
    "reason",
    "accepted_at",
    "started_at",
    "check_at",
    "expires_at",
    "stopped_at",
    "pause_requested",
    "counts_from",
    "result_head",
)
_PROGRESS = ("steps_done", "current_step_id", "progress_sequence", "iteration", "updated_at", "version")
"""What a step changes. None of it is in an index, so that writing it alone costs half."""

_CHANGING = (*_STANDING, *_PROGRESS)
"""Columns that change, in the order of `_changing`."""

_COLUMNS = [plain(executions.c[name]) for name in (*_FIXED, *_CHANGING)]

# Built once: building a statement costs more than running it.
_ADD = ManyRows(insert(executions), (*_FIXED, *_CHANGING))
_SAVE = ManyRows(
    update(executions)
    .where(executions.c.execution_id == bindparam("key"))
    .values({name: bindparam(name) for name in _CHANGING}),
    ("key", *_CHANGING),
)
_SAVE_PROGRESS = ManyRows(
    update(executions)
    .where(executions.c.execution_id == bindparam("key"))
    .values({name: bindparam(name) for name in _PROGRESS}),
    ("key", *_PROGRESS),
)
_BY_ID = KeyedRows(select(*_COLUMNS), executions.c.execution_id)
_QUEUED_SO_FAR = func.sum(case((executions.c.state == ExecutionState.QUEUED.value, 1), else_=0)).over(
    partition_by=executions.c.device, order_by=(executions.c.priority.desc(), executions.c.number), rows=(None, 0)
)
_PLACED = (
    select(*_COLUMNS, executions.c.number, _QUEUED_SO_FAR.label("place"))
    .where(executions.c.device.in_(bindparam("devices", expanding=True)), executions.c.check_at.is_not(None))
    .subquery()
)
_DUE = (
    select(*_COLUMNS)
    .where(executions.c.check_at <= bindparam("now"))
    .order_by(executions.c.check_at)
    .limit(bindparam("limit"))
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


MAX_REMEMBERED = 20_000
"""Twice the executions that a fleet of 10,000 runs at a time; about 40 MB."""

_remembered: dict[str, tuple[tuple[Plain, ...], Execution]] = {}
"""Records with the rows that they were written as. A row that reads exactly so is that record, whoever wrote it: making
one from its row is the dearest part of taking in an event."""


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
    _ADD.write(connection, [(*_fixed(each), *_changing(each)) for each in new])


def save(
    connection: Connection, changed: Sequence[Execution], *, read: Mapping[str, Execution] = MappingProxyType({})
) -> None:
    """Writes changed executions. Secrets of runs that thereby come to their end are forgotten.

    ``read``: executions as they were read in this same transaction; of what only went on, only the progress is written.
    """
    rows = {each.execution_id: _changing(each) for each in changed}
    whole: list[tuple[Plain, ...]] = []
    progress: list[tuple[Plain, ...]] = []
    for execution_id, row in rows.items():
        before = read.get(execution_id)
        if before is None or _changing(before)[: len(_STANDING)] != row[: len(_STANDING)]:
            whole.append((execution_id, *row))
        else:
            progress.append((execution_id, *row[len(_STANDING) :]))
    _SAVE.write(connection, whole)
    _SAVE_PROGRESS.write(connection, progress)
    _remember(changed, rows)
    ended = {each.text.values_id for each in changed if each.terminal and each.text.values_id}
    if ended:
        run_values.forget_secrets(connection, ended)


def find(connection: Connection, execution_ids: Iterable[str]) -> dict[str, Execution]:
    """Executions by id, without the steps of their results; unknown ids are left out."""
    rows = _BY_ID.read(connection, sorted(set(execution_ids)))
    return {execution.execution_id: execution for execution in map(_execution, rows)}


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
    query = select(*_COLUMNS, executions.c.number).where(*conditions).order_by(executions.c.number.desc()).limit(limit)
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
    return [_execution(row) for row in connection.execute(_DUE, {"now": now, "limit": limit})]


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


def _fixed(execution: Execution) -> tuple[Plain, ...]:
    text = execution.text
    return (
        execution.execution_id,
        execution.run_id,
        execution.device,
        execution.task_id,
        execution.revision,
        text.sha256,
        text.add_name,
        text.add_revision,
        text.values_id,
        execution.priority,
        execution.try_number,
        execution.accept_within_s,
        execution.step_count,
        execution.bound_s,
        microseconds(execution.created_at),
    )


def _changing(execution: Execution) -> tuple[Plain, ...]:
    return (
        execution.state.value,
        execution.attempt,
        execution.cancel_requested,
        execution.reason,
        microseconds(execution.accepted_at),
        microseconds(execution.started_at),
        microseconds(execution.check_at),
        microseconds(execution.expires_at),
        microseconds(execution.stopped_at),
        execution.pause_requested,
        microseconds(execution.counts_from),
        None if execution.result is None else _head(execution.result),
        execution.steps_done,
        execution.current_step_id,
        execution.progress_sequence,
        execution.iteration,
        microseconds(execution.updated_at),
        execution.version,
    )


def _head(result: TaskResult) -> str:
    """A result without its steps, for lists."""
    return result.model_copy(update={"steps": ()}).model_dump_json(by_alias=True, exclude_none=True)


def _execution(row: Sequence[Any]) -> Execution:
    """The execution of a row that begins with `_COLUMNS`."""
    given = tuple(row[: len(_COLUMNS)])
    known, execution = _remembered.get(given[0], ((), None))
    return execution if execution is not None and known == given else _made(given)


def _remember(changed: Iterable[Execution], rows: Mapping[str, tuple[Plain, ...]]) -> None:
    """Notes the rows of running executions: the next event of each reads it again."""
    if len(_remembered) > MAX_REMEMBERED:
        _remembered.clear()
    for each in changed:
        if each.terminal:
            _remembered.pop(each.execution_id, None)
        else:
            _remembered[each.execution_id] = ((*_fixed(each), *rows[each.execution_id]), each)


def _made(row: tuple[Any, ...]) -> Execution:
    # Taken apart at once: asking a row for its columns by name takes longer than making the record.
    (
        execution_id,
        run_id,
        device,
        task_id,
        revision,
        sha256,
        add_name,
        add_revision,
        values_id,
        priority,
        try_number,
        accept_within_s,
        step_count,
        bound_s,
        created_at,
        state,
        attempt,
        cancel_requested,
        reason,
        accepted_at,
        started_at,
        check_at,
        expires_at,
        stopped_at,
        pause_requested,
        counts_from,
        head,
        steps_done,
        current_step_id,
        progress_sequence,
        iteration,
        updated_at,
        version,
    ) = row
    return Execution(
        execution_id=execution_id,
        run_id=run_id,
        device=device,
        task_id=task_id,
        revision=revision,
        text=TaskText(sha256=sha256, add_name=bool(add_name), add_revision=bool(add_revision), values_id=values_id),
        step_count=step_count,
        bound_s=bound_s,
        state=ExecutionState(state),
        attempt=attempt,
        cancel_requested=bool(cancel_requested),
        reason=reason,
        steps_done=steps_done,
        current_step_id=current_step_id,
        progress_sequence=progress_sequence,
        iteration=iteration,
        created_at=instant(created_at),
        updated_at=instant(updated_at),
        expires_at=instant(expires_at),
        accepted_at=None if accepted_at is None else instant(accepted_at),
        started_at=None if started_at is None else instant(started_at),
        check_at=None if check_at is None else instant(check_at),
        version=version,
        result=None if head is None else TaskResult.model_validate_json(head),
        priority=priority,
        try_number=try_number,
        accept_within_s=accept_within_s,
        stopped_at=None if stopped_at is None else instant(stopped_at),
        pause_requested=bool(pause_requested),
        counts_from=None if counts_from is None else instant(counts_from),
    )
