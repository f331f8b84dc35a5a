"""The disk under the controller: one SQLite in memory that outlives controllers, and the product's `Database` upon it.

The schema is made once for a process and emptied for each world, since making it takes longer than a world. Every
change of the watched tables is noted by triggers, so that checks see what was committed, and not what was announced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar
from unittest import mock

from sqlalchemy import Connection, Engine

from droidfleet_controller import ids
from droidfleet_controller.store import schema
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.migrate import migrate
from droidfleet_shared.errors import UnavailableError
from simulation.loop import VirtualExecutor

T = TypeVar("T")

_KEPT = frozenset({"alembic_version", "database_identity"})
"""Tables that belong to the schema and not to what happened."""

_NOTED = ("attempt", "cancel_requested", "try_number", "created_at", "expires_at", "reason")
_NOTE = f"""
INSERT INTO watched(execution_id, device, run_id, before, after, {", ".join(_NOTED)})
VALUES (new.execution_id, new.device, new.run_id, {{before}}, new.state, {", ".join(f"new.{name}" for name in _NOTED)})
"""
_WATCH = f"""
CREATE TEMP TABLE IF NOT EXISTS watched(
  id INTEGER PRIMARY KEY, execution_id TEXT, device TEXT, run_id TEXT, before TEXT, after TEXT, {", ".join(_NOTED)}
);
CREATE TEMP TRIGGER IF NOT EXISTS watch_new AFTER INSERT ON main.executions BEGIN {_NOTE.format(before="''")}; END;
CREATE TEMP TRIGGER IF NOT EXISTS watch_change AFTER UPDATE ON main.executions
WHEN old.state IS NOT new.state OR old.attempt IS NOT new.attempt OR old.cancel_requested IS NOT new.cancel_requested
BEGIN {_NOTE.format(before="old.state")}; END;
CREATE TEMP TABLE IF NOT EXISTS touched(rollout_id TEXT PRIMARY KEY);
CREATE TEMP TRIGGER IF NOT EXISTS watch_new_rollout AFTER INSERT ON main.rollouts
BEGIN INSERT OR IGNORE INTO touched VALUES (new.rollout_id); END;
CREATE TEMP TRIGGER IF NOT EXISTS watch_rollout AFTER UPDATE ON main.rollouts
BEGIN INSERT OR IGNORE INTO touched VALUES (new.rollout_id); END;
CREATE TEMP TRIGGER IF NOT EXISTS watch_member AFTER UPDATE ON main.rollout_members
BEGIN INSERT OR IGNORE INTO touched VALUES (new.rollout_id); END;
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A committed change of an execution; ``before`` is empty for a new one."""

    execution_id: str
    device: str
    run_id: str
    before: str
    after: str
    attempt: int
    cancel_requested: bool
    try_number: int
    created_at_us: int
    expires_at_us: int
    reason: str


class Disk:
    """What survives a controller. ``committed`` is told of each transaction that changed something: the executions, and
    the ids of the rollouts."""

    def __init__(self, committed: Callable[[list[Change], list[str]], None]) -> None:
        self._engine, self._connection = _opened()
        self._committed = committed
        self.failing = False
        """While true no transaction works."""
        raw = self.raw
        for table in reversed(schema.metadata.sorted_tables):
            if table.name not in _KEPT:
                raw.execute(f"DELETE FROM {table.name}")
        raw.executescript(_WATCH)
        self._forget()

    @property
    def raw(self) -> sqlite3.Connection:
        """The connection itself, for checks."""
        raw = self._connection.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        return raw

    def database(self, takes: Callable[[], tuple[float, float]]) -> SimDatabase:
        """The product's database on this disk, for one controller."""
        return SimDatabase(self, self._engine, self._connection, VirtualExecutor(takes))

    def tell(self) -> None:
        """After each transaction."""
        rows = self.raw.execute("SELECT * FROM watched ORDER BY id").fetchall()
        rollouts = self.raw.execute("SELECT rollout_id FROM touched ORDER BY rollout_id").fetchall()
        if rows or rollouts:
            self._forget()
            self._committed([Change(*row[1:]) for row in rows], [rollout_id for (rollout_id,) in rollouts])

    def _forget(self) -> None:
        self.raw.execute("DELETE FROM watched")
        self.raw.execute("DELETE FROM touched")


class SimDatabase(Database):
    """`Database` whose thread is virtual. `die` ends it with its process: what has not begun never does."""

    def __init__(self, disk: Disk, engine: Engine, connection: Connection, thread: VirtualExecutor) -> None:
        self._disk = disk
        self._engine = engine
        self._connection = connection
        self._thread = self._virtual = thread
        self._waiting = 0
        self._observe = lambda _: None

    def die(self) -> None:
        """The process is gone."""
        self._virtual.dead = True

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        if self._disk.failing:
            # As SQLite has it when the disk is full: at the first write, here at once.
            raise UnavailableError("DATABASE_UNAVAILABLE", "the simulated disk is full.")
        result = super()._transaction(work)
        self._disk.tell()
        return result


@cache
def _opened() -> tuple[Engine, Connection]:
    engine = Database("sqlite://").engine
    # Not with the ids of the world that happens to be the first one.
    with mock.patch.object(ids, "draw", Random(0).randbytes):
        migrate(engine)
    return engine, engine.connect()
