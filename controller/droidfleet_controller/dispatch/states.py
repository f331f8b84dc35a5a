"""The states of an execution and the moves between them: one table that every writer goes through."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from droidfleet_shared.errors import DroidfleetError


class ExecutionState(StrEnum):
    """Where an execution stands; the words of the API."""

    QUEUED = "QUEUED"
    ASSIGNED = "ASSIGNED"
    ACCEPTED = "ACCEPTED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    EXPIRED = "EXPIRED"
    REJECTED = "REJECTED"
    LOST = "LOST"


_S = ExecutionState

REPORTED = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELLED, _S.TIMED_OUT, _S.EXPIRED, _S.REJECTED})
"""Ends that an agent can report."""

TERMINAL = REPORTED | {_S.LOST}

IN_WINDOW = frozenset({_S.ASSIGNED, _S.ACCEPTED, _S.RUNNING, _S.PAUSED})
"""What an agent's desired-state document lists."""

BEGUN = frozenset({_S.RUNNING, _S.PAUSED})

LIVE = IN_WINDOW | {_S.QUEUED}

MOVES: Mapping[ExecutionState, frozenset[ExecutionState]] = {
    # An agent may know more than a database restored from a backup: what it reports of a queued execution happened.
    # When one is restored, what was queued in it is lost: it may have been begun since.
    _S.QUEUED: frozenset({_S.ASSIGNED, _S.ACCEPTED, _S.RUNNING}) | TERMINAL,
    # Events come in any order, so every later state can be the next one.
    _S.ASSIGNED: frozenset({_S.ACCEPTED, _S.RUNNING}) | TERMINAL,
    _S.ACCEPTED: frozenset({_S.RUNNING}) | TERMINAL,
    _S.RUNNING: frozenset({_S.PAUSED}) | TERMINAL,
    _S.PAUSED: frozenset({_S.RUNNING}) | TERMINAL,
    # Lost means that nobody knew; what really happened replaces it.
    _S.LOST: REPORTED,
    **{state: frozenset[ExecutionState]() for state in REPORTED},
}


class IllegalMoveError(DroidfleetError):
    """A defect: a writer tried a move that the table does not have."""


def allowed(current: ExecutionState, wanted: ExecutionState) -> bool:
    """Whether an execution may go from ``current`` to ``wanted``. Staying is no move."""
    return wanted in MOVES[current]


def check(current: ExecutionState, wanted: ExecutionState) -> None:
    """Refuses a move that the table does not have.

    Raises:
        IllegalMoveError
    """
    if not allowed(current, wanted):
        raise IllegalMoveError("ILLEGAL_MOVE", f"an execution cannot go from {current} to {wanted}.")
