"""What agent, controller and command lines must agree on about artifacts: their bounds, and their names as files.

An artifact's name comes from a task, its step's id too: nothing of either becomes a path before it went through
`file_name`, and no file that is there already is written over.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from droidfleet_shared.errors import PreconditionError

MAX_ARTIFACT_BYTES = 600_000
"""Of one artifact: in base64, with an event around it, it still fits one bus message."""

MAX_RUN_ARTIFACTS = 50
MAX_RUN_ARTIFACT_BYTES = 20_000_000
"""Of one attempt. What comes after is left out, and the result says how many."""

SHA256_PATTERN = re.compile(r"[0-9a-f]{64}")

FILE_MODE = 0o600
"""A picture of a screen shows what its owner sees."""

_SUFFIXES = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "application/xml": ".xml",
    "application/json": ".json",
    "text/plain": ".txt",
}
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_PART = 60
"""Characters of a step's id or an artifact's name in a file's name, which may have 255 bytes."""

_MAX_SAME_NAME = 1_000


def file_name(number: int, *, step_id: str, name: str, media_type: str) -> str:
    """A file's name for the ``number``th artifact of a run: ``003-login-before_tap.png``. Never a path."""
    suffix = _SUFFIXES.get(media_type, ".bin")
    return f"{number:03}-{_part(step_id)}-{_part(name).removesuffix(suffix)}{suffix}"


def save(folder: Path, name: str, data: bytes) -> Path:
    """Writes ``data`` into a new file of ``folder`` (made when missing), readable by its owner alone.

    ``name`` is one that `file_name` made. A file of that name with the same content stays; beside one with another
    content, a number is added to the new one's name.

    Raises:
        PreconditionError: ``FILE_UNWRITABLE``.
    """
    stem, suffix = Path(name).stem, Path(name).suffix
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _MAX_SAME_NAME):
            file = folder / (name if number == 1 else f"{stem}-{number}{suffix}")
            try:
                descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
            except FileExistsError:
                if file.is_file() and not file.is_symlink() and file.read_bytes() == data:
                    return file
                continue
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            return file
    except OSError as error:
        raise PreconditionError(
            "FILE_UNWRITABLE",
            f"{folder / name} cannot be written: {error.strerror or error}.",
            hint="Name a folder that can be written and has room.",
        ) from error
    raise PreconditionError(
        "FILE_UNWRITABLE", f"{folder} holds too many files of the name {name!r}.", hint="Name another folder."
    )


def _part(text: str) -> str:
    return _UNSAFE.sub("_", text).strip("._-")[:_MAX_PART] or "_"
