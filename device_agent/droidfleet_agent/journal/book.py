"""What a journal holds, in memory, and what each write changes. Pure: the implementations decide where it is kept.

    prepare -> (write it down) -> apply

`Book.take_on`, `append` and the like check a call and say what it changes, without changing anything; `Book.apply`
changes it. So that what cannot be written down has not happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from droidfleet_agent.engine.trail import Entry
from droidfleet_agent.journal.attempt import (
    Attempt,
    IllegalMoveError,
    Phase,
    after_dispatching,
    after_event,
    after_leaving,
    key,
)
from droidfleet_agent.journal.port import JournalFullError, Limits
from droidfleet_shared.bus.messages import ArtifactStored, Event, ExecutionRef, StepFinished, StepStarted

Name = tuple[str, int]
"""Of an attempt: execution and number."""

EventName = tuple[str, int, int]
"""Of an event: execution, attempt and sequence."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An event that waits to be sent, with its size in bytes as it is sent."""

    event: Event
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one write changes.

    ``attempts``: as they are afterwards. ``added``: new in the outbox; ``gone``: events out of it, sent or dropped.
    ``trail``: a new entry of an attempt's trail; ``trails_ended``: those that are needed no more. ``forgotten``:
    recorded attempts that become names; ``outdated``: the oldest of those names, that are dropped.
    """

    attempts: tuple[Attempt, ...] = ()
    added: Waiting | None = None
    trail: tuple[Name, Entry] | None = None
    trails_ended: tuple[Name, ...] = ()
    gone: tuple[EventName, ...] = ()
    forgotten: tuple[Name, ...] = ()
    outdated: tuple[Name, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.attempts or self.added or self.gone or self.forgotten)


class Book:
    """The content of a journal within its ``limits``."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._attempts: dict[Name, Attempt] = {}
        self._outbox: dict[EventName, Waiting] = {}
        self._progress: dict[EventName, int] = {}
        self._forgotten: dict[Name, None] = {}
        self._progress_bytes = 0
        self._artifact_bytes = 0
        self._kept_bytes = 0

    def restore(self, attempts: Iterable[Attempt], waiting: Iterable[Waiting], forgotten: Iterable[Name]) -> None:
        """Fills an empty book with what was kept, each in the order of writing."""
        for attempt in attempts:
            self._put(attempt)
        for each in waiting:
            self._add(each)
        self._forgotten.update(dict.fromkeys(forgotten))

    # What is there.

    def attempts(self) -> tuple[Attempt, ...]:
        """In the order in which they were taken on."""
        return tuple(self._attempts.values())

    def is_forgotten(self, ref: ExecutionRef) -> bool:
        """Whether the attempt was here, was recorded and is forgotten."""
        return key(ref) in self._forgotten

    def outbox(self, limit: int) -> tuple[Event, ...]:
        """The oldest events that wait to be sent."""
        return tuple(each.event for each in islice(self._outbox.values(), limit))

    # What a call changes.

    def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Change:
        """A new attempt with its first event.

        Raises:
            JournalFullError, IllegalMoveError: as `Journal.take_on`.
        """
        name = key(attempt.ref)
        if name in self._attempts or name in self._forgotten:
            raise IllegalMoveError("ILLEGAL_MOVE", f"attempt {name} was taken on before.")
        if len(self._attempts) >= self._limits.attempts or self._kept_bytes >= self._limits.kept_bytes:
            raise JournalFullError(
                "JOURNAL_FULL",
                f"{len(self._attempts)} attempts of {self._kept_bytes} bytes wait for the controller to record them.",
            )
        return self._written(attempt, make)

    def append(self, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None) -> Change:
        """The next event of an attempt.

        Raises:
            JournalFullError, IllegalMoveError: as `Journal.append`.
        """
        return self._written(self._known(ref), make, trail)

    def note(self, ref: ExecutionRef, entry: Entry) -> Change:
        """The next entry of an attempt's trail.

        Raises:
            IllegalMoveError: as `Journal.note`.
        """
        attempt = self._known(ref)
        if attempt.phase is not Phase.RUNNING:
            raise IllegalMoveError("ILLEGAL_MOVE", f"attempt {key(ref)} has no trail: it is {attempt.phase}.")
        return self._with_trail(Change(attempts=(attempt,)), attempt, entry)

    def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> Change:
        """The announcement of an action.

        Raises:
            IllegalMoveError: as `Journal.dispatching`.
        """
        return Change(attempts=(after_dispatching(self._known(ref), step_id=step_id, path=path, ordinal=ordinal),))

    def leave(self, ref: ExecutionRef) -> Change:
        """The process leaves the run in order.

        Raises:
            IllegalMoveError: as `Journal.leave`.
        """
        return Change(attempts=(after_leaving(self._known(ref)),))

    def sent(self, events: Sequence[Event]) -> Change:
        """Events leave the outbox."""
        names = dict.fromkeys(_event_name(event) for event in events)
        return Change(gone=tuple(name for name in names if name in self._outbox))

    def forget(self, refs: Sequence[ExecutionRef]) -> Change:
        """Ended attempts become names, and the oldest names go."""
        known = {key(ref): self._attempts.get(key(ref)) for ref in refs}
        names = tuple(name for name, attempt in known.items() if attempt and attempt.phase is Phase.ENDED)
        surplus = max(0, len(self._forgotten) + len(names) - self._limits.forgotten)
        return Change(forgotten=names, outdated=tuple(islice((*self._forgotten, *names), surplus)))

    def apply(self, change: Change) -> None:
        """Carries out what one of the calls above said."""
        for attempt in change.attempts:
            self._put(attempt)
        if change.added is not None:
            self._add(change.added)
        for name in change.gone:
            self._remove(name)
        for forgotten in change.forgotten:
            self._kept_bytes -= _kept(self._attempts.pop(forgotten))
            self._forgotten[forgotten] = None
        for outdated in change.outdated:
            del self._forgotten[outdated]

    def _known(self, ref: ExecutionRef) -> Attempt:
        attempt = self._attempts.get(key(ref))
        if attempt is None:
            raise IllegalMoveError("ILLEGAL_MOVE", f"attempt {key(ref)} is unknown.")
        return attempt

    def _with_trail(self, change: Change, attempt: Attempt, entry: Entry | None) -> Change:
        """``attempt``: as it is after the change. A trail that grows too long is dropped as a whole."""
        if attempt.phase is Phase.ENDED:
            return replace(change, trails_ended=(key(attempt.ref),))
        if entry is None or attempt.trail_length is None:
            return change
        longer = attempt.trail_length + 1
        fits = longer <= self._limits.trail
        counted = replace(attempt, trail_length=longer if fits else None)
        others = tuple(each for each in change.attempts if each.ref != attempt.ref)
        if fits:
            return replace(change, attempts=(counted, *others), trail=(key(attempt.ref), entry))
        return replace(change, attempts=(counted, *others), trails_ended=(key(attempt.ref),))

    def _written(self, attempt: Attempt, make: Callable[[int], Event], trail: Entry | None = None) -> Change:
        event = make(attempt.sequence + 1)
        moved = after_event(attempt, event)
        size = len(event.encode())
        if isinstance(event, ArtifactStored) and self._artifact_bytes + size > self._limits.artifact_bytes:
            raise JournalFullError("JOURNAL_FULL", f"{self._artifact_bytes} bytes of artifacts wait to be sent.")
        dropped = self._without_room(size) if _is_progress(event) else ()
        changed = {key(moved.ref): moved}
        for name in dropped:
            affected = changed.get(name[:2]) or self._attempts.get(name[:2])
            if affected is not None:
                changed[name[:2]] = replace(affected, unsent=affected.unsent + 1)
        change = Change(attempts=tuple(changed.values()), added=Waiting(event, size), gone=dropped)
        return self._with_trail(change, changed[key(moved.ref)], trail)

    def _without_room(self, size: int) -> tuple[EventName, ...]:
        """The oldest progress that has to go for one more of ``size`` bytes."""
        count, total = len(self._progress) + 1, self._progress_bytes + size
        dropped: list[EventName] = []
        for name, each in self._progress.items():
            if count <= self._limits.progress and total <= self._limits.progress_bytes:
                break
            dropped.append(name)
            count, total = count - 1, total - each
        return tuple(dropped)

    def _put(self, attempt: Attempt) -> None:
        before = self._attempts.get(key(attempt.ref))
        self._kept_bytes += _kept(attempt) - (_kept(before) if before else 0)
        self._attempts[key(attempt.ref)] = attempt

    def _add(self, waiting: Waiting) -> None:
        name = _event_name(waiting.event)
        self._outbox[name] = waiting
        if isinstance(waiting.event, ArtifactStored):
            self._artifact_bytes += waiting.size
        elif _is_progress(waiting.event):
            self._progress[name] = waiting.size
            self._progress_bytes += waiting.size

    def _remove(self, name: EventName) -> None:
        waiting = self._outbox.pop(name)
        if isinstance(waiting.event, ArtifactStored):
            self._artifact_bytes -= waiting.size
        self._progress_bytes -= self._progress.pop(name, 0)


def _is_progress(event: Event) -> bool:
    return isinstance(event, StepStarted | StepFinished)


def _kept(attempt: Attempt) -> int:
    return len(attempt.task) + (0 if attempt.last is None else len(attempt.last.encode()))


def _event_name(event: Event) -> EventName:
    return event.execution_id, event.attempt, event.sequence
