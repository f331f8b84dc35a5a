"""One controller for one data folder and one database: locks, and who holds them."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from droidfleet_controller.ids import new_id
from droidfleet_controller.store.schema import controllers
from droidfleet_shared.errors import ConflictError, PreconditionError

FOLDER_MODE = 0o700
"""Database and broker hold the secrets of tasks that have not ended, artifacts show what is on screens."""

LOCK_FILE = "controller.lock"
ID_FILE = "id"

CLAIM_S = 30.0
"""A controller that has not renewed its claim on a database for this long is gone."""

RENEW_S = 10.0

_SLOT = 1


def describe(now: datetime) -> str:
    """This process, for people."""
    return f"pid {os.getpid()} on {socket.gethostname()} since {now:%Y-%m-%d %H:%M:%S} UTC"


@contextmanager
def data_folder(folder: Path) -> Iterator[str]:
    """Holds the folder, making it where needed; yields the id of the folder. The system frees it when the process ends.

    Raises:
        ConflictError: ``DATA_FOLDER_IN_USE``, saying who holds it.
        PreconditionError: ``DATA_FOLDER_NOT_WRITABLE``.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        # Also when it was there before, with the rights that some umask gave it; a folder that is another user's stays.
        with suppress(PermissionError):
            folder.chmod(FOLDER_MODE)
        descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _not_writable(folder, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConflictError(
                "DATA_FOLDER_IN_USE",
                f"another controller works in {folder}: {_holder(descriptor)}.",
                hint="Stop it, or give this one another folder with --data.",
            ) from None
        try:
            data_id = _take(folder, descriptor)
        except OSError as error:
            raise _not_writable(folder, error) from error
        yield data_id
    finally:
        os.close(descriptor)


def _take(folder: Path, descriptor: int) -> str:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps({"holder": describe(datetime.now(UTC))}).encode(), 0)
    file = folder / ID_FILE
    if not file.exists():
        file.write_text(new_id("data"))
    return file.read_text().strip()


def _holder(descriptor: int) -> str:
    try:
        return str(json.loads(os.pread(descriptor, 1_000, 0))["holder"])
    except (ValueError, KeyError, TypeError):
        return "(it does not say who)"


def _not_writable(folder: Path, error: OSError) -> PreconditionError:
    return PreconditionError(
        "DATA_FOLDER_NOT_WRITABLE",
        f"{folder} cannot be used: {error.strerror}.",
        hint="Choose another folder with --data, or correct its owner and mode.",
    )


def claim_database(connection: Connection, *, instance: str, data_id: str, now: datetime) -> None:
    """Claims the database for this controller; the same data folder may take over at once, since it is locked.

    Raises:
        ConflictError: ``DATABASE_IN_USE``, saying who works on it.
    """
    row = connection.execute(select(controllers).where(controllers.c.slot == _SLOT)).first()
    if row is not None:
        fresh = now - row.renewed_at < timedelta(seconds=CLAIM_S)
        if fresh and row.data_id != data_id:
            raise ConflictError(
                "DATABASE_IN_USE",
                f"another controller works on this database: {row.holder}.",
                hint=f"Several controllers on one database come later. Stop it, or wait {CLAIM_S:.0f} s after its end.",
            )
        connection.execute(delete(controllers).where(controllers.c.slot == _SLOT))
    connection.execute(
        insert(controllers).values(slot=_SLOT, instance=instance, data_id=data_id, holder=describe(now), renewed_at=now)
    )


def renew_claim(connection: Connection, *, instance: str, now: datetime) -> None:
    """Says that this controller still works on the database.

    Raises:
        ConflictError: ``DATABASE_IN_USE``, another one has taken over.
    """
    mine = controllers.c.instance == instance
    if connection.execute(update(controllers).where(mine).values(renewed_at=now)).rowcount == 0:
        raise ConflictError(
            "DATABASE_IN_USE",
            "another controller has taken over this database.",
            hint="Several controllers on one database come later.",
        )


def release_claim(connection: Connection, *, instance: str) -> None:
    """Leaves the database to whoever comes next."""
    connection.execute(delete(controllers).where(controllers.c.instance == instance))
