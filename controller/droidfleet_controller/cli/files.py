"""Files that a command writes: whole or not at all, and never over another by accident."""

from __future__ import annotations

import os
from pathlib import Path

from droidfleet_shared.errors import ConflictError, InvalidInputError


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
    check_target(path, force=force)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        message = f"{str(path)!r} cannot be written: {error.strerror}."
        raise InvalidInputError("FILE_UNWRITABLE", message) from error
