"""The form of a backup: a tar of what it is, the database, and artifacts. Whoever reads one checks every digest."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import file_digest, sha256
from pathlib import Path
from typing import IO, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from droidfleet_controller.admin.sqlite_file import DATABASE_FILE
from droidfleet_shared.artifacts import FILE_MODE, SHA256_PATTERN
from droidfleet_shared.errors import InvalidInputError, NotFoundError

MANIFEST = "backup.json"
ARTIFACTS = "artifacts"

MAX_MANIFEST_BYTES = 100_000

_PIECE_BYTES = 1024 * 1024


class Manifest(BaseModel):
    """What a backup says of itself. ``version``: of the program that made it; ``schema_revision``: of its database."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    format: Literal[1] = 1
    made_at: AwareDatetime
    version: str
    schema_revision: str
    database_sha256: str
    database_bytes: int
    artifacts: int | None
    """How many it holds; None: it was made without them."""


def write(
    target: Path, manifest: Manifest, database: Path, artifacts: Iterable[tuple[str, bytes]], *, at: datetime
) -> None:
    """Writes a backup. ``artifacts``: contents by digest, as many as the manifest says.

    Raises:
        OSError: the disk does not take it.
    """
    # It holds the secrets of what had not ended.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        _add(tar, MANIFEST, manifest.model_dump_json(by_alias=True, indent=2).encode(), at)
        entry = _entry(DATABASE_FILE, manifest.database_bytes, at)
        with database.open("rb") as content:
            tar.addfile(entry, content)
        for digest, data in artifacts:
            _add(tar, f"{ARTIFACTS}/{digest[:2]}/{digest}", data, at)


def _add(tar: tarfile.TarFile, name: str, data: bytes, at: datetime) -> None:
    tar.addfile(_entry(name, len(data), at), io.BytesIO(data))


def _entry(name: str, size: int, at: datetime) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size = size
    entry.mode = FILE_MODE
    entry.mtime = int(at.timestamp())
    return entry


class Backup:
    """A backup that is open for reading, its manifest read. Nothing of it is believed before its digest is right."""

    def __init__(self, file: Path, tar: tarfile.TarFile) -> None:
        self._file = file
        self._tar = tar
        first = tar.next()
        data = self._content(first).read(MAX_MANIFEST_BYTES) if first is not None and first.name == MANIFEST else b""
        try:
            self.manifest = Manifest.model_validate_json(data)
        except ValidationError as error:
            raise _bad(file, f"its {MANIFEST} cannot be read") from error

    def extract_database(self, target: Path) -> None:
        """Writes the database to ``target``.

        Raises:
            InvalidInputError: ``BAD_BACKUP``.
        """
        entry = self._tar.next()
        if entry is None or entry.name != DATABASE_FILE:
            raise _bad(self._file, f"{DATABASE_FILE} is not where it belongs")
        content = self._content(entry)
        with target.open("wb") as stream:
            while piece := content.read(_PIECE_BYTES):
                stream.write(piece)
        if digest_of(target) != self.manifest.database_sha256:
            raise _bad(self._file, "its database is not the one that was written")

    def artifacts(self) -> Iterator[tuple[str, bytes]]:
        """The contents by digest, each as it was. To be called after `extract_database`.

        Raises:
            InvalidInputError: ``BAD_BACKUP``.
        """
        count = 0
        while (entry := self._tar.next()) is not None:
            digest = entry.name.rpartition("/")[2]
            data = self._content(entry).read()
            if not SHA256_PATTERN.fullmatch(digest) or sha256(data).hexdigest() != digest:
                raise _bad(self._file, f"{entry.name} is not what was written")
            count += 1
            yield digest, data
        if count != (self.manifest.artifacts or 0):
            raise _bad(self._file, f"it holds {count} artifacts of {self.manifest.artifacts}")

    def _content(self, entry: tarfile.TarInfo) -> IO[bytes]:
        content = self._tar.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise _bad(self._file, f"{entry.name} is no file")
        return content


@contextmanager
def opened(file: Path) -> Iterator[Backup]:
    """Opens a backup.

    Raises:
        NotFoundError: ``BACKUP_NOT_FOUND``.
        InvalidInputError: ``BAD_BACKUP``: it is none, or not whole.
    """
    try:
        with tarfile.open(file, "r:") as tar:
            yield Backup(file, tar)
    except FileNotFoundError as error:
        raise NotFoundError("BACKUP_NOT_FOUND", f"there is no file {file}.") from error
    except (tarfile.TarError, EOFError) as error:
        raise _bad(file, f"it is not whole, or no backup ({error})") from error


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def _bad(file: Path, why: str) -> InvalidInputError:
    return InvalidInputError(
        "BAD_BACKUP",
        f"{file} cannot be used: {why}.",
        hint="Use another one. `droidfleet admin check FILE` says whether a backup is whole.",
    )
