"""The journal on disk: an SQLite file of the agent's own, whole after a kill or a power cut at any point.

Everything is in memory as well (`Book`); a write goes to the disk first and is seen when it is there. What waits on the
disk waits in a thread of its own, so that heartbeats go on.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from droidfleet_agent.engine.trail import Entry, read_entry
from droidfleet_agent.journal.attempt import Attempt, OpenStep, Phase, key
from droidfleet_agent.journal.book import Book, Change, Name, Waiting
from droidfleet_agent.journal.port import Journal, Limits
from droidfleet_shared.bus.messages import Event, ExecutionFinished, ExecutionRef, ExecutionRejected, decode_event
from droidfleet_shared.clock import Uptime
from droidfleet_shared.errors import PreconditionError

T = TypeVar("T")

SCHEMA_VERSION = 2
"""1: without ``crashes`` and ``left``, and at first without ``paused``."""

FILE_MODE = 0o600
"""Tasks hold the secrets that they were given."""

BUSY_TIMEOUT_S = 5.0
"""For somebody who looks into the file with another program."""

_SCHEMA = """
CREATE TABLE attempts (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  task TEXT NOT NULL,
  start_by TEXT,
  phase TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  step_id TEXT,
  path TEXT,
  dispatched INTEGER,
  unsent INTEGER NOT NULL,
  last BLOB,
  trail_length INTEGER,
  restarts INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  "left" INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  UNIQUE (execution_id, attempt)
);
CREATE TABLE trail (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX trail_of_attempt ON trail (execution_id, attempt, place);
CREATE TABLE outbox (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (execution_id, attempt, sequence)
);
CREATE TABLE forgotten (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  UNIQUE (execution_id, attempt)
);
"""

_PUT = """
INSERT INTO attempts (
  execution_id, attempt, task, start_by, phase, sequence, step_id, path, dispatched, unsent, last, trail_length,
  restarts, crashes, "left", paused
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (execution_id, attempt) DO UPDATE SET
  phase = excluded.phase, sequence = excluded.sequence, step_id = excluded.step_id, path = excluded.path,
  dispatched = excluded.dispatched, unsent = excluded.unsent, last = excluded.last,
  trail_length = excluded.trail_length, restarts = excluded.restarts, crashes = excluded.crashes,
  "left" = excluded."left", paused = excluded.paused
"""
_NOTE = "INSERT INTO trail (execution_id, attempt, body) VALUES (?, ?, ?)"
_TRAIL = "SELECT body FROM trail WHERE execution_id = ? AND attempt = ? ORDER BY place"
_END_TRAIL = "DELETE FROM trail WHERE execution_id = ? AND attempt = ?"
_ADD = "INSERT INTO outbox (execution_id, attempt, sequence, body) VALUES (?, ?, ?, ?)"
_REMOVE = "DELETE FROM outbox WHERE execution_id = ? AND attempt = ? AND sequence = ?"
_DROP = "DELETE FROM attempts WHERE execution_id = ? AND attempt = ?"
_FORGET = "INSERT INTO forgotten (execution_id, attempt) VALUES (?, ?)"
_OUTDATE = "DELETE FROM forgotten WHERE execution_id = ? AND attempt = ?"


class JournalUnusableError(PreconditionError):
    """The file can be neither read nor written. Nothing is done that is not written down, so the agent has to end."""


class SqliteJournal(Journal):
    """`Journal` in a file. Hold the lock on the agent's name: one process at a time.

    After a write that failed every call fails: whether it reached the disk is known only when the file is read again.

    Raises:
        JournalUnusableError: it cannot be opened, or is not a journal of this version.
    """

    def __init__(self, file: Path, limits: Limits = Limits()) -> None:  # noqa: B008  # frozen
        self._file = file
        self._limits = limits
        self._turn = asyncio.Lock()
        self._thread = ThreadPoolExecutor(1, "journal")
        self._broken: JournalUnusableError | None = None
        self._closed = False
        with self._explained():
            self._connection = _open(file)
            self._book = _read(self._connection, limits)

    async def attempts(self) -> Sequence[Attempt]:
        self._usable()
        return self._book.attempts()

    async def forgotten(self, ref: ExecutionRef) -> bool:
        self._usable()
        return self._book.is_forgotten(ref)

    async def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        return _event(await self._write(lambda book: book.take_on(attempt, make)))

    async def append(self, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None) -> Event:
        return _event(await self._write(lambda book: book.append(ref, make, trail=trail)))

    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        await self._write(lambda book: book.dispatching(ref, step_id=step_id, path=path, ordinal=ordinal))

    async def leave(self, ref: ExecutionRef) -> None:
        await self._write(lambda book: book.leave(ref))

    async def note(self, ref: ExecutionRef, entry: Entry) -> None:
        # Not synced: the log is written in order, so that what is synced after it is not there without it.
        await self._write(lambda book: book.note(ref, entry), sync=False)

    async def trail(self, ref: ExecutionRef) -> Sequence[Entry]:
        async with self._turn:
            self._usable()
            future = asyncio.get_running_loop().run_in_executor(self._thread, self._read_trail, key(ref))
            cancelled = await _finished(future)
            with self._explained():
                found = future.result()
            if cancelled:
                raise asyncio.CancelledError
            return found

    def _read_trail(self, name: Name) -> tuple[Entry, ...]:
        with closing(self._connection.execute(_TRAIL, name)) as rows:
            return tuple(read_entry(row["body"]) for row in rows)

    async def outbox(self, limit: int) -> Sequence[Event]:
        self._usable()
        return self._book.outbox(limit)

    async def sent(self, events: Sequence[Event]) -> None:
        # Not synced: what comes back after a power cut is sent once more, and known at the other end.
        await self._write(lambda book: book.sent(events), sync=False)

    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        await self._write(lambda book: book.forget(refs), sync=False, scrub=True)

    async def close(self) -> None:
        async with self._turn:
            if not self._closed:
                self._closed = True
                await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
                self._thread.shutdown()

    def _usable(self) -> None:
        if self._broken is not None:
            raise self._broken

    async def _write(self, prepare: Callable[[Book], Change], *, sync: bool = True, scrub: bool = False) -> Change:
        async with self._turn:
            self._usable()
            change = prepare(self._book)
            if not change:
                return change
            future = asyncio.get_running_loop().run_in_executor(
                self._thread, lambda: self._commit(change, sync=sync, scrub=scrub)
            )
            cancelled = await _finished(future)
            with self._explained():
                future.result()
            self._book.apply(change)
            if cancelled:
                raise asyncio.CancelledError
            return change

    def _commit(self, change: Change, *, sync: bool, scrub: bool) -> None:
        connection = self._connection
        connection.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            _write(connection, change)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        if scrub:
            # What was removed still stands in the log until that is emptied.
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            self._broken = JournalUnusableError(
                "JOURNAL_UNUSABLE",
                f"the journal {self._file} cannot be used: {error}. Nothing is done that is not written down.",
                hint="Make room on its disk, or make it writable; then start the agent again, which goes on from it.",
            )
            raise self._broken from error


async def _finished(future: asyncio.Future[T]) -> bool:
    """Waits until it is done, whatever happens meanwhile; whether the waiting was cancelled."""
    cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


def _event(change: Change) -> Event:
    assert change.added is not None
    return change.added.event


# The file.


def _open(file: Path) -> sqlite3.Connection:
    # Made with its mode before anything stands in it; the files beside it get the same.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE))
    connection = sqlite3.connect(file, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL").close()
        connection.execute("PRAGMA secure_delete = ON").close()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        elif version == 1:
            _from_version_1(connection)
        elif version != SCHEMA_VERSION:
            raise JournalUnusableError(
                "JOURNAL_UNUSABLE",
                f"the journal {file} is of version {version}, and this program reads up to {SCHEMA_VERSION}.",
                hint="A newer agent wrote it: install that one again. Or move the file away and lose what it holds.",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _from_version_1(connection: sqlite3.Connection) -> None:
    """Whole or not at all. Until now every process that went on counted as one after a crash."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(attempts)").fetchall()}
    connection.execute("BEGIN IMMEDIATE")
    new = ["crashes", '"left"', *(["paused"] if "paused" not in columns else [])]
    for name in new:
        connection.execute(f"ALTER TABLE attempts ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0")
    connection.execute("UPDATE attempts SET crashes = restarts")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def _read(connection: sqlite3.Connection, limits: Limits) -> Book:
    book = Book(limits)
    connection.row_factory = sqlite3.Row
    with (
        closing(connection.execute("SELECT * FROM attempts ORDER BY place")) as attempts,
        closing(connection.execute("SELECT body FROM outbox ORDER BY place")) as outbox,
        closing(connection.execute("SELECT execution_id, attempt FROM forgotten ORDER BY place")) as forgotten,
    ):
        book.restore(
            (_attempt(row) for row in attempts),
            (Waiting(decode_event(row["body"]), len(row["body"])) for row in outbox),
            ((row["execution_id"], row["attempt"]) for row in forgotten),
        )
    return book


def _attempt(row: sqlite3.Row) -> Attempt:
    last = None if row["last"] is None else decode_event(row["last"])
    assert last is None or isinstance(last, ExecutionFinished | ExecutionRejected)
    start_by, start_by_uptime = _start_by(row["start_by"])
    return Attempt(
        ref=ExecutionRef(execution_id=row["execution_id"], attempt=row["attempt"]),
        task=row["task"],
        start_by=start_by,
        start_by_uptime=start_by_uptime,
        phase=Phase(row["phase"]),
        sequence=row["sequence"],
        open_step=None if row["step_id"] is None else OpenStep(row["step_id"], row["path"], row["dispatched"]),
        unsent=row["unsent"],
        last=last,
        trail_length=row["trail_length"],
        restarts=row["restarts"],
        crashes=row["crashes"],
        left=bool(row["left"]),
        paused=bool(row["paused"]),
    )


def _start_by_text(attempt: Attempt) -> str | None:
    """The instant, and behind it the host's uptime where it is known: ``2026-01-01T00:00:00+00:00 <boot> 17.5``."""
    if attempt.start_by is None:
        return None
    instant, uptime = attempt.start_by.astimezone(UTC).isoformat(), attempt.start_by_uptime
    return f"{instant} {uptime.boot} {uptime.s!r}" if uptime is not None and uptime.boot else instant


def _start_by(text: str | None) -> tuple[datetime | None, Uptime | None]:
    if text is None:
        return None, None
    instant, *uptime = text.split(" ")
    return datetime.fromisoformat(instant), Uptime(uptime[0], float(uptime[1])) if uptime else None


def _write(connection: sqlite3.Connection, change: Change) -> None:
    connection.executemany(_PUT, [_values(attempt) for attempt in change.attempts])
    if change.added is not None:
        event = change.added.event
        connection.execute(_ADD, (event.execution_id, event.attempt, event.sequence, event.encode()))
    if change.trail is not None:
        name, entry = change.trail
        connection.execute(_NOTE, (*name, entry.model_dump_json()))
    connection.executemany(_END_TRAIL, change.trails_ended)
    connection.executemany(_REMOVE, change.gone)
    connection.executemany(_DROP, change.forgotten)
    connection.executemany(_FORGET, change.forgotten)
    connection.executemany(_OUTDATE, change.outdated)


def _values(attempt: Attempt) -> tuple[object, ...]:
    name: Name = key(attempt.ref)
    step = attempt.open_step
    return (
        *name,
        attempt.task,
        _start_by_text(attempt),
        attempt.phase.value,
        attempt.sequence,
        *((step.step_id, step.path, step.dispatched) if step is not None else (None, None, None)),
        attempt.unsent,
        None if attempt.last is None else attempt.last.encode(),
        attempt.trail_length,
        attempt.restarts,
        attempt.crashes,
        attempt.left,
        attempt.paused,
    )
