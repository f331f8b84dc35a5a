"""The one door to the database: a function, one transaction, one worker thread.

SQLAlchemy is used synchronously in a single thread, so that transactions never interleave and a call costs one hop
between threads. Knows nothing of the tables.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from droidfleet_shared.errors import InvalidInputError, UnavailableError

T = TypeVar("T")

_SCRUB = "droidfleet.scrub"

MAX_WAITING = 1_000
"""Transactions that wait for the thread. More means that the database cannot keep up: callers are told at once."""

BUSY_TIMEOUT_MS = 5_000
"""How long SQLite waits for another process (a backup, a person with sqlite3) that holds the file's lock."""


class Database:
    """Runs functions in transactions. ``observe`` is told the seconds that each one took, waiting included."""

    def __init__(self, url: str | URL, *, observe: Callable[[float], None] = lambda _: None) -> None:
        self._engine = _engine(url)
        self._thread = ThreadPoolExecutor(1, "database")
        # The thread's own, kept: taking one from a pool for each transaction costs as much as two statements.
        self._connection: Connection | None = None
        self._waiting = 0
        self._observe = observe

    @property
    def engine(self) -> Engine:
        """For migrations, before anything else runs."""
        return self._engine

    async def run(self, work: Callable[[Connection], T], *, after: Callable[[T], None] | None = None) -> T:
        """Runs ``work`` in one transaction: committed when it returns, rolled back when it raises.

        ``after`` is called on the event loop with the result of a committed transaction, also when the caller was
        cancelled meanwhile: what was committed is always followed up.

        Raises:
            UnavailableError: ``MAX_WAITING`` transactions wait already, or the database does not answer, is locked,
                read-only or full.
        """
        if self._waiting >= MAX_WAITING:
            raise UnavailableError(
                "DATABASE_OVERLOADED",
                f"{MAX_WAITING} transactions wait already.",
                hint="Try again in a moment; when it lasts, look at the database's disk.",
            )
        self._waiting += 1
        start = time.perf_counter()
        future = asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, work)

        def done(ended: asyncio.Future[T]) -> None:
            self._waiting -= 1
            self._observe(time.perf_counter() - start)
            if not ended.cancelled() and ended.exception() is None and after is not None:
                after(ended.result())

        future.add_done_callback(done)
        return await asyncio.shield(future)

    def _transaction(self, work: Callable[[Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            try:
                with self._connection.begin():
                    return work(self._connection)
            finally:
                if self._connection.info.pop(_SCRUB, False):
                    self._scrub(self._connection)
        except OperationalError as error:
            raise UnavailableError(
                "DATABASE_UNAVAILABLE",
                f"the database does not work: {error.orig}.",
                hint="Look at its disk (full, read-only) and at other programs that hold it.",
            ) from error

    def _scrub(self, connection: Connection) -> None:
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            # Pages that were written over still stand in the log until it is emptied. One that somebody reads just now
            # is emptied by the next scrub.
            with suppress(sqlite3.Error):
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    async def close(self) -> None:
        """Waits for what runs, then closes the database."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()


def scrub_afterwards(connection: Connection) -> None:
    """To be called in a transaction that removes what must not stay anywhere on the disk: SQLite's log is emptied after
    it. (What is removed from the database file itself is overwritten.)"""
    connection.info[_SCRUB] = True


def sqlite_url(file: Path) -> URL:
    """The URL of a database file."""
    return URL.create("sqlite", database=str(file))


def _engine(url: str | URL) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "sqlite":
            return create_engine(parsed, pool_size=1, max_overflow=0, pool_pre_ping=True)
        engine = create_engine(parsed, connect_args={"check_same_thread": False})
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise InvalidInputError(
            "BAD_DATABASE_URL",
            f"the database URL cannot be used: {error}.",
            hint="Expected: sqlite:////path/to/file.db; other databases need their driver installed.",
        ) from error
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver's own idea of when to begin is switched off; `_begin_sqlite` does it.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    # FULL: a commit that was acknowledged to a caller or to the broker survives a power cut.
    cursor.execute("PRAGMA synchronous=FULL")
    # What is removed is overwritten: secrets of runs that have ended.
    cursor.execute("PRAGMA secure_delete=ON")
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: the write lock is taken first, so that no transaction fails half-way for want of it.
    connection.exec_driver_sql("BEGIN IMMEDIATE")
