"""Dispatch over a real SQLite file, a memory bus and a clock moved by hand; nothing runs in the background."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from random import Random

from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.execution import NORMAL_PRIORITY, Execution
from droidfleet_controller.dispatch.handover import Handover
from droidfleet_controller.dispatch.ingest import Ingest
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.runs import Runs, RunTask, Started, TaskRef
from droidfleet_controller.dispatch.sweeper import Sweeper
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import Document
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.metrics import Metrics
from droidfleet_controller.store import devices, events, executions
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.events import FleetEvent
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.tasks.library import Library
from droidfleet_controller.tasks.values import RunValues
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import DesiredState, Event, Heartbeat
from droidfleet_shared.bus.port import BusMessage, BusUnavailableError, StoredMessage
from droidfleet_shared.bus.streams import ConsumerSpec
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.pointers import Json
from support.controller import document
from support.memory_bus import MemoryBus
from unit.controller.builders import NOW, beat, device

HEARTBEAT_S = 10.0

ARTIFACT_QUOTA_BYTES = 10_000


class AckingBus(MemoryBus):
    """Remembers what was acknowledged; ``lose_acks`` makes acknowledging fail, ``waiting`` are the batches to fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledged: list[int] = []
        self.lose_acks = False
        self.waiting: list[list[StoredMessage]] = []

    async def fetch(self, consumer: ConsumerSpec, *, batch: int, timeout_s: float) -> list[StoredMessage]:
        if not self.waiting:
            await asyncio.sleep(timeout_s)
            return []
        return self.waiting.pop(0)

    async def ack(self, messages: Sequence[StoredMessage]) -> None:
        if self.lose_acks:
            raise BusUnavailableError("BUS_DISCONNECTED", "gone")
        self.acknowledged += [message.sequence for message in messages]


class RecordingPublisher(Publisher):
    """Keeps what it was asked to publish instead of publishing it."""

    def submit(self, made: object) -> None:
        assert isinstance(made, Sequence)
        self.submitted: list[Document] = [*getattr(self, "submitted", []), *made]


@dataclass
class Dispatch:
    """The parts, and shorthands for what tests ask of them."""

    bus: AckingBus
    clock: VirtualClock
    database: Database
    registry: Registry
    publisher: RecordingPublisher
    broadcast: Broadcast
    metrics: Metrics
    runs: Runs
    cancels: Cancels
    reading: Executions
    ingest: Ingest
    sweeper: Sweeper
    library: Library
    delivered: int = 0

    async def run(
        self,
        *names: str,
        text: str | TaskRef | None = None,
        request_id: str = "",
        expires_in: timedelta = timedelta(hours=1),
        values: Mapping[str, Json] | None = None,
        random_seed: int | None = None,
        priority: int = NORMAL_PRIORITY,
    ) -> Started:
        """RunTask."""
        return await self.runs.start(
            RunTask(
                task=document() if text is None else text,
                devices=names,
                values=RunValues(values=values or {}, random_seed=random_seed),
                request_id=request_id,
                expires_in=expires_in,
                priority=priority,
                actor="test",
            )
        )

    async def get(self, execution_id: str) -> Execution:
        """GetExecution."""
        return await self.reading.get(execution_id)

    async def deliver(self, *said: Event | bytes, subject: str = "") -> list[StoredMessage]:
        """Hands events to ingest as one batch."""
        messages = []
        for each in said:
            self.delivered += 1
            if isinstance(each, bytes):
                messages.append(StoredMessage(subject, each, self.delivered))
            else:
                where = subject or subjects.event(each.agent, each.execution_id)
                messages.append(StoredMessage(where, each.encode(), self.delivered))
        await self.ingest.take(messages)
        return messages

    def document(self, agent: str = "phone-01") -> DesiredState:
        """The newest document that was handed to the publisher."""
        made = max((each for each in self.publisher.submitted if each.agent == agent), key=lambda each: each.generation)
        return DesiredState.decode(made.encode(self.clock.now()))

    async def heard(self, heartbeat: Heartbeat) -> None:
        """Hands a heartbeat of a holder to the registry."""
        await self.registry.receive(BusMessage(subjects.heartbeat(heartbeat.agent), heartbeat.encode()))

    async def log(self, *, execution_id: str = "") -> list[FleetEvent]:
        """The event log."""
        return await self.database.run(
            lambda connection: events.after(connection, 0, execution_id=execution_id, limit=10_000)
        )

    async def all(self) -> list[Execution]:
        """Every execution, newest first."""
        rows = await self.database.run(
            lambda connection: executions.page(connection, executions.Filter(), before=None, limit=1_000)
        )
        return [execution for _, execution in rows]


@asynccontextmanager
async def dispatching(folder: Path, *names: str) -> AsyncIterator[Dispatch]:
    """Dispatch with these devices online (phone-01 when none is named)."""
    clock = VirtualClock(NOW)
    bus = AckingBus()
    async with AsyncExitStack() as stack:
        # Also where the block raises, as hypothesis does to give an example up.
        database = Database(sqlite_url(folder / "test.db"))
        stack.push_async_callback(database.close)
        migrate(database.engine)
        for name in names or ("phone-01",):
            known = device(beat(agent=name))
            await database.run(lambda connection, known=known: devices.add(connection, known))  # type: ignore[misc]  # bound now
        broadcast, metrics = Broadcast(), Metrics()
        registry = Registry(database=database, bus=bus, clock=clock, heartbeat_s=HEARTBEAT_S, stored=broadcast.events)
        await registry.load()
        await registry.connected()
        publisher = RecordingPublisher(bus=bus, database=database, clock=clock, random=Random(1), metrics=metrics)
        publisher.submitted = []
        sweeper = Sweeper(
            database=database, clock=clock, registry=registry, publisher=publisher, broadcast=broadcast, metrics=metrics
        )
        registry.on_heard(sweeper.heard)
        registry.on_granted(Handover(publisher=publisher, broadcast=broadcast, metrics=metrics))
        yield Dispatch(
            bus=bus,
            clock=clock,
            database=database,
            registry=registry,
            publisher=publisher,
            broadcast=broadcast,
            metrics=metrics,
            runs=Runs(database=database, clock=clock, registry=registry, publisher=publisher, broadcast=broadcast),
            cancels=Cancels(database=database, clock=clock, publisher=publisher, broadcast=broadcast, metrics=metrics),
            reading=Executions(database=database, registry=registry, bus=bus),
            ingest=Ingest(
                bus=bus,
                database=database,
                clock=clock,
                random=Random(1),
                publisher=publisher,
                broadcast=broadcast,
                metrics=metrics,
                files=ArtifactFiles(folder / "artifacts"),
                artifact_quota_bytes=ARTIFACT_QUOTA_BYTES,
            ),
            sweeper=sweeper,
            library=Library(database=database, clock=clock, broadcast=broadcast),
        )
