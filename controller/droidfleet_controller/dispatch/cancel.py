"""Ending an execution on request: at once while it waits here, else by the agent at its next step boundary."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The execution now; ``changed``: it was not so before; ``assigned``: what has to be published."""

    execution: Execution
    changed: bool = False
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
        cancelled = await self._database.run(
            lambda connection: _cancel(connection, execution_id, reason[:MAX_REASON], actor, now), after=self._announce
        )
        return cancelled.execution

    def _announce(self, cancelled: Cancelled) -> None:
        if not cancelled.changed:
            return
        execution = cancelled.execution
        log.info("cancel_requested", execution_id=execution.execution_id, state=execution.state.value)
        if cancelled.assigned is not None:
            self._publisher.submit(cancelled.assigned.documents)
            self._broadcast.executions(cancelled.assigned.changed)
        if execution.terminal:
            self._metrics.executions.labels(result=execution.state.value.lower()).inc()
        self._broadcast.executions([execution])
        self._broadcast.events()


def _cancel(connection: Connection, execution_id: str, reason: str, actor: str, now: datetime) -> Cancelled:
    execution = executions.find(connection, [execution_id]).get(execution_id)
    if execution is None:
        raise not_found(execution_id)
    if execution.terminal or execution.cancel_requested:
        return Cancelled(execution)
    said = f"{CANCEL_REQUESTED}: {reason}" if reason else CANCEL_REQUESTED
    if execution.state is ExecutionState.QUEUED:
        changed = replace(
            execution.moved(ExecutionState.CANCELLED, now=now, reason=said), cancel_requested=True, check_at=None
        )
        kind = "ExecutionCancelled"
    else:
        changed = replace(execution, cancel_requested=True, reason=said, updated_at=now, version=execution.version + 1)
        kind = "CancelRequested"
    executions.save(connection, [changed])
    events.add(connection, [happening(kind, changed, now=now)])
    events.add_audit(
        connection, AuditLine(at=now, actor=actor, command="CancelExecution", subject=execution_id, details=reason)
    )
    assigned = None if changed.terminal else assign.refresh(connection, [changed.device], now=now)
    return Cancelled(changed, changed=True, assigned=assigned)
