"""Puts a backup in the place of the database, while no controller works on it. Blocking; works on files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.engine import Engine
from sqlalchemy.exc import DatabaseError

from droidfleet_controller.admin import archive, backup, invariants, sqlite_file
from droidfleet_controller.admin.backup import ARTIFACTS_FOLDER, Say, sync
from droidfleet_controller.admin.settle import Settled, settle
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.ids import new_id
from droidfleet_controller.settings import ServeSettings
from droidfleet_controller.store import lock
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_shared.errors import PreconditionError, UnavailableError

BESIDE = ("", "-wal", "-shm")
"""The files of one SQLite database."""


@dataclass(frozen=True, slots=True)
class Restored:
    """``aside``: where the database before is kept; None: there was none. ``made_at``: of the backup, where it says."""

    settled: Settled
    aside: Path | None
    made_at: datetime | None
    artifacts: int


def restore(file: Path, settings: ServeSettings, *, now: datetime, say: Say) -> Restored:
    """Replaces the database by the one in a backup, or in a copy of a database. Until the very end nothing is changed.

    Raises:
        ConflictError: ``DATA_FOLDER_IN_USE``, ``DATABASE_IN_USE``: a controller works on it.
        NotFoundError, InvalidInputError: the backup is not there, or not whole.
        PreconditionError: its database is damaged or too new, the place cannot be written, or is no SQLite file.
    """
    target = sqlite_file.database_file(settings)
    with lock.data_folder(settings.data) as data_id, _written(target):
        _claim(target, data_id=data_id, now=now)
        with _workplace(target) as folder:
            staged = folder / sqlite_file.DATABASE_FILE
            say("reading the backup")
            made_at, count = _read(file, staged, ArtifactFiles(settings.data / ARTIFACTS_FOLDER))
            say("checking its database, and making it safe for what agents have done since")
            settled = _settle_file(staged, made_at=made_at, now=now)
            sync(staged)
            say("putting it in place")
            aside = _keep_aside(target, now)
            for suffix in BESIDE[1:]:
                # The log of the database before must not be taken for the new one's.
                Path(f"{target}{suffix}").unlink(missing_ok=True)
            staged.replace(target)
            sync(target.parent)
            return Restored(settled, aside, made_at, count)


def settle_in_place(settings: ServeSettings, *, now: datetime) -> Settled:
    """Makes a database safe that its own tools have restored.

    Raises:
        ConflictError: ``DATA_FOLDER_IN_USE``, ``DATABASE_IN_USE``: a controller works on it.
        PreconditionError, UnavailableError: it is too new, or does not work.
    """
    url = settings.database or str(sqlite_url(sqlite_file.database_file(settings)))
    with lock.data_folder(settings.data) as data_id, _engine(url) as engine:
        migrate(engine)
        with engine.begin() as connection:
            lock.claim_database(connection, instance=new_id("c"), data_id=data_id, now=now)
        with engine.begin() as connection:
            return settle(connection, made_at=None, now=now)


def _read(file: Path, staged: Path, files: ArtifactFiles) -> tuple[datetime | None, int]:
    """Writes the backup's database to ``staged`` and keeps its artifacts; when it was made, and how many."""
    if backup.is_database(file):
        sqlite_file.copy(file, staged)
        return None, 0
    # Once to its end before anything of it is kept.
    backup.verify(file, staged)
    count = 0
    with archive.opened(file) as opened:
        opened.extract_database(staged)
        for digest, data in opened.artifacts():
            files.keep({digest: data})
            count += 1
        return opened.manifest.made_at.astimezone(UTC), count


def _settle_file(staged: Path, *, made_at: datetime | None, now: datetime) -> Settled:
    with _engine(str(sqlite_url(staged))) as engine:
        migrate(engine)
        with engine.begin() as connection:
            for finding in invariants.broken(connection):
                if finding.code == "DATABASE_DAMAGED":
                    raise PreconditionError(
                        "DATABASE_DAMAGED", f"the backup's database is damaged: {finding.message}.", hint="Use another."
                    )
            return settle(connection, made_at=made_at, now=now)


def _claim(target: Path, *, data_id: str, now: datetime) -> None:
    """Refuses a database that a controller of another data folder works on; a damaged one cannot say so."""
    if not target.is_file():
        return
    with _engine(str(sqlite_url(target))) as engine:
        try:
            with engine.begin() as connection:
                lock.claim_database(connection, instance=new_id("c"), data_id=data_id, now=now)
        except DatabaseError:
            return


def _keep_aside(target: Path, now: datetime) -> Path | None:
    found = [file for suffix in BESIDE if (file := Path(f"{target}{suffix}")).exists()]
    if not found:
        return None
    aside = target.parent / f"before-restore-{now:%Y%m%dT%H%M%S}Z"
    aside.mkdir(mode=0o700)
    for file in found:
        kept = aside / file.name
        try:
            os.link(file, kept)
        except OSError:
            shutil.copy2(file, kept)
        sync(kept)
    sync(aside)
    return aside


@contextmanager
def _engine(url: str) -> Iterator[Engine]:
    engine = Database(url).engine
    try:
        yield engine
    finally:
        # The last connection that closes brings SQLite's log home.
        engine.dispose()


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".restore-", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _written(target: Path) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        raise UnavailableError(
            "DATABASE_UNAVAILABLE",
            f"the database does not work: {error.orig}.",
            hint="Look at its disk (full, read-only) and at other programs that hold it.",
        ) from error
    except OSError as error:
        raise PreconditionError(
            "RESTORE_NOT_WRITTEN",
            f"{target} cannot be replaced: {error.strerror or error}.",
            hint="The database is as it was. Make room, or correct owner and mode, and do it again.",
        ) from error
