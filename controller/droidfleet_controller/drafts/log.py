"""Logs of explorations in the database, and following them.

A draft's row moves on with the entry that moves it, in one transaction: what a log says and what a draft is never
disagree.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import BaseModel, TypeAdapter
from sqlalchemy import Connection

from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_controller.drafts.bounds import exploration_over, require_room
from droidfleet_controller.drafts.followers import Followers
from droidfleet_controller.drafts.pictures import Pictures
from droidfleet_controller.drafts.record import DraftState, StoredDraft, StoredEntry, draft_not_found, logged
from droidfleet_controller.store import drafts
from droidfleet_controller.store.database import Database
from droidfleet_designer.log import ApprovalAsked, Ended, Entry, Logged
from droidfleet_designer.ports import ExplorationLog, LogBounds, Shot
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError
from droidfleet_shared.screen.snapshot import Snapshot

PAGE = 100
"""Entries that a follower reads at a time."""

_ENTRY: TypeAdapter[Entry] = TypeAdapter(Entry)


@dataclass(frozen=True, slots=True)
class Heard:
    """A piece of what the model says just now."""

    text: str


class DraftLogs:
    """The logs of all drafts."""

    def __init__(
        self,
        *,
        database: Database,
        pictures: Pictures,
        clock: Clock,
        followers: Followers,
        approvals: Approvals,
        bounds: LogBounds | None = None,
    ) -> None:
        self._database = database
        self._pictures = pictures
        self._clock = clock
        self._followers = followers
        self._approvals = approvals
        self._bounds = bounds or LogBounds()

    def of(self, draft_id: str) -> ExplorationLog:
        """The log of a draft that there is."""
        return _DraftLog(self, draft_id)

    async def follow(self, draft_id: str, *, after: int) -> AsyncIterator[StoredEntry | Heard]:
        """What was logged after a sequence, then what is logged and said, until the exploration has ended.

        An entry ends the text that was heard before it: of a turn the entry `spoke` has the whole, and one that broke
        off is said anew.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        last = after
        with self._followers.following(draft_id) as follower:
            while True:
                follower.stale = False
                goes_on, entries = await self._database.run(partial(_after, draft_id=draft_id, sequence=last))
                for entry in entries:
                    yield entry
                    last = entry.sequence
                if len(entries) == PAGE:
                    continue
                if not goes_on:
                    return
                while not follower.stale:
                    follower.woken.clear()
                    if text := follower.take(self._followers.turn(draft_id), after=last):
                        yield Heard(text)
                    else:
                        await follower.woken.wait()

    # What one log needs.

    async def append(self, draft_id: str, entry: Entry) -> int:
        """See `ExplorationLog.append`."""
        body = _text(entry)
        now = self._clock.now()

        def write(connection: Connection) -> int:
            draft = _exploring(connection, draft_id)
            after = logged(draft, entry, size_bytes=len(body.encode()), now=now)
            if not isinstance(entry, Ended):
                require_room("entries", after.last_sequence, self._bounds.entries)
                require_room("bytes of entries", after.entry_bytes, self._bounds.entry_bytes)
            drafts.add_entry(connection, draft_id, StoredEntry(after.last_sequence, now, entry.kind, body))
            if not drafts.replace(connection, after, version=draft.version):
                raise ConflictError("STALE_VERSION", f"draft {draft_id!r} changed while its exploration logged.")
            return after.last_sequence

        def announce(sequence: int) -> None:
            if isinstance(entry, ApprovalAsked):
                self._approvals.asked(draft_id, entry.approval_id)
            over = isinstance(entry, Ended)
            if over:
                self._approvals.over(draft_id)
            self._followers.committed(draft_id, sequence, over=over)

        return await self._database.run(write, after=announce)

    async def entries(self, draft_id: str) -> Sequence[Logged]:
        """See `ExplorationLog.entries`."""
        stored = await self._database.run(lambda connection: drafts.entries(connection, draft_id))
        # Thousands of entries take a moment: not in the way of the event loop.
        return await asyncio.to_thread(lambda: [_logged(each) for each in stored])

    async def keep_snapshot(self, draft_id: str, snapshot_id: str, snapshot: Snapshot) -> None:
        """See `ExplorationLog.keep_snapshot`."""
        body = await asyncio.to_thread(lambda: zlib.compress(_text(snapshot).encode()))

        def write(connection: Connection) -> None:
            others = drafts.other_snapshots(connection, draft_id, snapshot_id)
            require_room("snapshots", others.count + 1, self._bounds.snapshots)
            require_room("bytes of snapshots", others.size_bytes + len(body), self._bounds.snapshot_bytes)
            drafts.keep_snapshot(connection, draft_id, snapshot_id, body)

        await self._database.run(write)

    async def snapshot(self, draft_id: str, snapshot_id: str) -> Snapshot | None:
        """See `ExplorationLog.snapshot`."""
        body = await self._database.run(lambda connection: drafts.snapshot(connection, draft_id, snapshot_id))
        return None if body is None else Snapshot.model_validate_json(zlib.decompress(body))

    async def keep_picture(self, draft_id: str, shot: Shot) -> str:
        """See `ExplorationLog.keep_picture`."""
        return await self._pictures.keep(draft_id, shot, bounds=self._bounds)

    async def picture(self, draft_id: str, digest: str) -> Shot | None:
        """See `ExplorationLog.picture`."""
        return await self._pictures.read(draft_id, digest)

    def heard(self, draft_id: str, text: str) -> None:
        """See `ExplorationLog.heard`."""
        self._followers.heard(draft_id, text)


class _DraftLog(ExplorationLog):
    """The log of one draft."""

    def __init__(self, logs: DraftLogs, draft_id: str) -> None:
        self._logs = logs
        self._draft_id = draft_id

    async def append(self, entry: Entry) -> int:
        return await self._logs.append(self._draft_id, entry)

    async def entries(self) -> Sequence[Logged]:
        return await self._logs.entries(self._draft_id)

    async def keep_snapshot(self, snapshot_id: str, snapshot: Snapshot) -> None:
        await self._logs.keep_snapshot(self._draft_id, snapshot_id, snapshot)

    async def snapshot(self, snapshot_id: str) -> Snapshot | None:
        return await self._logs.snapshot(self._draft_id, snapshot_id)

    async def keep_picture(self, shot: Shot) -> str:
        return await self._logs.keep_picture(self._draft_id, shot)

    async def picture(self, digest: str) -> Shot | None:
        return await self._logs.picture(self._draft_id, digest)

    def heard(self, text: str) -> None:
        self._logs.heard(self._draft_id, text)


def _after(connection: Connection, *, draft_id: str, sequence: int) -> tuple[bool, list[StoredEntry]]:
    draft = drafts.get(connection, draft_id)
    if draft is None:
        raise draft_not_found(draft_id)
    found = drafts.entries(connection, draft_id, after=sequence, limit=PAGE)
    return draft.state is DraftState.EXPLORING, found


def _exploring(connection: Connection, draft_id: str) -> StoredDraft:
    draft = drafts.get(connection, draft_id)
    if draft is None:
        raise draft_not_found(draft_id)
    if draft.state is not DraftState.EXPLORING:
        raise exploration_over(draft_id)
    return draft


def _text(model: BaseModel) -> str:
    """Its JSON. Half an emoji, which a model's or a phone's text may end with, is no Unicode: it becomes a question
    mark."""
    text = json.dumps(model.model_dump(mode="json", by_alias=True), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace").decode()


def _logged(stored: StoredEntry) -> Logged:
    return Logged(sequence=stored.sequence, at=stored.at, entry=_ENTRY.validate_json(stored.body))
