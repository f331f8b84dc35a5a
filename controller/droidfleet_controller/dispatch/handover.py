"""A name goes to an agent on another host: what the one before may have begun is never begun again.

The earlier agent may be cut off and still at work, and what it began is known on its host alone. So whatever its
document listed ends as lost (what really happened replaces that when it is heard of), and the next document is for the
new host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.assign import Assigned
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import documents, events, executions

log = structlog.get_logger(__name__)

REASON = "AGENT_REPLACED: an agent on another host has the name now; whether the earlier one began this is unknown."


class Handover:
    """Given to `Registry.on_granted`."""

    def __init__(self, *, publisher: Publisher, broadcast: Broadcast, metrics: Metrics) -> None:
        self._publisher = publisher
        self._broadcast = broadcast
        self._metrics = metrics

    def __call__(self, connection: Connection, hosts: Mapping[str, str], now: datetime) -> Callable[[], None]:
        """In the transaction in which ``hosts`` (agent to host id) got the names; the result is for after it."""
        before = documents.heads(connection, hosts)
        changed = {agent: hosts[agent] for agent, head in before.items() if head.host_id != hosts[agent]}
        if not changed:
            return lambda: None
        listed = executions.windows(connection, [agent for agent in changed if before[agent].host_id])
        lost = [
            replace(execution.moved(ExecutionState.LOST, now=now, reason=REASON), check_at=None, current_step_id="")
            for window in listed.values()
            for execution in window
        ]
        executions.save(connection, lost)
        events.add(connection, [happening("ExecutionLost", execution, now=now) for execution in lost])
        documents.bind(connection, changed)
        assigned = assign.refresh(connection, changed, now=now)
        return lambda: self._announce(assigned, lost)

    def _announce(self, assigned: Assigned, lost: list[Execution]) -> None:
        self._publisher.submit(assigned.documents)
        self._broadcast.executions([*lost, *assigned.changed])
        self._broadcast.events()
        for execution in lost:
            self._metrics.executions.labels(result=execution.state.value.lower()).inc()
            log.warning("execution_ended", execution_id=execution.execution_id, device=execution.device, reason=REASON)
