"""Makes a backup while the controller works, or while none does. Blocking; works on files alone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import text

from droidfleet_controller.admin import archive, invariants, sqlite_file
from droidfleet_controller.admin.archive import Manifest
from droidfleet_controller.admin.finding import Finding
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.store import artifacts as stored_artifacts
from droidfleet_controller.store import migrate
from droidfleet_shared.errors import ConflictError, InvalidInputError, PreconditionError

ARTIFACTS_FOLDER = "artifacts"

Say = Callable[[str], None]
"""Told what is being done, for people."""


@dataclass(frozen=True, slots=True)
class Made:
    """``findings``: what is wrong in the database, which was copied as it is; ``missing``: artifacts without a file."""

    manifest: Manifest
    size: int
    findings: tuple[Finding, ...]
    missing: int


def make(  # says what it does as it goes
    database: Path, target: Path, *, artifacts: Path | None, now: datetime, say: Say
) -> Made:
    """Writes a backup of ``database`` to ``target``, which then is there whole, or not at all.

    ``artifacts``: their folder; None: they are left out.

    Raises:
        ConflictError: ``FILE_EXISTS``.
        NotFoundError: ``DATABASE_NOT_FOUND``.
        PreconditionError: ``DATABASE_DAMAGED``, ``BACKUP_NOT_WRITTEN``.
    """
    if os.path.lexists(target):
        raise _exists(target)
    try:
        with _workplace(target) as folder:
            copied = folder / sqlite_file.DATABASE_FILE
            say("copying the database")
            sqlite_file.copy(database, copied)
            say("checking the copy")
            findings, revision, digests = _look_at(copied)
            damaged = next((each for each in findings if each.code == "DATABASE_DAMAGED"), None)
            if damaged is not None:
                raise PreconditionError(
                    "DATABASE_DAMAGED", f"the database is damaged: {damaged.message}.", hint=damaged.hint
                )
            files = ArtifactFiles(artifacts) if artifacts is not None else None
            kept = [digest for digest in digests if files.read(digest) is not None] if files is not None else []
            manifest = Manifest(
                made_at=now,
                version=version("droidfleet"),
                schema_revision=revision,
                database_sha256=archive.digest_of(copied),
                database_bytes=copied.stat().st_size,
                artifacts=len(kept) if files is not None else None,
            )
            say(f"writing the database and {len(kept)} artifacts")
            draft = folder / "backup"
            archive.write(draft, manifest, copied, _contents(files, kept), at=now)
            say("reading it again")
            verify(draft, folder / "read-again.db")
            _publish(draft, target)
            missing = len(digests) - len(kept) if files is not None else 0
            return Made(manifest, target.stat().st_size, tuple(findings), missing)
    except OSError as error:
        raise PreconditionError(
            "BACKUP_NOT_WRITTEN",
            f"{target} cannot be written: {error.strerror or error}.",
            hint="Nothing is left of it. Choose another place with enough room.",
        ) from error


def verify(file: Path, scratch: Path) -> Manifest:
    """Reads a backup to its end. Its database is left in ``scratch``.

    Raises:
        NotFoundError, InvalidInputError: as `archive.opened`.
    """
    with archive.opened(file) as backup:
        backup.extract_database(scratch)
        for _ in backup.artifacts():
            pass
        return backup.manifest


def check(file: Path) -> list[Finding]:
    """What is wrong with a backup, or with the database of a stopped controller.

    Raises:
        NotFoundError, InvalidInputError: as `archive.opened`.
        PreconditionError: ``DATABASE_DAMAGED``: it is none at all.
    """
    with tempfile.TemporaryDirectory(prefix="droidfleet-check-") as folder:
        scratch = Path(folder) / sqlite_file.DATABASE_FILE
        if is_database(file):
            sqlite_file.copy(file, scratch)
        else:
            verify(file, scratch)
        findings, _, _ = _look_at(scratch)
        return findings


def is_database(file: Path) -> bool:
    """Whether the file is an SQLite database, and no backup."""
    try:
        with file.open("rb") as stream:
            return stream.read(len(sqlite_file.HEADER)) == sqlite_file.HEADER
    except OSError:
        return False


def _look_at(file: Path) -> tuple[list[Finding], str, list[str]]:
    """What is wrong, the schema's revision, and the digests of artifacts that have a file. In a database of another
    version of the program only the file is looked at: its rules are that one's."""
    with sqlite_file.opened(file) as connection:
        findings = invariants.damaged(connection)
        if findings:
            return findings, "", []
        revision = str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())
        if revision == migrate.newest():
            findings = invariants.broken(connection)
        return findings, revision, sorted(stored_artifacts.digests(connection))


def _contents(files: ArtifactFiles | None, digests: list[str]) -> Iterator[tuple[str, bytes]]:
    for digest in digests:
        data = files.read(digest) if files is not None else None
        if data is None:
            raise InvalidInputError(
                "ARTIFACTS_CHANGED", "artifacts had to make room for others meanwhile.", hint="Make the backup again."
            )
        yield digest, data


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    """A folder beside the target, so that the whole file needs only a new name. Gone in the end."""
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _publish(draft: Path, target: Path) -> None:
    sync(draft)
    try:
        os.link(draft, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:
        # A file system without hard links: what somebody else puts there in this very moment would be overwritten.
        if os.path.lexists(target):
            raise _exists(target) from None
        draft.rename(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Has the disk write a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exists(target: Path) -> ConflictError:
    return ConflictError(
        "FILE_EXISTS", f"{target} exists already.", hint="A backup overwrites nothing: name another file."
    )
