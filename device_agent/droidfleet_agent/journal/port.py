"""The port `Journal`: the contract that the memory and every durable implementation pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from droidfleet_agent.engine.trail import Entry
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_shared.bus.messages import Event, ExecutionRef
from droidfleet_shared.errors import ExhaustedError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a journal holds at most.

    ``attempts``: taken on and not yet recorded. A document carries four; more pile up only when the controller does not
    record. ``kept_bytes``: of their tasks and of what ended them; past it nothing more is taken on. ``progress`` and
    ``progress_bytes``: unsent events of steps; past them the oldest go and are counted (`Attempt.unsent`), for the
    result of an execution holds its steps anyway. ``artifact_bytes``: unsent artifacts, as they are sent (base64); one
    that does not fit is refused. ``trail``: entries of one attempt; one that leaves more is not gone on with after a
    crash (`Attempt.trail_length`). ``forgotten``: recorded attempts whose names are kept, so that an old document
    cannot start them again; past it the oldest go.
    """

    attempts: int = 256
    kept_bytes: int = 64 * 1024 * 1024
    progress: int = 4_096
    progress_bytes: int = 16 * 1024 * 1024
    artifact_bytes: int = 32 * 1024 * 1024
    trail: int = 20_000
    forgotten: int = 4_096


class JournalFullError(ExhaustedError):
    """No room for another attempt until the controller records some, or for an artifact until others are sent."""


class Journal(ABC):
    """What the agent may not lose. The contract (`tests/contract/test_journal_contract.py`):

    - A call that returned is written: a durable journal has it on disk. A call that raised has changed nothing. A
      change and its event are written together or not at all.
    - Events are numbered from 1 within an attempt, without gaps, by the journal.
    - An attempt begins (`ExecutionStarted`) at most once in the journal's lifetime, recorded and forgotten or not.
    - `dispatching` is called before the phone is touched: what it wrote decides after a crash.
    - The trail of an attempt is kept in the order of writing until it ends, or is longer than its limit.
    - Every event waits in the outbox, in the order of writing, until `sent`. What ended an attempt stays with the
      attempt (`Attempt.last`) until `forget`, so that it can be sent again.
    - Bounded by its `Limits`.
    - Safe to call from several tasks of one event loop; calls that overlap take effect one after the other.
    """

    @abstractmethod
    async def attempts(self) -> Sequence[Attempt]:
        """Every attempt that is not forgotten, in the order in which they were taken on."""

    @abstractmethod
    async def forgotten(self, ref: ExecutionRef) -> bool:
        """Whether the attempt was here, was recorded and is forgotten."""

    @abstractmethod
    async def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        """Writes a new attempt with its first event: accepted, or rejected and so ended. ``make`` is given the number.

        Raises:
            JournalFullError: there is no room.
            IllegalMoveError: the attempt is known already, or forgotten, or begins with another event.
        """

    @abstractmethod
    async def append(self, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None) -> Event:
        """Writes the next event of an attempt and moves it accordingly. ``make`` is given the number. ``trail``: an
        entry of its trail that is written with it.

        Raises:
            IllegalMoveError: the attempt is unknown or not in a phase that allows it.
            JournalFullError: there is no room for an artifact.
        """

    @abstractmethod
    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        """Writes that an action is about to be sent to the phone. ``ordinal`` counts from 1 within the step.

        Raises:
            IllegalMoveError: the step is not open, or the action was announced before.
        """

    @abstractmethod
    async def leave(self, ref: ExecutionRef) -> None:
        """Writes that this process leaves the run in order, so that going on with it is no crash.

        Raises:
            IllegalMoveError: the attempt does not run.
        """

    @abstractmethod
    async def note(self, ref: ExecutionRef, entry: Entry) -> None:
        """Writes an entry of an attempt's trail. Durable with the next other call, at the latest.

        Raises:
            IllegalMoveError: the attempt does not run.
        """

    @abstractmethod
    async def trail(self, ref: ExecutionRef) -> Sequence[Entry]:
        """The trail of an attempt; empty when there is none (any more)."""

    @abstractmethod
    async def outbox(self, limit: int) -> Sequence[Event]:
        """The oldest events that wait to be sent."""

    @abstractmethod
    async def sent(self, events: Sequence[Event]) -> None:
        """Takes events out of the outbox: the broker has them. Unknown ones are ignored."""

    @abstractmethod
    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        """Drops ended attempts whose results the controller has recorded; others and unknown ones are left alone."""

    @abstractmethod
    async def close(self) -> None:
        """Gives everything back; safe to call twice."""
