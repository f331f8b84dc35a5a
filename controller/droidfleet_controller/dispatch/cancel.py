"""Ending executions on request: at once where they wait here, else by the agent at its next step boundary, or fenced.

A fenced one ends here at once. Its attempt's number is given up, so that whatever comes of it later is labelled and
never counted; its agent is no longer assigned it, and therefore stops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.assign import Assigned
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.reading import not_found
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import CANCEL_REQUESTED, MAX_REASON
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import events, executions
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_shared.clock import Clock

log = structlog.get_logger(__name__)

ABORTED = "ABORTED"
"""The code of a reason when an attempt was fenced; the words of who asked for it follow."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Which execution shall end and why, in the words of who asks. ``fence``: at once, and nothing of it counts."""

    execution_id: str
    reason: str = ""
    fence: bool = False


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What a withdrawal changed, and what has to be published for it; None: nothing."""

    changed: tuple[Execution, ...] = ()
    assigned: Assigned | None = None


class Cancels:
    """The use case CancelExecution."""

    def __init__(
        self, *, database: Database, clock: Clock, publisher: Publisher, broadcast: Broadcast, metrics: Metrics
    ) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._broadcast = broadcast
        self._metrics = metrics

    async def cancel(self, execution_id: str, *, reason: str, actor: str) -> Execution:
        """Asks for the end of an execution. One that has ended, or is being cancelled, is returned as it is.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND``.
        """
        now = self._clock.now()
        execution, _ = await self._database.run(
            lambda connection: _cancel(connection, execution_id, reason, actor, now),
            after=lambda cancelled: self.announce(cancelled[1]),
        )
        return execution

    def announce(self, withdrawn: Withdrawn) -> None:
        """Publishes, tells and counts what `withdraw` did; to be called after its transaction."""
        if withdrawn.assigned is not None:
            self._publisher.submit(withdrawn.assigned.documents)
            self._broadcast.executions(withdrawn.assigned.changed)
        for execution in withdrawn.changed:
            log.info("cancel_requested", execution_id=execution.execution_id, state=execution.state.value)
            if execution.terminal:
                self._metrics.executions.labels(result=execution.state.value.lower()).inc()
        if withdrawn.changed:
            self._broadcast.executions(withdrawn.changed)
            self._broadcast.events()


def withdraw(connection: Connection, wanted: Sequence[Withdrawal], *, now: datetime) -> Withdrawn:
    """Ends executions, or asks their agents to, inside the caller's transaction. `Cancels.announce` is for after it.

    Unknown ones, those that have ended, and those that are asked for what was asked before are left as they are.
    """
    found = executions.find(connection, [withdrawal.execution_id for withdrawal in wanted])
    changed: dict[str, Execution] = {}
    for withdrawal in wanted:
        execution = changed.get(withdrawal.execution_id, found.get(withdrawal.execution_id))
        if execution is None or execution.terminal or (execution.cancel_requested and not withdrawal.fence):
            continue
        changed[execution.execution_id] = _withdrawn(execution, withdrawal, now)
    if not changed:
        return Withdrawn()
    executions.save(connection, list(changed.values()))
    events.add(connection, [happening(_kind(execution), execution, now=now) for execution in changed.values()])
    listed = {each.device for each in changed.values() if found[each.execution_id].state is not ExecutionState.QUEUED}
    assigned = assign.refresh(connection, listed, now=now) if listed else None
    return Withdrawn(tuple(changed.values()), assigned)


def _withdrawn(execution: Execution, withdrawal: Withdrawal, now: datetime) -> Execution:
    waits_here = execution.state is ExecutionState.QUEUED
    code = ABORTED if withdrawal.fence else CANCEL_REQUESTED
    words = withdrawal.reason[:MAX_REASON]
    reason = f"{code}: {words}" if words else code
    if not waits_here and not withdrawal.fence:
        return replace(execution, cancel_requested=True, reason=reason, updated_at=now, version=execution.version + 1)
    return replace(
        execution.moved(ExecutionState.CANCELLED, now=now, reason=reason),
        attempt=execution.attempt if waits_here else execution.attempt + 1,
        cancel_requested=True,
        check_at=None,
        current_step_id="",
    )


def _kind(execution: Execution) -> str:
    return "ExecutionCancelled" if execution.terminal else "CancelRequested"


def _cancel(
    connection: Connection, execution_id: str, reason: str, actor: str, now: datetime
) -> tuple[Execution, Withdrawn]:
    withdrawn = withdraw(connection, [Withdrawal(execution_id, reason)], now=now)
    if withdrawn.changed:
        line = AuditLine(
            at=now, actor=actor, command="CancelExecution", subject=execution_id, details=reason[:MAX_REASON]
        )
        events.add_audit(connection, line)
        return withdrawn.changed[0], withdrawn
    execution = executions.find(connection, [execution_id]).get(execution_id)
    if execution is None:
        raise not_found(execution_id)
    return execution, withdrawn
