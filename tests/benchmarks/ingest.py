"""Events of agents into the database, beside the ceiling: a bare fetch and one batched insert of the same messages.

Both read the same stream of a real broker through the same reader, in batches of the same size, commit each batch to a
SQLite file that survives a power cut, and acknowledge it then. The ceiling looks at no message and writes it as it is
into the same table, with the same indexes.
The messages are those of whole runs, many phones at once, mixed as they would arrive.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TypeVar

from sqlalchemy import Connection

from benchmarks.figures import Figure
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.execution import Execution, TaskText
from droidfleet_controller.dispatch.ingest import BATCH, Ingest
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import executions
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import (
    Event,
    EventBase,
    ExecutionAccepted,
    ExecutionFinished,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.bus.streams import EVENTS, EVENTS_READER
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.logging import configure_logging
from support.bus import running_link
from support.controller import step_result, task_result
from support.nats import NatsServer
from support.waiting import until

LEAST_SHARE = 0.5
"""Of the ceiling."""

PHONES = 500
STEPS = 10
EVENTS_IN_ALL = PHONES * (2 * STEPS + 3)
ROUNDS = 3

AT_ONCE = 256
"""Messages on their way to the broker while the stream is filled."""

NOW = datetime.now(UTC)

CALL_S = 30.0
ROUND_S = 120.0
QUOTA_BYTES = 1_000_000_000

_KEEP = """
INSERT INTO events (occurred_at, recorded_at, kind, device, execution_id, attempt, sequence, summary, payload)
VALUES (0, 0, '', '', ?, 1, ?, '', ?)
"""

E = TypeVar("E", bound=EventBase)


async def figures() -> list[Figure]:
    """Events per second, of both, and their ratio."""
    configure_logging("critical")
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder) / "nats")
        server.start()
        try:
            async with running_link(server.url) as bus:
                await bus.ensure_stream(EVENTS, timeout_s=CALL_S)
                await _fill(bus)
                bare: list[float] = []
                ours: list[float] = []
                for number in range(ROUNDS):
                    for taken, reading in ((bare, _read_bare), (ours, _read_ours)):
                        taken.append(
                            EVENTS_IN_ALL / await reading(server, Path(folder) / f"{reading.__name__}{number}")
                        )
        finally:
            server.stop()
    share = statistics.median(ours) / statistics.median(bare)
    note = f"{EVENTS_IN_ALL:,} events of {PHONES} phones; ceiling {statistics.median(bare):,.0f} events/s"
    return [
        Figure("ingest, share of a bare fetch and insert", share, "x", LEAST_SHARE, "higher", note),
        Figure("ingest", statistics.median(ours), "events/s", note=f"{min(ours):,.0f} to {max(ours):,.0f}"),
    ]


async def _read_ours(server: NatsServer, folder: Path) -> float:
    async with _database(folder) as database, _reader(server) as bus:
        await database.run(_add_executions)
        metrics, broadcast, clock, random = Metrics(), Broadcast(), SystemClock(), Random(1)
        ingest = Ingest(
            bus=bus,
            database=database,
            clock=clock,
            random=random,
            publisher=Publisher(bus=bus, database=database, clock=clock, random=random, metrics=metrics),
            broadcast=broadcast,
            metrics=metrics,
            files=ArtifactFiles(folder / "artifacts"),
            artifact_quota_bytes=QUOTA_BYTES,
        )
        applied = metrics.events.labels(outcome="applied")
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(ingest.run(), name="ingest")
            await until(lambda: applied._value.get() >= EVENTS_IN_ALL, within_s=ROUND_S, what="all recorded")
            taken = time.perf_counter() - start
            running.cancel()
        return taken


async def _read_bare(server: NatsServer, folder: Path) -> float:
    async with _database(folder) as database, _reader(server) as bus:
        done = 0
        start = time.perf_counter()
        while done < EVENTS_IN_ALL:
            messages = await bus.fetch(EVENTS_READER, batch=BATCH, timeout_s=CALL_S)
            rows = [(message.subject, message.sequence, message.data) for message in messages]
            await database.run(lambda connection, rows=rows: connection.exec_driver_sql(_KEEP, rows))  # type: ignore[misc]  # bound now
            await bus.ack(messages)
            done += len(messages)
        return time.perf_counter() - start


@asynccontextmanager
async def _database(folder: Path) -> AsyncIterator[Database]:
    await asyncio.to_thread(folder.mkdir)
    database = Database(sqlite_url(folder / "bench.db"))
    await asyncio.to_thread(migrate, database.engine)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _reader(server: NatsServer) -> AsyncIterator[BusLink]:
    """A connection with the consumer at the beginning of the stream."""
    async with running_link(server.url) as bus:
        consumer = f"{EVENTS_READER.stream}.{EVENTS_READER.name}"
        await bus.request(f"$JS.API.CONSUMER.DELETE.{consumer}", b"", timeout_s=CALL_S)
        await bus.ensure_consumer(EVENTS_READER, timeout_s=CALL_S)
        yield bus


async def _fill(bus: BusLink) -> None:
    waiting = iter(_said())

    async def publish() -> None:
        for event in waiting:
            subject = subjects.event(event.agent, event.execution_id)
            await bus.js_publish(subject, event.encode(), stream=EVENTS.name, timeout_s=CALL_S)

    async with asyncio.TaskGroup() as group:
        for number in range(AT_ONCE):
            group.create_task(publish(), name=f"fill {number}")


def _said() -> Sequence[Event]:
    """Whole runs, begun within a moment of each other, each at its own pace."""
    random = Random(7)
    moments: list[tuple[float, Event]] = []
    for number in range(PHONES):
        at = random.random()
        for event in _run(number):
            at += random.random()
            moments.append((at, event))
    return [event for _, event in sorted(moments, key=lambda moment: moment[0])]


def _run(number: int) -> Iterator[Event]:
    agent, execution_id, sequence = f"phone-{number:04}", f"x-{number:04}", 0

    def said(kind: type[E], **fields: object) -> E:
        nonlocal sequence
        sequence += 1
        base = {"agent": agent, "execution_id": execution_id, "attempt": 1, "sequence": sequence, "at": NOW}
        return kind.model_validate({**base, **fields})

    yield said(ExecutionAccepted)
    yield said(ExecutionStarted)
    for step in range(STEPS):
        yield said(StepStarted, step_id=f"back-{step}", path=f"/steps/{step}")
        yield said(StepFinished, result=step_result(f"back-{step}"))
    yield said(ExecutionFinished, result=task_result(agent, execution_id, steps=STEPS))


def _add_executions(connection: Connection) -> None:
    new = [
        Execution(
            execution_id=f"x-{number:04}",
            run_id="r-1",
            device=f"phone-{number:04}",
            task_id="tea",
            revision=1,
            text=TaskText(sha256="a" * 64, add_name=True, add_revision=False),
            step_count=STEPS,
            bound_s=60.0,
            state=ExecutionState.ASSIGNED,
            created_at=NOW,
            updated_at=NOW,
            expires_at=NOW + timedelta(days=1),
            check_at=NOW + timedelta(days=1),
        )
        for number in range(PHONES)
    ]
    executions.add(connection, new)
