"""A text in a person's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from droidfleet_shared.errors import InvalidInputError

DEFAULT_EDITOR = "vi"


def edited(text: str, *, name: str) -> str:
    """The text when the editor of ``$VISUAL`` or ``$EDITOR`` has ended. ``name``: of the file, for its colours.

    Raises:
        InvalidInputError: ``NO_EDITOR``: there is none, or it failed.
    """
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR
    with tempfile.TemporaryDirectory(prefix="droidfleet-") as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8")
        try:
            # A person's own program, for as long as the person likes.
            ended = subprocess.run([*shlex.split(command), str(file)], check=False)
        except (OSError, ValueError) as error:
            raise _no_editor(command, "it cannot be started") from error
        if ended.returncode:
            raise _no_editor(command, f"it ended with {ended.returncode}")
        return file.read_text(encoding="utf-8")


def _no_editor(command: str, why: str) -> InvalidInputError:
    return InvalidInputError(
        "NO_EDITOR", f"the editor {command!r} cannot be used: {why}.", hint="Set EDITOR, or name a file."
    )
