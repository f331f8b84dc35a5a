"""Holding executions and letting them go on, as their agents confirm."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
from droidfleet_controller.dispatch.window import MAX_REASON
from droidfleet_controller.store import events, executions
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import PreconditionError

log = structlog.get_logger(__name__)

PAUSE_REQUESTED = "PAUSE_REQUESTED"
"""The code of a reason when somebody wants an execution held; their words follow it."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The execution as it is now, and what has to be published for it; ``changed`` is false where nothing was new."""

    execution: Execution
    changed: bool = False
    assigned: Assigned | None = None


class Pauses:
    """The use cases PauseExecution and ResumeExecution."""

    def __init__(self, *, database: Database, clock: Clock, publisher: Publisher, broadcast: Broadcast) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._broadcast = broadcast

    async def pause(self, execution_id: str, *, reason: str, actor: str) -> Execution:
        """Asks for an execution to be held. One that is held already, or is asked to be, is returned as it is.

        Raises:
            NotFoundError: ``EXECUTION_NOT_FOUND``.
            PreconditionError: ``EXECUTION_ENDED``, also while it is being cancelled.
        """
        return await self._ask(execution_id, pause=True, reason=reason, actor=actor)

    async def resume(self, execution_id: str, *, actor: str) -> Execution:
        """Lets an execution go on. One that nobody paused is returned as it is.

        Raises:
            NotFoundError, PreconditionError: as `pause`.
        """
        return await self._ask(execution_id, pause=False, reason="", actor=actor)

    async def _ask(self, execution_id: str, *, pause: bool, reason: str, actor: str) -> Execution:
        line = AuditLine(
            at=self._clock.now(),
            actor=actor,
            command="PauseExecution" if pause else "ResumeExecution",
            subject=execution_id,
            details=reason[:MAX_REASON],
        )
        asked = await self._database.run(
            lambda connection: _ask(connection, pause=pause, line=line), after=self._announce
        )
        return asked.execution

    def _announce(self, asked: _Asked) -> None:
        if not asked.changed:
            return
        execution = asked.execution
        kind = "pause_requested" if execution.pause_requested else "resume_requested"
        log.info(kind, execution_id=execution.execution_id, state=execution.state.value)
        if asked.assigned is not None:
            self._publisher.submit(asked.assigned.documents)
            self._broadcast.executions(asked.assigned.changed)
        self._broadcast.executions([execution])
        self._broadcast.events()


def _ask(connection: Connection, *, pause: bool, line: AuditLine) -> _Asked:
    """``line``: who asks what of which execution, and when."""
    execution_id, now = line.subject, line.at
    execution = executions.find(connection, [execution_id]).get(execution_id)
    if execution is None:
        raise not_found(execution_id)
    if execution.terminal or execution.cancel_requested:
        standing = f"is {execution.state}" if execution.terminal else "is being cancelled"
        raise PreconditionError("EXECUTION_ENDED", f"the execution {execution_id} {standing}.")
    if execution.pause_requested is pause:
        return _Asked(execution)
    said = (f"{PAUSE_REQUESTED}: {line.details}" if line.details else PAUSE_REQUESTED) if pause else ""
    execution = replace(execution, pause_requested=pause, reason=said, updated_at=now, version=execution.version + 1)
    executions.save(connection, [execution])
    events.add(connection, [happening("PauseRequested" if pause else "ResumeRequested", execution, now=now)])
    events.add_audit(connection, line)
    listed = execution.state is not ExecutionState.QUEUED
    return _Asked(execution, True, assign.refresh(connection, [execution.device], now=now) if listed else None)
