"""A fleet for tests: a registry on a real database file, with labels, groups and targets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from droidfleet_controller.fleet.groups import Groups
from droidfleet_controller.fleet.labels import Changes, Labels
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.fleet.targets import Targets
from droidfleet_controller.store import devices, events
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.events import FleetEvent
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.store.schema import audit
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import Heartbeat
from droidfleet_shared.bus.port import BusMessage
from droidfleet_shared.clock import VirtualClock
from support.memory_bus import MemoryBus
from unit.controller.builders import NOW, beat, device

HEARTBEAT_S = 10.0
ACTOR = "somebody"


@dataclass
class Fleet:
    """The parts."""

    clock: VirtualClock
    database: Database
    registry: Registry
    labels: Labels
    groups: Groups
    targets: Targets
    changes: list[None] = field(default_factory=list)
    """One entry each time that the targets said that something changed."""
    stored: list[None] = field(default_factory=list)

    async def label(self, *names: str, **labels: str) -> list[str]:
        """Sets labels."""
        return await self.labels.change(names, Changes(set=labels), actor=ACTOR)

    async def heard(self, heartbeat: Heartbeat) -> None:
        """Hands a heartbeat of a holder to the registry."""
        await self.registry.receive(BusMessage(subjects.heartbeat(heartbeat.agent), heartbeat.encode()))

    async def log(self) -> list[FleetEvent]:
        """The event log."""
        return await self.database.run(lambda connection: events.after(connection, 0, limit=10_000))

    async def audited(self) -> list[tuple[str, str, str, str]]:
        """The audit: actor, command, subject, details."""
        columns = (audit.c.actor, audit.c.command, audit.c.subject, audit.c.details)
        return await self.database.run(
            lambda connection: [tuple(row) for row in connection.execute(audit.select().with_only_columns(*columns))]
        )


@asynccontextmanager
async def fleet_of(folder: Path, *names: str) -> AsyncIterator[Fleet]:
    """A fleet with these devices online, on the database in this folder: made if it is not there, else as it is."""
    clock = VirtualClock(NOW)
    database = Database(sqlite_url(folder / "test.db"))
    try:
        migrate(database.engine)
        stored: list[None] = []
        changes: list[None] = []

        def note_stored() -> None:
            stored.append(None)

        def add(connection: Connection) -> None:
            for name in names:
                devices.add(connection, device(beat(agent=name)))

        await database.run(add)
        registry = Registry(
            database=database, bus=MemoryBus(), clock=clock, heartbeat_s=HEARTBEAT_S, stored=note_stored
        )
        labels = Labels(database=database, clock=clock, stored=note_stored)
        groups = Groups(database=database, clock=clock, registry=registry, stored=note_stored)
        targets = Targets(registry=registry, labels=labels, groups=groups)
        targets.on_changed(lambda: changes.append(None))
        for part in (registry, labels, groups):
            await part.load()
        await registry.connected()
        yield Fleet(
            clock=clock,
            database=database,
            registry=registry,
            labels=labels,
            groups=groups,
            targets=targets,
            changes=changes,
            stored=stored,
        )
    finally:
        await database.close()
