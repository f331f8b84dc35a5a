"""One attempt at one execution, as the journal knows it, and the moves it may make. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from droidfleet_shared.bus.messages import (
    ArtifactStored,
    Event,
    ExecutionAccepted,
    ExecutionContinued,
    ExecutionFinished,
    ExecutionPaused,
    ExecutionRef,
    ExecutionRejected,
    ExecutionResumed,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.clock import Uptime
from droidfleet_shared.errors import PreconditionError


class Phase(StrEnum):
    """How far an attempt has come. It only ever moves forward."""

    ACCEPTED = "ACCEPTED"
    """Taken on, not begun."""
    RUNNING = "RUNNING"
    """Begun: it must never begin again, whatever happens."""
    ENDED = "ENDED"
    """Its last event is written; it is kept until the controller has recorded it."""


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that began and has not ended. ``dispatched`` counts the actions that were announced for it."""

    step_id: str
    path: str
    dispatched: int = 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """``task``: the document's text. ``start_by``: it must not begin later; None: no limit. ``start_by_uptime``:
    the same by the host's uptime.

    ``open_step``: where a crash leaves an action in doubt. ``unsent``: how many of its step events had to make room and
    were never sent. ``last``: what ended it, to be sent until it is recorded. ``trail_length``: entries of its
    trail; None when it left too many to go on with after a crash. ``restarts``: how often a later process went on;
    ``crashes``: how often because the one before had ended without leaving the run. ``left``: the last process ended in
    order and left it. ``paused``: it is held.
    """

    ref: ExecutionRef
    task: str
    start_by: datetime | None
    start_by_uptime: Uptime | None = field(default=None, kw_only=True)
    phase: Phase = Phase.ACCEPTED
    sequence: int = 0
    open_step: OpenStep | None = None
    unsent: int = 0
    last: ExecutionFinished | ExecutionRejected | None = None
    trail_length: int | None = 0
    restarts: int = 0
    crashes: int = 0
    left: bool = False
    paused: bool = False


class IllegalMoveError(PreconditionError):
    """The attempt is not in a phase that allows this: a defect of the caller, stopped before it had an effect."""


def after_event(attempt: Attempt, event: Event) -> Attempt:
    """The attempt once ``event`` is written.

    Raises:
        IllegalMoveError: the event does not follow from where the attempt is. Above all: an attempt begins once.
    """
    if event.sequence != attempt.sequence + 1 or (event.execution_id, event.attempt) != key(attempt.ref):
        raise _illegal(attempt, event)
    moved = replace(attempt, sequence=event.sequence)
    phase = attempt.phase
    match event:
        case ExecutionAccepted() if phase is Phase.ACCEPTED and attempt.sequence == 0:
            pass
        case ArtifactStored() if phase is Phase.RUNNING:
            pass
        case ExecutionStarted() if phase is Phase.ACCEPTED and attempt.sequence > 0:
            moved = replace(moved, phase=Phase.RUNNING)
        case ExecutionResumed() if phase is Phase.RUNNING:
            crashes = attempt.crashes + (not attempt.left)
            moved = replace(moved, restarts=attempt.restarts + 1, crashes=crashes, left=False)
        case ExecutionPaused() | ExecutionContinued() if phase is Phase.RUNNING and attempt.paused != _pauses(event):
            moved = replace(moved, paused=_pauses(event))
        case StepStarted() if phase is Phase.RUNNING:
            moved = replace(moved, open_step=OpenStep(event.step_id, event.path))
        case StepFinished() if phase is Phase.RUNNING:
            moved = replace(moved, open_step=None)
        case ExecutionFinished() if phase is not Phase.ENDED and attempt.sequence > 0:
            moved = replace(moved, phase=Phase.ENDED, last=event)
        case ExecutionRejected() if phase is Phase.ACCEPTED:
            moved = replace(moved, phase=Phase.ENDED, last=event)
        case (
            ExecutionAccepted()
            | ExecutionStarted()
            | ExecutionResumed()
            | ExecutionPaused()
            | ExecutionContinued()
            | StepStarted()
            | ArtifactStored()
            | StepFinished()
            | ExecutionFinished()
            | ExecutionRejected()
        ):
            raise _illegal(attempt, event)
        case _:
            assert_never(event)
    return moved


def _pauses(event: Event) -> bool:
    return isinstance(event, ExecutionPaused)


def after_dispatching(attempt: Attempt, *, step_id: str, path: str, ordinal: int) -> Attempt:
    """The attempt once an action of its open step is announced.

    Raises:
        IllegalMoveError: no such step is open, or this action was announced before.
    """
    step = attempt.open_step
    if step is None or (step.step_id, step.path) != (step_id, path) or ordinal <= step.dispatched:
        raise IllegalMoveError(
            "ILLEGAL_MOVE", f"action {ordinal} of {path} cannot be announced: {attempt.phase}, open step {step}."
        )
    return replace(attempt, open_step=replace(step, dispatched=ordinal))


def after_leaving(attempt: Attempt) -> Attempt:
    """The attempt once the process that carried it out has left it in order, for the next one to go on with.

    Raises:
        IllegalMoveError: it does not run.
    """
    if attempt.phase is not Phase.RUNNING:
        raise IllegalMoveError("ILLEGAL_MOVE", f"{attempt.ref.execution_id} cannot be left: it is {attempt.phase}.")
    return replace(attempt, left=True)


def key(ref: ExecutionRef) -> tuple[str, int]:
    """What identifies an attempt, for dictionaries and sets (an `Assignment` is an `ExecutionRef` too)."""
    return ref.execution_id, ref.attempt


def _illegal(attempt: Attempt, event: Event) -> IllegalMoveError:
    return IllegalMoveError(
        "ILLEGAL_MOVE",
        f"{event.kind} {event.sequence} cannot follow for {attempt.ref.execution_id}: "
        f"it is {attempt.phase} at {attempt.sequence}.",
    )
