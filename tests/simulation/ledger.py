"""What the database says, change by change, and what may be expected of it at every step.

only moves of the table of moves; terminal stays terminal (but LOST); what is reported is what happened
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from droidfleet_controller.dispatch.states import MOVES, TERMINAL, ExecutionState
from simulation.disk import Change
from simulation.history import History
from simulation.loop import START
from simulation.truth import Truth

MAY_HAVE_WAITED = frozenset({ExecutionState.QUEUED, ExecutionState.ASSIGNED, ExecutionState.ACCEPTED})

_START_US = int(START.timestamp() * 1_000_000)


def second(us: int) -> float:
    """An instant of the database as a second of the world."""
    return (us - _START_US) / 1e6


@dataclass(slots=True)
class Entry:
    """An execution as the database has it."""

    execution_id: str
    device: str
    run_id: str
    state: ExecutionState
    attempt: int
    cancel_requested: bool
    try_number: int
    expires_at: float
    created_at: float
    ended_at: float | None = None

    @property
    def terminal(self) -> bool:
        """Whether it has ended."""
        return self.state in TERMINAL

    @property
    def waits(self) -> bool:
        """Whether a phone that is free should begin it."""
        return self.state in MAY_HAVE_WAITED and not self.cancel_requested


@dataclass(slots=True)
class Ledger:
    """The executions. `committed` is called with the changes of each transaction, at once."""

    history: History
    truth: Truth
    entries: dict[str, Entry] = field(default_factory=dict)
    on_created: Callable[[Entry], None] = lambda _entry: None

    def committed(self, changes: list[Change], now: float) -> None:
        """Takes the changes of one transaction."""
        for change in changes:
            self._take(change, now)

    def live(self) -> list[Entry]:
        """What has not ended."""
        return [entry for entry in self.entries.values() if not entry.terminal]

    def _take(self, change: Change, now: float) -> None:
        expect = self.history.expect
        name, after = change.execution_id, ExecutionState(change.after)
        entry = self.entries.get(name)
        if not change.before:
            self.history.note("database", f"{name} for {change.device} is {after}")
            expect(entry is None, f"{name} is created a second time")
            entry = self.entries[name] = Entry(
                name,
                change.device,
                change.run_id,
                after,
                change.attempt,
                change.cancel_requested,
                change.try_number,
                expires_at=second(change.expires_at_us),
                created_at=second(change.created_at_us),
            )
            self.on_created(entry)
            return
        if entry is None:
            self.history.finding(f"{name} changes and was never created")
            return
        if change.before != change.after:
            self.history.note(
                "database", f"{name} {change.before} -> {after} {change.reason.partition(':')[0]}".rstrip()
            )
            before = ExecutionState(change.before)
            expect(entry.state is before, f"{name} was {entry.state} and is said to have been {before}")
            expect(after in MOVES[before], f"{name} goes from {before} to {after}")
        elif change.attempt != entry.attempt:
            self.history.note("database", f"{name} is fenced at attempt {change.attempt}")
        expect(change.attempt >= entry.attempt, f"{name} goes back to attempt {change.attempt}")
        expect(change.attempt == entry.attempt or not entry.terminal, f"{name} has ended and gets another attempt")
        entry.state, entry.attempt = after, change.attempt
        entry.cancel_requested = change.cancel_requested
        if entry.terminal and entry.ended_at is None:
            entry.ended_at = now
        if after is ExecutionState.SUCCEEDED:
            ran = self.truth.ran.get((name, change.attempt))
            expect(ran is not None and ran.code == "OK", f"{name} is SUCCEEDED, and its phone has not done it")
