"""A log of an exploration in memory that a restart survives: what the database keeps, it keeps in `MemoryShelf`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from droidfleet_designer.log import Ended, Entry, Logged
from droidfleet_designer.ports import ExplorationLog, LogBounds, Shot
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ExhaustedError, PreconditionError
from droidfleet_shared.screen.snapshot import Snapshot


@dataclass
class MemoryShelf:
    """What outlives a log: a test that restarts an exploration makes another log over the same one."""

    entries: list[Logged] = field(default_factory=list)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    pictures: dict[str, Shot] = field(default_factory=dict)


class ShelfLog(ExplorationLog):
    """`ExplorationLog` over a shelf. ``said``: what was heard since the last entry."""

    def __init__(self, *, clock: Clock, shelf: MemoryShelf | None = None, bounds: LogBounds | None = None) -> None:
        self.shelf = shelf or MemoryShelf()
        self.said = ""
        self._clock = clock
        self._bounds = bounds or LogBounds()

    async def append(self, entry: Entry) -> int:
        shelf, bounds = self.shelf, self._bounds
        if shelf.entries and isinstance(shelf.entries[-1].entry, Ended):
            raise PreconditionError("EXPLORATION_OVER", "the exploration has ended.")
        if not isinstance(entry, Ended):
            _require_room(len(shelf.entries) + 1, bounds.entries)
            sizes = sum(_size(each.entry.model_dump(mode="json")) for each in shelf.entries)
            _require_room(sizes + _size(entry.model_dump(mode="json")), bounds.entry_bytes)
        logged = Logged(sequence=len(shelf.entries) + 1, at=self._clock.now(), entry=entry)
        shelf.entries.append(logged)
        self.said = ""
        return logged.sequence

    async def entries(self) -> Sequence[Logged]:
        return list(self.shelf.entries)

    async def keep_snapshot(self, snapshot_id: str, snapshot: Snapshot) -> None:
        after = {**self.shelf.snapshots, snapshot_id: snapshot}
        _require_room(len(after), self._bounds.snapshots)
        _require_room(sum(_size(each.model_dump(mode="json")) for each in after.values()), self._bounds.snapshot_bytes)
        self.shelf.snapshots = after

    async def snapshot(self, snapshot_id: str) -> Snapshot | None:
        return self.shelf.snapshots.get(snapshot_id)

    async def keep_picture(self, shot: Shot) -> str:
        digest = sha256(shot.data).hexdigest()
        after = {**self.shelf.pictures, digest: shot}
        _require_room(len(after), self._bounds.pictures)
        _require_room(sum(len(each.data) for each in after.values()), self._bounds.picture_bytes)
        self.shelf.pictures = after
        return digest

    async def picture(self, digest: str) -> Shot | None:
        return self.shelf.pictures.get(digest)

    def heard(self, text: str) -> None:
        self.said += text


def _require_room(amount: int, most: int) -> None:
    if amount > most:
        raise ExhaustedError("EXPLORATION_FULL", f"{amount} is more than {most}.")


def _size(value: object) -> int:
    return len(json.dumps(value))
