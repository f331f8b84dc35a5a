"""What an agent's event does to an execution. Pure, and indifferent to order and repetition of an attempt's events.

The state follows from the *set* of events seen: a final one decides, else a step or start means RUNNING, else ACCEPTED.
Whether it is PAUSED, and progress, follow the event of a step or a hold with the highest sequence. Repeated events are
kept out before they come here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from droidfleet_controller.dispatch import states
from droidfleet_controller.dispatch.execution import Execution, at_step
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_shared.bus.messages import (
    ArtifactStored,
    Event,
    ExecutionAccepted,
    ExecutionContinued,
    ExecutionFinished,
    ExecutionPaused,
    ExecutionRejected,
    ExecutionResumed,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult

EXPIRED_CODES = frozenset({"START_EXPIRED"})
"""Codes of a rejection that mean: the time to start had passed."""


class Label(StrEnum):
    """Why a result does not count; empty for the one that does."""

    COUNTS = ""
    LATE = "LATE"
    FENCED = "FENCED"
    UNKNOWN_EXECUTION = "UNKNOWN_EXECUTION"


@dataclass(frozen=True, slots=True)
class Applied:
    """The execution after an event; ``label`` says why the event did not count, where it did not."""

    execution: Execution
    label: Label = Label.COUNTS


def apply(execution: Execution, event: Event, *, now: datetime) -> Applied:
    """The execution after ``event``, which was not seen before. ``now``: when the controller received it."""
    if event.attempt != execution.attempt:
        return Applied(_heard_of_fenced(execution, event, now), Label.FENCED)
    match event:
        case ExecutionAccepted():
            return _advance(execution, ExecutionState.ACCEPTED, now)
        case ExecutionStarted() | ExecutionResumed() | ArtifactStored():
            return _advance(execution, ExecutionState.RUNNING, now)
        case StepStarted() | StepFinished() | ExecutionPaused() | ExecutionContinued():
            return _under_way(execution, event, now)
        case ExecutionRejected():
            return _end(execution, _rejected_state(event.code), f"{event.code}: {event.message}", now)
        case ExecutionFinished():
            return _finish(execution, event.result, now)
        case _:
            assert_never(event)


def _heard_of_fenced(execution: Execution, event: Event, now: datetime) -> Execution:
    """All that an event of a fenced attempt tells: that the agent has ended it."""
    final = isinstance(event, ExecutionFinished | ExecutionRejected)
    return execution.stopped(now) if final and event.attempt < execution.attempt else execution


def _advance(execution: Execution, state: ExecutionState, now: datetime) -> Applied:
    if execution.terminal:
        return Applied(execution, Label.LATE)
    # Copied where it changes only: a copy of a record is most of what an event costs here.
    if execution.accepted_at is None or (execution.started_at is None and state is ExecutionState.RUNNING):
        execution = replace(
            execution,
            accepted_at=execution.accepted_at or now,
            started_at=execution.started_at or (now if state is ExecutionState.RUNNING else None),
        )
    if execution.state is not ExecutionState.PAUSED and states.allowed(execution.state, state):
        # What somebody asked for stands until it is done.
        asked = execution.cancel_requested or execution.pause_requested
        return Applied(execution.moved(state, now=now, reason=execution.reason if asked else ""))
    return Applied(execution)


def _under_way(
    execution: Execution, event: StepStarted | StepFinished | ExecutionPaused | ExecutionContinued, now: datetime
) -> Applied:
    applied = _advance(execution, ExecutionState.RUNNING, now)
    if applied.label:
        return applied
    if isinstance(event, StepStarted | StepFinished):
        return _step(applied.execution, event, now)
    return _held(applied.execution, event, now)


def _held(execution: Execution, event: ExecutionPaused | ExecutionContinued, now: datetime) -> Applied:
    """Older news than what is known of its steps, or of another hold, change nothing."""
    if event.sequence <= execution.progress_sequence:
        return Applied(execution)
    state = ExecutionState.PAUSED if isinstance(event, ExecutionPaused) else ExecutionState.RUNNING
    if execution.state is not state:
        execution = execution.moved(state, now=now, reason=execution.reason)
    return Applied(replace(execution, counts_from=now, current_step_id=event.step_id, progress_sequence=event.sequence))


def _step(execution: Execution, event: StepStarted | StepFinished, now: datetime) -> Applied:
    finished = event.result if isinstance(event, StepFinished) else None
    current = event.step_id if isinstance(event, StepStarted) else ""
    newest = event.sequence > execution.progress_sequence
    if newest and execution.state is ExecutionState.PAUSED:
        # It goes on, and the word of that is late.
        execution = replace(execution.moved(ExecutionState.RUNNING, now=now, reason=execution.reason), counts_from=now)
    return Applied(
        at_step(
            execution,
            steps_done=execution.steps_done + (1 if finished else 0),
            iteration=max(execution.iteration, finished.iteration if finished else 0),
            current_step_id=current if newest else execution.current_step_id,
            progress_sequence=event.sequence if newest else execution.progress_sequence,
            now=now,
        )
    )


def _finish(execution: Execution, result: TaskResult, now: datetime) -> Applied:
    reason = "" if result.successful else f"{result.code}: {result.message}"
    applied = _end(execution, _finished_state(result), reason, now)
    if applied.label:
        return applied
    return Applied(replace(applied.execution, result=result, steps_done=len(result.steps) + result.steps_omitted))


def _end(execution: Execution, state: ExecutionState, reason: str, now: datetime) -> Applied:
    if not states.allowed(execution.state, state):
        return Applied(execution, Label.LATE)
    ended = execution.moved(state, now=now, reason=reason)
    return Applied(replace(ended, current_step_id="", progress_sequence=0, iteration=0, steps_done=0, check_at=None))


def _finished_state(result: TaskResult) -> ExecutionState:
    if result.successful:
        return ExecutionState.SUCCEEDED
    if result.code is StepCode.CANCELLED:
        return ExecutionState.CANCELLED
    if result.code is StepCode.TASK_TIMEOUT:
        return ExecutionState.TIMED_OUT
    return ExecutionState.FAILED


def _rejected_state(code: str) -> ExecutionState:
    if code == StepCode.CANCELLED:
        return ExecutionState.CANCELLED
    if code in EXPIRED_CODES:
        return ExecutionState.EXPIRED
    return ExecutionState.REJECTED
