"""SQLite files beside the controller that works on them: read and copied, never changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError
from sqlalchemy.pool import NullPool

from droidfleet_controller.settings import ServeSettings
from droidfleet_controller.store.database import BUSY_TIMEOUT_MS
from droidfleet_shared.errors import InvalidInputError, NotFoundError, PreconditionError

DATABASE_FILE = "droidfleet.db"
"""The database in a data folder, and in a backup."""

HEADER = b"SQLite format 3\0"


def database_file(settings: ServeSettings) -> Path:
    """The file of the settings' database.

    Raises:
        PreconditionError: ``DATABASE_NOT_SQLITE``; it has tools of its own.
    """
    if not settings.database:
        return settings.data / DATABASE_FILE
    try:
        url = make_url(settings.database)
    except ArgumentError as error:
        raise InvalidInputError("BAD_DATABASE_URL", f"the database URL cannot be used: {error}.") from error
    if url.get_backend_name() != "sqlite" or url.database in {None, "", ":memory:"}:
        raise PreconditionError(
            "DATABASE_NOT_SQLITE",
            f"the database is {url.get_backend_name()}, which copies and restores itself.",
            hint="PostgreSQL: pg_dump --format=custom; stop the controller, pg_restore, then droidfleet admin restore "
            "--settle. Copy the folder artifacts/ of the data folder beside it.",
        )
    return Path(str(url.database))


def copy(source: Path, target: Path) -> None:
    """Copies a database as it is at one moment, while others work on it.

    Raises:
        NotFoundError: ``DATABASE_NOT_FOUND``.
        PreconditionError: ``DATABASE_DAMAGED``: it cannot be read as a database.
    """
    if not source.is_file():
        raise NotFoundError(
            "DATABASE_NOT_FOUND", f"there is no database {source}.", hint="Name the data folder with --data."
        )
    try:
        with (
            closing(sqlite3.connect(_uri(source), uri=True, timeout=BUSY_TIMEOUT_MS / 1_000)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            # All pages in one step: one snapshot, however much is written meanwhile.
            reading.backup(writing)
            # One file, without a log beside it.
            writing.execute("PRAGMA journal_mode=DELETE").close()
    except sqlite3.DatabaseError as error:
        raise damaged(source, error) from error


@contextmanager
def opened(file: Path) -> Iterator[Connection]:
    """One moment of a database, to be read.

    Raises:
        PreconditionError: ``DATABASE_DAMAGED``.
    """
    engine = create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(_uri(file), uri=True, timeout=BUSY_TIMEOUT_MS / 1_000),
        poolclass=NullPool,
    )
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            yield connection
    except DatabaseError as error:
        raise damaged(file, error) from error
    finally:
        engine.dispose()


def damaged(file: Path, error: Exception) -> PreconditionError:
    """The error for a file that SQLite cannot read."""
    return PreconditionError(
        "DATABASE_DAMAGED",
        f"{file} cannot be read as a database of droidfleet: {getattr(error, 'orig', error)}.",
        hint="Restore a backup: droidfleet admin restore FILE",
    )


def _uri(file: Path) -> str:
    return f"file:{quote(str(file.resolve()))}?mode=ro"
