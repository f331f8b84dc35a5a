"""What the harness did and saw, with the moment of each: faults, answers, ends. Kept in memory and in a file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """``who``: a part or a request."""

    at: datetime
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.at:%H:%M:%S.%f}"[:-3] + f"  {self.who:<20} {self.what}"


class Diary:
    """Entries in the order in which they were made; each is in the file at once, for whoever looks on."""

    def __init__(self, file: Path) -> None:
        self.entries: list[Entry] = []
        self._file = file.open("w", buffering=1)

    def note(self, who: str, what: str) -> datetime:
        """Adds an entry; its moment."""
        entry = Entry(datetime.now(UTC), who, what)
        self.entries.append(entry)
        self._file.write(f"{entry}\n")
        return entry.at

    def close(self) -> None:
        """Ends the file."""
        self._file.close()
