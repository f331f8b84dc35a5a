"""Files that a command writes: whole or not at all, and never over another by accident."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from droidfleet_shared.errors import ConflictError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

SPOOL_BYTES = 16 * 1024 * 1024
"""Kept in memory; more goes to a temporary file."""


def check_target(path: Path, *, force: bool) -> None:
    """Refuses a file that cannot be written, before any work is done for it.

    Raises:
        ConflictError: ``FILE_EXISTS``: it is there already and ``force`` is false.
        InvalidInputError: ``FILE_UNWRITABLE``: there is no such folder.
    """
    if path.exists() and not force:
        raise ConflictError(
            "FILE_EXISTS", f"{str(path)!r} is there already.", hint="Choose another name, or replace it with --force."
        )
    if not path.resolve().parent.is_dir():
        raise InvalidInputError("FILE_UNWRITABLE", f"there is no folder {str(path.parent)!r}.")


def write_whole(path: Path, text: str, *, force: bool) -> None:
    """Writes the whole file or none of it.

    Raises:
        ConflictError: ``FILE_EXISTS``.
        InvalidInputError: ``FILE_UNWRITABLE``.
    """
    write_pieces(path, [text.encode()], force=force)


def write_pieces(path: Path, pieces: Iterable[bytes], *, force: bool) -> None:
    """As `write_whole`, of what comes in pieces; where they end in an error, nothing is written."""
    check_target(path, force=force)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
        draft.replace(path)
    except OSError as error:
        message = f"{str(path)!r} cannot be written: {error.strerror}."
        raise InvalidInputError("FILE_UNWRITABLE", message) from error
    finally:
        draft.unlink(missing_ok=True)


def write_stream(stream: BinaryIO, pieces: Iterable[bytes]) -> None:
    """Writes the pieces once all of them are there; where they end in an error, nothing is written."""
    with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
        for piece in pieces:
            spool.write(piece)
        spool.seek(0)
        shutil.copyfileobj(spool, stream)
