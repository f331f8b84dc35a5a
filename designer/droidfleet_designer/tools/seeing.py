"""What was seen of the phone in one exploration, numbered, and which of it still counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import MutableMapping

from droidfleet_designer.observation.observe import Observation, observe
from droidfleet_designer.tools.phone import Phone
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

PAUSE_S = 0.3
"""After an action, between two looks until they are alike: long enough for an animation to move on."""

MAX_LOOKS = 8
"""After an action: some seconds, then a screen that never comes to rest is taken as it is."""

_NUMBERED = re.compile(r"s([1-9]\d*)")


class Seeing:
    """The looks. ``newest`` is the observation whose numbers count; None: none does.

    Methods that look raise what `Phone.look` does, and `ScreenUnreadableError`.
    """

    def __init__(
        self,
        *,
        phone: Phone,
        clock: Clock,
        words: EffectWords,
        snapshots: MutableMapping[str, Snapshot],
        pause_s: float,
    ) -> None:
        self._phone = phone
        self._clock = clock
        self._words = words
        self._snapshots = snapshots
        self._pause_s = pause_s
        self._last = max((int(found[1]) for each in snapshots if (found := _NUMBERED.fullmatch(each))), default=0)
        self.newest: Observation | None = None

    def of(self, seen: Observation) -> Snapshot:
        """The look of an observation that was kept."""
        return self._snapshots[seen.snapshot_id]

    async def look(self) -> Observation:
        """What the phone shows now."""
        return self.keep(*await self.peek())

    async def peek(self) -> tuple[Observation, Snapshot]:
        """What the phone shows now, as the next observation, which it becomes only if it is kept."""
        snapshot = await self._phone.look()
        return await self._read(snapshot), snapshot

    async def look_for(self, text: str) -> tuple[Observation, bool]:
        """What the phone shows now that says a text, and True; all that it shows, and False, where nothing says it."""
        snapshot = await self._phone.look()
        found = await self._read(snapshot, containing=text)
        if found.elements:
            return self.keep(found, snapshot), True
        return self.keep(await self._read(snapshot), snapshot), False

    async def look_at_rest(self) -> Observation:
        """What the phone shows when two looks in a row are alike, or as it is when it does not come to rest."""
        snapshot = await self._phone.look()
        for _ in range(MAX_LOOKS - 1 if self._pause_s else 0):
            await self._clock.sleep(self._pause_s)
            earlier, snapshot = snapshot, await self._phone.look()
            if earlier == snapshot:
                break
        return self.keep(await self._read(snapshot), snapshot)

    def keep(self, seen: Observation, snapshot: Snapshot) -> Observation:
        """Makes it the newest."""
        self._last = seen.number
        self._snapshots[seen.snapshot_id] = snapshot
        self.newest = seen
        return seen

    async def _read(self, snapshot: Snapshot, *, containing: str = "") -> Observation:
        """In a thread: to name what is on a full screen takes long for a loop that serves others, too."""
        number = self._last + 1
        return await asyncio.to_thread(observe, snapshot, number=number, words=self._words, containing=containing)
