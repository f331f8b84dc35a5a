"""The journal in memory: it forgets everything with its process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from droidfleet_agent.engine.trail import Entry
from droidfleet_agent.journal.attempt import Attempt, key
from droidfleet_agent.journal.book import Book, Change, Name
from droidfleet_agent.journal.port import Journal, Limits
from droidfleet_shared.bus.messages import Event, ExecutionRef


class MemoryJournal(Journal):
    """`Journal` for tests and for agents that may forget: a `Book`, written nowhere."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008  # frozen
        self._book = Book(limits)
        self._trails: dict[Name, list[Entry]] = {}

    async def attempts(self) -> Sequence[Attempt]:
        return self._book.attempts()

    async def forgotten(self, ref: ExecutionRef) -> bool:
        return self._book.is_forgotten(ref)

    async def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        return self._write(self._book.take_on(attempt, make))

    async def append(self, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None) -> Event:
        return self._write(self._book.append(ref, make, trail=trail))

    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        self._book.apply(self._book.dispatching(ref, step_id=step_id, path=path, ordinal=ordinal))

    async def leave(self, ref: ExecutionRef) -> None:
        self._book.apply(self._book.leave(ref))

    async def note(self, ref: ExecutionRef, entry: Entry) -> None:
        self._apply(self._book.note(ref, entry))

    async def trail(self, ref: ExecutionRef) -> Sequence[Entry]:
        return tuple(self._trails.get(key(ref), ()))

    async def outbox(self, limit: int) -> Sequence[Event]:
        return self._book.outbox(limit)

    async def sent(self, events: Sequence[Event]) -> None:
        self._book.apply(self._book.sent(events))

    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        self._book.apply(self._book.forget(refs))

    async def close(self) -> None:
        pass

    def _write(self, change: Change) -> Event:
        assert change.added is not None
        self._apply(change)
        return change.added.event

    def _apply(self, change: Change) -> None:
        self._book.apply(change)
        if change.trail is not None:
            name, entry = change.trail
            self._trails.setdefault(name, []).append(entry)
        for ended in change.trails_ended:
            self._trails.pop(ended, None)
