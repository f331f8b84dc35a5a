"""Takes agents' events from the broker into the database: a batch, one transaction, then the acknowledgement.

Every message may come again, in any order, and unreadable: it is recorded once, or recorded as unreadable, and always
acknowledged, so that nothing can block what comes behind it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from random import Random

import structlog
from sqlalchemy import Connection

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch import artifacts, assign
from droidfleet_controller.dispatch.artifacts import Admitted
from droidfleet_controller.dispatch.deadlines import first_check
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import reported, unreadable
from droidfleet_controller.dispatch.progress import Label, apply
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import Document
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import artifacts as stored_artifacts
from droidfleet_controller.store import documents, events, executions
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import FleetEvent
from droidfleet_controller.store.executions import Result
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import (
    ArtifactStored,
    BadMessageError,
    Event,
    ExecutionFinished,
    ExecutionRef,
    ExecutionRejected,
    decode_event,
)
from droidfleet_shared.bus.port import Bus, BusUnavailableError, NoRespondersError, StoredMessage
from droidfleet_shared.bus.streams import EVENTS, EVENTS_READER
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import UnavailableError

log = structlog.get_logger(__name__)

BATCH = 512
"""Events in one transaction: few enough to keep others waiting for some 30 ms only, and only when so many have come."""

FETCH_TIMEOUT_S = 5.0
"""A waiting pull that the broker lost is noticed after this long."""

PROVISION_TIMEOUT_S = 10.0

MAX_COUNT = 2**31 - 1
"""Attempts and sequences fit an INTEGER column."""

RETRY_BASE_S = 0.25
RETRY_CAP_S = 10.0


@dataclass(slots=True)
class Recorded:
    """What one batch changed; filled inside its transaction."""

    changed: dict[str, Execution] = field(default_factory=dict)
    accepted: list[Execution] = field(default_factory=list)
    ended: list[Execution] = field(default_factory=list)
    lines: list[FleetEvent] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    artifacts: list[StoredArtifact] = field(default_factory=list)
    crowded_out: list[str] = field(default_factory=list)
    """Digests whose files have to go, to make room."""
    receipts: dict[str, list[ExecutionRef]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    documents: tuple[Document, ...] = ()


Item = tuple[StoredMessage, Event | FleetEvent]
"""A message with what it says, or with the event that reports it as unreadable."""


class Ingest:
    """The reader of the EVENTS stream. ``artifact_quota_bytes``: of all files of artifacts together."""

    def __init__(
        self,
        *,
        bus: Bus,
        database: Database,
        clock: Clock,
        random: Random,
        publisher: Publisher,
        broadcast: Broadcast,
        metrics: Metrics,
        files: ArtifactFiles,
        artifact_quota_bytes: int,
    ) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
        self._random = random
        self._publisher = publisher
        self._broadcast = broadcast
        self._metrics = metrics
        self._files = files
        self._quota_bytes = artifact_quota_bytes

    async def run(self) -> None:
        """Reads and records until cancelled."""
        attempt = 0
        messages: Sequence[StoredMessage] = ()
        while True:
            try:
                messages = messages or await self._bus.fetch(EVENTS_READER, batch=BATCH, timeout_s=FETCH_TIMEOUT_S)
                if messages:
                    await self.take(messages)
                messages = ()
                attempt = 0
                continue
            except NoRespondersError as error:
                log.warning("events_reader_missing", code=error.code)
                await self._provision()
            except BusUnavailableError as error:
                # What was recorded and not acknowledged comes again and is known then.
                messages = ()
                log.info("ingest_waits", code=error.code)
            except UnavailableError as error:
                # The database failed: the same batch again, instead of ever more that wait for their acknowledgement.
                log.warning("ingest_waits", code=error.code, message=error.message)
            attempt += 1
            await self._clock.sleep(self._random.uniform(0, min(RETRY_CAP_S, RETRY_BASE_S * 2**attempt)))

    async def _provision(self) -> None:
        try:
            await self._bus.ensure_stream(EVENTS, timeout_s=PROVISION_TIMEOUT_S)
            await self._bus.ensure_consumer(EVENTS_READER, timeout_s=PROVISION_TIMEOUT_S)
        except BusUnavailableError as error:
            log.warning("events_reader_not_made", code=error.code)

    async def take(self, messages: Sequence[StoredMessage]) -> None:
        """Records a batch and acknowledges it.

        Raises:
            UnavailableError: the database failed, and nothing was acknowledged.
            BusUnavailableError: the acknowledgement failed; the batch was recorded and comes again.
        """
        with self._metrics.ingest_seconds.time():
            now = self._clock.now()
            items = [(message, read(message, now)) for message in messages]
            try:
                await self._record(items, now)
            except UnavailableError:
                raise
            except Exception:
                # Whatever one message does to us must not block all others.
                log.exception("batch_unrecordable", size=len(items))
                for item in items:
                    await self._record_alone(item, now)
            await self._bus.ack(messages)

    async def _record(self, items: Sequence[Item], now: datetime) -> None:
        admitted = await self._keep([said for _, said in items if isinstance(said, ArtifactStored)])
        recorded = await self._database.run(
            lambda connection: record(connection, items, now, admitted=admitted, quota_bytes=self._quota_bytes),
            after=self._announce,
        )
        if recorded.crowded_out:
            await asyncio.to_thread(self._files.remove, recorded.crowded_out)

    async def _keep(self, incoming: Sequence[ArtifactStored]) -> Admitted:
        """Writes the contents of artifacts, before anything is recorded that refers to them."""
        if not incoming:
            return {}
        admitted = await self._database.run(
            lambda connection: artifacts.admit(connection, incoming, quota_bytes=self._quota_bytes)
        )
        contents = {event.artifact.sha256: admitted[key] for event in incoming if (key := _key(event)) in admitted}
        try:
            await asyncio.to_thread(self._files.keep, contents)
        except OSError as error:
            # A picture that the disk does not take must not hold up what comes behind it.
            log.warning("artifacts_unwritten", count=len(contents), reason=error.strerror)
            return {}
        return admitted

    async def _record_alone(self, item: Item, now: datetime) -> None:
        """A message that makes a transaction fail by itself is a defect; it is reported and does not block the rest."""
        message, _ = item
        try:
            await self._record([item], now)
        except UnavailableError:
            raise
        except Exception as error:
            log.exception("event_unrecordable", subject=message.subject, sequence=message.sequence)
            await self._record([(message, _unreadable(message, f"not recordable: {type(error).__name__}", now))], now)

    def _announce(self, recorded: Recorded) -> None:
        self._publisher.submit(recorded.documents)
        self._broadcast.executions(recorded.changed.values())
        if recorded.lines:
            self._broadcast.events()
        for outcome, count in recorded.outcomes.items():
            self._metrics.events.labels(outcome=outcome).inc(count)
        for execution in recorded.accepted:
            waited = execution.updated_at - execution.created_at
            self._metrics.accept_seconds.observe(waited.total_seconds())
        for execution in recorded.ended:
            self._metrics.executions.labels(result=execution.state.value.lower()).inc()
            log.info(
                "execution_ended",
                execution_id=execution.execution_id,
                device=execution.device,
                state=execution.state.value,
                reason=execution.reason,
            )


def read(message: StoredMessage, now: datetime) -> Event | FleetEvent:
    """What a message says, or the event that reports it as unreadable."""
    try:
        event = decode_event(message.data)
        if message.subject != subjects.event(event.agent, event.execution_id):
            raise BadMessageError("BAD_MESSAGE", "the event names another agent or execution than its subject.")
        if not (0 < event.sequence <= MAX_COUNT and 0 < event.attempt <= MAX_COUNT and event.at.tzinfo is not None):
            raise BadMessageError("BAD_MESSAGE", "its sequence, attempt or time cannot be.")
        if isinstance(event, ArtifactStored):
            artifacts.content(event)
    except (BadMessageError, ValueError) as error:
        return _unreadable(message, str(error), now)
    return event


def _unreadable(message: StoredMessage, error: str, now: datetime) -> FleetEvent:
    try:
        device = subjects.agent_of(message.subject)
    except ValueError:
        device = ""
    log.warning("event_unreadable", subject=message.subject, sequence=message.sequence, error=error)
    return unreadable(message.subject, device, sequence=message.sequence, size=len(message.data), error=error, now=now)


def record(
    connection: Connection, items: Sequence[Item], now: datetime, *, admitted: Admitted, quota_bytes: int
) -> Recorded:
    """Records a batch inside the caller's transaction. ``admitted``: the artifacts whose files are written."""
    done = Recorded()
    incoming = [said for _, said in items if not isinstance(said, FleetEvent)]
    seen = events.known(connection, [_key(event) for event in incoming])
    found = executions.find(connection, (event.execution_id for event in incoming))
    current = dict(found)
    for _, said in items:
        if isinstance(said, FleetEvent):
            done.lines.append(said)
            done.outcomes["unreadable"] += 1
            continue
        if isinstance(said, ExecutionFinished | ExecutionRejected):
            # Also when it is known already: an agent that sends it again has not seen its receipt.
            reference = ExecutionRef(execution_id=said.execution_id, attempt=said.attempt)
            done.receipts.setdefault(said.agent, []).append(reference)
        if _key(said) in seen:
            done.outcomes["duplicate"] += 1
            continue
        seen.add(_key(said))
        _record_one(done, current, said, now, admitted)
    executions.save(connection, list(done.changed.values()), read=found)
    executions.add_results(connection, done.results)
    if done.artifacts:
        stored_artifacts.add(connection, done.artifacts, now=now)
        done.crowded_out = stored_artifacts.make_room(connection, quota_bytes=quota_bytes)
    events.add(connection, done.lines)
    if done.receipts:
        documents.owe_receipts(connection, done.receipts)
        assigned = assign.refresh(connection, done.receipts, now=now)
        done.documents = assigned.documents
        done.changed.update({execution.execution_id: execution for execution in assigned.changed})
    return done


def _record_one(done: Recorded, current: dict[str, Execution], event: Event, now: datetime, admitted: Admitted) -> None:
    before = current.get(event.execution_id)
    if before is None or before.device != event.agent:
        label = Label.UNKNOWN_EXECUTION
    else:
        applied = apply(before, event, now=now)
        label = applied.label
        after = applied.execution
        if after is not before:
            if after.state is not before.state:
                after = replace(after, check_at=first_check(after))
                _count(done, before, after)
            current[event.execution_id] = done.changed[event.execution_id] = after
    done.outcomes[label.lower() or "applied"] += 1
    done.lines.append(reported(event, label, now=now))
    if isinstance(event, ArtifactStored) and _key(event) in admitted:
        done.artifacts.append(artifacts.stored(event, now=now))
    if isinstance(event, ExecutionFinished):
        body = event.result.model_dump_json(by_alias=True)
        done.results.append(Result(event.execution_id, event.attempt, event.agent, label.value, now, body))


def _count(done: Recorded, before: Execution, after: Execution) -> None:
    if after.terminal:
        done.ended.append(after)
    if before.accepted_at is None and after.state in {ExecutionState.ACCEPTED, ExecutionState.RUNNING}:
        done.accepted.append(after)


def _key(event: Event) -> events.EventKey:
    return (event.execution_id, event.attempt, event.sequence, event.agent)
