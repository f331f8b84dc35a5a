"""The files of artifacts: one for each content, named by its digest, in a folder of the data folder.

Owns that folder. Knows no names but digests, so nothing that an agent or a task says becomes a path.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from droidfleet_shared.artifacts import FILE_MODE, SHA256_PATTERN

FOLDER_MODE = 0o700

_DRAFT = ".draft"


class ArtifactFiles:
    """The folder, made when something is first kept. Blocking: call it from a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Writes contents under their SHA-256; each is there whole or not at all.

        Raises:
            OSError: the disk does not take it.
        """
        for digest, data in contents.items():
            file = self._file(digest)
            if not file.exists():
                for folder in (self._folder, file.parent):
                    folder.mkdir(mode=FOLDER_MODE, exist_ok=True)
                draft = file.with_suffix(_DRAFT)
                descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(data)
                    stream.flush()
                    os.fsync(stream.fileno())
                draft.replace(file)

    def read(self, digest: str) -> bytes | None:
        """A content; None when it is not there, or not what its name says any more."""
        try:
            data = self._file(digest).read_bytes()
        except OSError:
            return None
        return data if sha256(data).hexdigest() == digest else None

    def remove(self, digests: Iterable[str]) -> None:
        """Deletes files; one that is not there is no error."""
        for digest in digests:
            with suppress(OSError):
                self._file(digest).unlink()

    def amiss(self, known: Mapping[str, int]) -> dict[str, int | None]:
        """Contents whose file has another size than ``known`` says (bytes by digest): which; None: there is none."""
        found: dict[str, int | None] = {}
        for digest, size in known.items():
            try:
                there = self._file(digest).stat().st_size
            except OSError:
                found[digest] = None
            else:
                if there != size:
                    found[digest] = there
        return found

    def sweep(self, known: Collection[str]) -> int:
        """Deletes what a crash left: drafts, and files that the database does not know. Returns how many."""
        stray = [
            file
            for file in self._folder.glob("??/*")
            if SHA256_PATTERN.fullmatch(file.stem) and (file.suffix == _DRAFT or file.name not in known)
        ]
        for file in stray:
            with suppress(OSError):
                file.unlink()
        return len(stray)

    def _file(self, digest: str) -> Path:
        if not SHA256_PATTERN.fullmatch(digest):
            raise ValueError("not a SHA-256 in lower-case hex")
        return self._folder / digest[:2] / digest
