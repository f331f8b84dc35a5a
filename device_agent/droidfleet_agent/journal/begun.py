"""Which attempts ever began, on disk: what a journal that dies with its process cannot tell the next one.

With it an agent that was killed and started again reports what it had begun, instead of doing it a second time. A
durable journal knows this itself and needs no such file.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from droidfleet_agent.journal.attempt import key
from droidfleet_shared.bus.messages import ExecutionRef
from droidfleet_shared.errors import PreconditionError

KEPT = 4_096
"""Names that are kept when the file is read; a document lists four, so older ones cannot come back."""

FILE_MODE = 0o600


class UnwritableError(PreconditionError):
    """What has to be on disk first cannot be written."""


class BegunLog:
    """One agent's file: a line for each attempt. One process at a time (the lock on the agent's name sees to that).

    Raises:
        OSError: the file can be neither read nor written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        lines = [line for line in text.splitlines() if line]
        if len(lines) > KEPT:
            lines = lines[-KEPT:]
            fresh = file.with_suffix(".new")
            _append(fresh, lines)
            fresh.replace(file)
        # A line that was cut off by a crash is no name: the attempt did not begin before it was whole.
        self._names = {tuple(line.split(" ")) for line in lines}

    def __contains__(self, ref: ExecutionRef) -> bool:
        return _name(ref) in self._names

    async def add(self, ref: ExecutionRef) -> None:
        """Writes that the attempt begins; on disk when this returns.

        Raises:
            UnwritableError: it could not be written, so the attempt must not begin.
        """
        try:
            await asyncio.to_thread(_append, self._file, [" ".join(_name(ref))])
        except OSError as error:
            raise UnwritableError(
                "STATE_FOLDER_UNUSABLE",
                f"{self._file} cannot be written: {error.strerror or error}. Nothing begins that is not written down.",
                hint="Make room on its disk, or make it writable; then start the agent again.",
            ) from error
        self._names.add(_name(ref))


def _name(ref: ExecutionRef) -> tuple[str, ...]:
    execution_id, attempt = key(ref)
    # Ids come from the controller and hold no blanks; whatever they hold, a line stays a line.
    return execution_id.encode("unicode_escape").decode().replace(" ", "\\x20"), str(attempt), "."


def _append(file: Path, lines: list[str]) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    try:
        # The line break before it keeps it whole where a crash cut off the line before.
        rest = "".join(f"\n{line}\n" for line in lines).encode()
        while rest:
            # A disk that is nearly full takes a part, and refuses only the next write.
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
