"""Applies deadlines, and what heartbeats say about documents, every second."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.deadlines import Verdict, judge
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import Document
from droidfleet_controller.fleet.device import Device
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import documents, events, executions
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import UnavailableError

log = structlog.get_logger(__name__)

SWEEP_S = 1.0
"""Deadlines are met to the second."""

MAX_DUE = 500
"""Executions judged in one sweep; the longest overdue first, the others a second later."""


@dataclass(slots=True)
class Swept:
    """What one sweep changed; ``ended``: those of ``changed`` that it ended."""

    changed: list[Execution] = field(default_factory=list)
    ended: list[Execution] = field(default_factory=list)
    lines: list[FleetEvent] = field(default_factory=list)
    documents: tuple[Document, ...] = ()


@dataclass(slots=True)
class _Heard:
    """What heartbeats said since the last sweep."""

    back: set[str] = field(default_factory=set)
    generations: dict[str, int] = field(default_factory=dict)


class Sweeper:
    """The clockwork of dispatch."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        registry: Registry,
        publisher: Publisher,
        broadcast: Broadcast,
        metrics: Metrics,
    ) -> None:
        self._database = database
        self._clock = clock
        self._registry = registry
        self._publisher = publisher
        self._broadcast = broadcast
        self._metrics = metrics
        self._heard = _Heard()
        self._applied: dict[str, int] = {}

    def heard(self, device: Device, back: bool) -> None:
        """Notes a heartbeat (`Registry.on_heard`)."""
        beat = device.heartbeat
        # What it applied of another database says nothing about ours.
        generation = beat.generation if beat.epoch == self._publisher.epoch else 0
        if self._applied.get(device.name) != generation:
            self._heard.generations[device.name] = generation
        if back:
            self._heard.back.add(device.name)

    async def run(self) -> None:
        """Sweeps until cancelled."""
        while True:
            await self._clock.sleep(SWEEP_S)
            try:
                await self.sweep()
            except UnavailableError as error:
                log.warning("sweep_failed", code=error.code, message=error.message)

    async def sweep(self) -> None:
        """One round.

        Raises:
            UnavailableError: the database failed; nothing is lost, the next round does it.
        """
        now = self._clock.now()
        heard, self._heard = self._heard, _Heard()
        try:
            await self._database.run(lambda connection: self._sweep(connection, heard, now), after=self._announce)
        except UnavailableError:
            self._heard.back |= heard.back
            self._heard.generations = heard.generations | self._heard.generations
            raise
        self._applied |= heard.generations

    def _sweep(self, connection: Connection, heard: _Heard, now: datetime) -> Swept:
        swept = Swept()
        stale = _settle(connection, heard)
        swept.changed.extend(self._stopped(connection, heard, now))
        for execution in executions.due(connection, now, limit=MAX_DUE):
            judgement = judge(execution, agent_silent=self._registry.silent(execution.device), now=now)
            match judgement.verdict:
                case Verdict.WAIT:
                    swept.changed.append(replace(execution, check_at=judgement.check_at))
                case Verdict.WITHDRAW:
                    swept.changed.append(replace(execution, check_at=judgement.check_at))
                    stale.add(execution.device)
                case Verdict.EXPIRE:
                    expired = execution.moved(ExecutionState.EXPIRED, now=now, reason=judgement.reason)
                    _end(swept, expired, "ExecutionExpired", now)
                case Verdict.LOSE:
                    lost = execution.moved(ExecutionState.LOST, now=now, reason=judgement.reason)
                    _end(swept, lost, "ExecutionLost", now)
                    stale.add(execution.device)
        executions.save(connection, swept.changed)
        events.add(connection, swept.lines)
        if stale:
            assigned = assign.refresh(connection, stale, now=now)
            swept.documents = assigned.documents
            swept.changed.extend(assigned.changed)
        return swept

    def _stopped(self, connection: Connection, heard: _Heard, now: datetime) -> list[Execution]:
        """Fenced executions that their agents are known not to be at: they follow the newest document, which lists them
        no more, and run something else. What had begun is reported besides; what never reached them is not."""
        fenced = executions.fenced(connection, heard.generations)
        heads = documents.heads(connection, {execution.device for execution in fenced}) if fenced else {}
        stopped: list[Execution] = []
        for execution in fenced:
            device, head = self._registry.find(execution.device), heads.get(execution.device)
            if device is None or head is None or heard.generations[execution.device] != head.generation:
                continue
            running = device.heartbeat.running
            if running is None or running.execution_id != execution.execution_id:
                stopped.append(execution.stopped(now))
        return stopped

    def _announce(self, swept: Swept) -> None:
        self._publisher.submit(swept.documents)
        self._broadcast.executions(swept.changed)
        if swept.lines:
            self._broadcast.events()
        for execution in swept.ended:
            self._metrics.executions.labels(result=execution.state.value.lower()).inc()
            log.warning(
                "execution_ended",
                execution_id=execution.execution_id,
                device=execution.device,
                state=execution.state.value,
                reason=execution.reason,
            )


def _settle(connection: Connection, heard: _Heard) -> set[str]:
    """Drops receipts that agents have seen; returns the agents that need a document of a newer generation.

    An agent that was away reads its document again, so the times to start in it must be counted from now. One that has
    applied a newer document than this database knows of (it was restored from a backup) would ignore ours for ever.
    """
    more = documents.settle_receipts(connection, heard.generations)
    heads = documents.heads(connection, {*heard.generations, *heard.back})
    ours = {agent: head.generation for agent, head in heads.items()}
    for agent, generation in heard.generations.items():
        if generation > ours.get(agent, 0):
            log.warning("generation_behind", agent=agent, ours=ours.get(agent, 0), theirs=generation)
            documents.raise_to(connection, agent, generation)
            heard.back.add(agent)
    # What the broker may hold for an agent that this database knows nothing of comes from another one: it is emptied.
    unknown = heard.back - ours.keys()
    with_work = executions.windows(connection, heard.back).keys()
    behind = {agent for agent, generation in heard.generations.items() if generation > ours.get(agent, 0)}
    return unknown | with_work | behind | more


def _end(swept: Swept, ended: Execution, kind: str, now: datetime) -> None:
    ended = replace(ended, check_at=None, current_step_id="")
    swept.changed.append(ended)
    swept.ended.append(ended)
    swept.lines.append(happening(kind, ended, now=now))
