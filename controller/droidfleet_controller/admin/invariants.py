"""What always holds in a whole database, as queries for what breaks it. Reads, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, exists, func, literal, select, text
from sqlalchemy.exc import DatabaseError

from droidfleet_controller.admin.finding import Finding
from droidfleet_controller.dispatch.states import BEGUN, IN_WINDOW, LIVE, TERMINAL, ExecutionState
from droidfleet_controller.store.run_values import NO_SECRETS
from droidfleet_controller.store.schema import (
    agent_documents,
    devices,
    executions,
    results,
    rollout_members,
    rollouts,
    run_values,
    tasks,
    texts,
)

MAX_OF_A_KIND = 20
"""Findings of one kind that are spelt out; the rest is counted in the last one's message."""

RESTORE = "Restore a backup: droidfleet admin restore FILE"
REPORT = "This is a defect of droidfleet: report it with this line, and keep a backup of the database."


@dataclass(frozen=True, slots=True)
class _Rule:
    """``query`` gives a row for each breach, whose first column says where."""

    code: str
    what: str
    query: Select[Any]
    message: str
    hint: str = REPORT


def broken(connection: Connection) -> list[Finding]:
    """Everything that is wrong inside the database; nothing more is asked of one whose file is damaged."""
    found = damaged(connection)
    if found:
        return found
    return [finding for rule in _RULES for finding in _breaches(connection, rule)]


def damaged(connection: Connection) -> list[Finding]:
    """What SQLite says of its file; other databases watch over theirs themselves."""
    if connection.dialect.name != "sqlite":
        return []
    try:
        said = [str(row[0]) for row in connection.execute(text(f"PRAGMA integrity_check({MAX_OF_A_KIND})"))]
    except DatabaseError as error:
        said = [str(error.orig)]
    return [
        Finding(code="DATABASE_DAMAGED", where="database", message=line, hint=RESTORE) for line in said if line != "ok"
    ]


def _breaches(connection: Connection, rule: _Rule) -> Iterator[Finding]:
    found = [str(row[0]) for row in connection.execute(rule.query.limit(MAX_OF_A_KIND))]
    more = ""
    if len(found) == MAX_OF_A_KIND:
        count = connection.execute(select(func.count()).select_from(rule.query.subquery())).scalar_one()
        more = f" ({count - len(found)} more like it)" if count > len(found) else ""
    for number, where in enumerate(found, start=1):
        last = more if number == len(found) else ""
        yield Finding(code=rule.code, where=f"{rule.what} {where}", message=rule.message + last, hint=rule.hint)


def _words(states: frozenset[ExecutionState]) -> list[str]:
    return sorted(state.value for state in states)


def _none(column: ColumnElement[Any], wanted: ColumnElement[Any]) -> ColumnElement[bool]:
    return ~exists(select(literal(1)).where(column == wanted))


_live = executions.c.check_at.is_not(None)
_in_window = executions.c.state.in_(_words(IN_WINDOW))
_counted = select(results.c.execution_id).where(results.c.label == "")

_RULES = (
    _Rule(
        "LIVE_WITHOUT_DEADLINE",
        "execution",
        select(executions.c.execution_id).where(executions.c.state.in_(_words(LIVE)), ~_live),
        "it has not ended, and no deadline will ever end it.",
    ),
    _Rule(
        "ENDED_WITH_DEADLINE",
        "execution",
        select(executions.c.execution_id).where(executions.c.state.in_(_words(TERMINAL)), _live),
        "it has ended, and a deadline waits for it.",
    ),
    _Rule(
        "DEVICE_UNKNOWN",
        "execution",
        select(executions.c.execution_id).where(_live, _none(devices.c.name, executions.c.device)),
        "it is for a device that the database does not know.",
    ),
    _Rule(
        "DOCUMENT_NOT_MADE",
        "execution",
        select(executions.c.execution_id).where(_in_window, _none(agent_documents.c.agent, executions.c.device)),
        "it is assigned, and its agent has no document that says so.",
    ),
    _Rule(
        "TEXT_MISSING",
        "execution",
        select(executions.c.execution_id).where(_live, _none(texts.c.sha256, executions.c.sha256)),
        "the text of its task is not there, so it can never be sent.",
        RESTORE,
    ),
    _Rule(
        "TASK_TEXT_MISSING",
        "task",
        select(tasks.c.task_id + literal("@") + tasks.c.revision.cast(tasks.c.task_id.type)).where(
            _none(texts.c.sha256, tasks.c.sha256)
        ),
        "its text is not there.",
        "Save the task again: droidfleet task save FILE",
    ),
    _Rule(
        "VALUES_MISSING",
        "execution",
        select(executions.c.execution_id).where(
            _live, executions.c.values_id != "", _none(run_values.c.values_id, executions.c.values_id)
        ),
        "the values that it was begun with are not there.",
        RESTORE,
    ),
    _Rule(
        "SECRETS_KEPT",
        "values",
        select(run_values.c.values_id).where(
            run_values.c.secrets != NO_SECRETS,
            run_values.c.secrets.not_like("{%: null}"),
            run_values.c.held_by == "",
            ~exists(select(literal(1)).where(executions.c.values_id == run_values.c.values_id, _live)),
        ),
        "secrets are kept that nothing needs any more.",
    ),
    _Rule(
        "RESULT_MISSING",
        "execution",
        select(executions.c.execution_id).where(
            executions.c.state == ExecutionState.SUCCEEDED.value, executions.c.execution_id.not_in(_counted)
        ),
        "it succeeded, and no result says so.",
    ),
    _Rule(
        "COUNTED_TWICE",
        "execution",
        _counted.group_by(results.c.execution_id).having(func.count() > 1),
        "more than one result counts.",
    ),
    _Rule(
        "TWO_RUNNING",
        "device",
        select(executions.c.device)
        .where(executions.c.state.in_(_words(BEGUN)), _live)
        .group_by(executions.c.device)
        .having(func.count() > 1),
        "two executions run on it, by what was reported.",
        "An agent runs one at a time: see its events, and cancel the one that it is not at.",
    ),
    _Rule(
        "PUBLISHED_AHEAD",
        "device",
        select(agent_documents.c.agent).where(agent_documents.c.published_generation > agent_documents.c.generation),
        "the broker confirmed a newer document than there is.",
        "Make the broker's content anew: droidfleet admin rebuild-bus",
    ),
    _Rule(
        "MEMBER_WITHOUT_EXECUTION",
        "rollout",
        select(rollout_members.c.rollout_id + literal(", ") + rollout_members.c.device)
        .join(rollouts, rollouts.c.rollout_id == rollout_members.c.rollout_id)
        .where(
            rollouts.c.ended_at.is_(None),
            rollout_members.c.execution_id != "",
            _none(executions.c.execution_id, rollout_members.c.execution_id),
        ),
        "its last execution is not there, so it never ends.",
        "Abort the rollout, and start it again on the devices that did not end.",
    ),
)

RULES: tuple[str, ...] = ("DATABASE_DAMAGED", *(rule.code for rule in _RULES))
"""Every code that `broken` finds."""
