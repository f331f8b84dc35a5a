"""The journal in memory: it forgets everything with its process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from droidfleet_agent.journal.attempt import Attempt, IllegalMoveError, Phase, after_dispatching, after_event, key
from droidfleet_agent.journal.port import Journal, JournalFullError, Limits
from droidfleet_shared.bus.messages import ArtifactStored, Event, ExecutionRef, StepFinished, StepStarted

_EventKey = tuple[str, int, int]


class MemoryJournal(Journal):
    """`Journal` in dictionaries, which keep the order of insertion: the order that the contract asks for."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008  # frozen
        self._limits = limits
        self._attempts: dict[tuple[str, int], Attempt] = {}
        self._outbox: dict[_EventKey, Event] = {}
        self._progress: dict[_EventKey, None] = {}
        self._artifact_bytes = 0
        self._forgotten: dict[tuple[str, int], None] = {}

    async def attempts(self) -> Sequence[Attempt]:
        return tuple(self._attempts.values())

    async def forgotten(self, ref: ExecutionRef) -> bool:
        return key(ref) in self._forgotten

    async def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        name = key(attempt.ref)
        if name in self._attempts or name in self._forgotten:
            raise IllegalMoveError("ILLEGAL_MOVE", f"attempt {name} was taken on before.")
        if len(self._attempts) >= self._limits.attempts:
            raise JournalFullError(
                "JOURNAL_FULL", f"{len(self._attempts)} attempts wait for the controller to record them."
            )
        return self._write(attempt, make)

    async def append(self, ref: ExecutionRef, make: Callable[[int], Event]) -> Event:
        return self._write(self._known(ref), make)

    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        attempt = after_dispatching(self._known(ref), step_id=step_id, path=path, ordinal=ordinal)
        self._attempts[key(ref)] = attempt

    async def outbox(self, limit: int) -> Sequence[Event]:
        return tuple(islice(self._outbox.values(), limit))

    async def sent(self, events: Sequence[Event]) -> None:
        for event in events:
            name = _event_key(event)
            sent = self._outbox.pop(name, None)
            self._progress.pop(name, None)
            if isinstance(sent, ArtifactStored):
                self._artifact_bytes -= len(sent.data)

    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        for ref in refs:
            attempt = self._attempts.get(key(ref))
            if attempt is not None and attempt.phase is Phase.ENDED:
                del self._attempts[key(ref)]
                self._forgotten[key(ref)] = None
        while len(self._forgotten) > self._limits.forgotten:
            del self._forgotten[next(iter(self._forgotten))]

    async def close(self) -> None:
        pass

    def _known(self, ref: ExecutionRef) -> Attempt:
        attempt = self._attempts.get(key(ref))
        if attempt is None:
            raise IllegalMoveError("ILLEGAL_MOVE", f"attempt {key(ref)} is unknown.")
        return attempt

    def _write(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        event = make(attempt.sequence + 1)
        moved = after_event(attempt, event)
        size = len(event.data) if isinstance(event, ArtifactStored) else 0
        if size and self._artifact_bytes + size > self._limits.artifact_bytes:
            raise JournalFullError("JOURNAL_FULL", f"{self._artifact_bytes} bytes of artifacts wait to be sent.")
        self._artifact_bytes += size
        self._attempts[key(attempt.ref)] = moved
        self._outbox[_event_key(event)] = event
        if isinstance(event, StepStarted | StepFinished):
            self._progress[_event_key(event)] = None
            self._drop_old_progress()
        return event

    def _drop_old_progress(self) -> None:
        while len(self._progress) > self._limits.progress:
            name = next(iter(self._progress))
            del self._progress[name], self._outbox[name]
            attempt = self._attempts.get(name[:2])
            if attempt is not None:
                self._attempts[name[:2]] = replace(attempt, unsent=attempt.unsent + 1)


def _event_key(event: Event) -> _EventKey:
    return event.execution_id, event.attempt, event.sequence
