"""Wakes those who follow a draft, within this process, and has what the model says just now for them.

Nobody who reads slowly holds anybody up or fills memory: the text of a running turn is kept once, and each follower
knows how much of it it has taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from droidfleet_shared.errors import ExhaustedError

MAX_FOLLOWERS = 1_000
"""Open at a time, of all drafts."""

MAX_HEARD = 200_000
"""Characters kept of one turn, more than a model's output may have. What comes after is in the entry alone."""


@dataclass(slots=True)
class Turn:
    """What is said since an entry. ``after``: the entry's sequence."""

    after: int
    pieces: list[str] = field(default_factory=list)
    length: int = 0


class Follower:
    """One who follows. ``stale``: entries were written since it was last set to False."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.stale = True
        self._turn: Turn | None = None
        self._taken = 0

    def take(self, turn: Turn | None, *, after: int) -> str:
        """What it has not taken yet of the running turn. Nothing, when that began after an entry that it has not read:
        a piece never comes before the entries that came before it."""
        if turn is None or turn.after != after:
            return ""
        if turn is not self._turn:
            self._turn, self._taken = turn, 0
        fresh = turn.pieces[self._taken :]
        self._taken = len(turn.pieces)
        return "".join(fresh)


class Followers:
    """Where it is announced what was written and said."""

    def __init__(self) -> None:
        self._by_draft: dict[str, set[Follower]] = {}
        self._turns: dict[str, Turn] = {}
        self._count = 0

    def committed(self, draft_id: str, sequence: int, *, over: bool) -> None:
        """Announces a committed entry. What was said before it has its end; ``over``: nothing comes after it."""
        if over:
            self._turns.pop(draft_id, None)
        else:
            self._turns[draft_id] = Turn(sequence)
        for follower in self._by_draft.get(draft_id, ()):
            follower.stale = True
            follower.woken.set()

    def heard(self, draft_id: str, text: str) -> None:
        """Announces a piece of what is said just now."""
        turn = self._turns.setdefault(draft_id, Turn(0))
        if text and turn.length + len(text) <= MAX_HEARD:
            turn.pieces.append(text)
            turn.length += len(text)
            for follower in self._by_draft.get(draft_id, ()):
                follower.woken.set()

    def turn(self, draft_id: str) -> Turn | None:
        """What is said just now."""
        return self._turns.get(draft_id)

    @contextmanager
    def following(self, draft_id: str) -> Iterator[Follower]:
        """A follower of a draft, from now on.

        Raises:
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        if self._count >= MAX_FOLLOWERS:
            raise ExhaustedError("TOO_MANY_WATCHES", f"{MAX_FOLLOWERS} follow drafts already.", hint="Close some.")
        follower = Follower()
        self._count += 1
        self._by_draft.setdefault(draft_id, set()).add(follower)
        try:
            yield follower
        finally:
            self._count -= 1
            followers = self._by_draft[draft_id]
            followers.discard(follower)
            if not followers:
                del self._by_draft[draft_id]
