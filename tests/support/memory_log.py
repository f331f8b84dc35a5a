"""An exploration's log in memory, which a test may end a process at."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from droidfleet_designer.log import Entry, Logged
from droidfleet_designer.ports import ExplorationLog, Shot
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ExhaustedError
from droidfleet_shared.screen.snapshot import Snapshot


class MemoryLog(ExplorationLog):
    """``room``: so many entries, then it is full, but for the last."""

    def __init__(self, clock: Clock, *, room: int = 1_000) -> None:
        self._clock = clock
        self._room = room
        self.kept: list[Entry] = []
        self.snapshots: dict[str, Snapshot] = {}
        self.pictures: dict[str, Shot] = {}
        self.words: list[str] = []

    async def append(self, entry: Entry) -> int:
        if len(self.kept) >= self._room and entry.kind != "ended":
            raise ExhaustedError("EXPLORATION_FULL", "the exploration is too long to be kept.")
        self.kept.append(entry)
        return len(self.kept)

    async def entries(self) -> Sequence[Logged]:
        now = self._clock.now()
        return [Logged(sequence=number, at=now, entry=each) for number, each in enumerate(self.kept, 1)]

    async def keep_snapshot(self, snapshot_id: str, snapshot: Snapshot) -> None:
        self.snapshots[snapshot_id] = snapshot

    async def snapshot(self, snapshot_id: str) -> Snapshot | None:
        return self.snapshots.get(snapshot_id)

    async def keep_picture(self, shot: Shot) -> str:
        digest = hashlib.sha256(shot.data).hexdigest()
        self.pictures[digest] = shot
        return digest

    async def picture(self, digest: str) -> Shot | None:
        return self.pictures.get(digest)

    def heard(self, text: str) -> None:
        self.words.append(text)


class KillingLog(MemoryLog):
    """One whose process ends at its ``last`` entry: before it is there, or right after. ``killed`` is set then, and the
    one who writes never comes back."""

    def __init__(self, clock: Clock, *, last: int, written: bool) -> None:
        super().__init__(clock)
        self._last = last
        self._written = written
        self.killed = asyncio.Event()

    async def append(self, entry: Entry) -> int:
        if len(self.kept) + 1 == self._last:
            if self._written:
                await super().append(entry)
            self.killed.set()
            await asyncio.Event().wait()
        return await super().append(entry)
