"""What an agent does next, from what is wanted, what its journal holds, and what runs. Pure.

Called again after every change; each call is idempotent, so a duplicate or repeated document leads to nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from droidfleet_agent.journal.attempt import Attempt, Phase, key
from droidfleet_shared.bus.messages import Assignment, DesiredState, ExecutionRef, Wanted

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an execution will never run here. ``code`` is a stable word, ``message`` a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that the decision is taken on.

    ``document``: the newest one, or None before any was read. ``forgotten``: assigned attempts that were here, recorded
    and dropped. ``running``: what runs now; ``pausing``: it is asked to be held; ``broke``: attempts that this process
    ran and whose run ended by a defect. ``may_start``: the name is granted, the phone is there, and nobody stops the
    agent. ``late``: accepted attempts that may not begin any more. ``unheard``: ended attempts whose result was sent
    and is not recorded after the time that this should take. ``judge``: says why an assignment must be refused, if it
    must.
    """

    document: DesiredState | None
    attempts: Sequence[Attempt]
    forgotten: frozenset[Key]
    running: Key | None
    pausing: bool
    broke: frozenset[Key]
    may_start: bool
    late: frozenset[Key]
    unheard: frozenset[Key]
    judge: Callable[[Assignment], Refusal | None]


@dataclass(frozen=True, slots=True)
class TakeOn:
    """Write the assignment into the journal and say that it is accepted."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Refuse:
    """Write the assignment into the journal as one that will never run."""

    assignment: Assignment
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Expire:
    """Refuse an accepted attempt whose time to start has passed."""

    ref: ExecutionRef


@dataclass(frozen=True, slots=True)
class AnswerCancelled:
    """End an accepted attempt that never began as cancelled."""

    ref: ExecutionRef
    reason: str


@dataclass(frozen=True, slots=True)
class CancelRunning:
    """Stop what runs at the next step boundary or wait."""

    ref: ExecutionRef
    reason: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Hold what runs at the next step boundary, or in a wait."""

    ref: ExecutionRef


@dataclass(frozen=True, slots=True)
class GoOn:
    """Let what runs go on."""

    ref: ExecutionRef


@dataclass(frozen=True, slots=True)
class SayPaused:
    """Say of an attempt that an earlier process began, and that nothing runs now, that it is held."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class EndInterrupted:
    """End an attempt that began and that nothing runs any more: a crash lies between, and nobody goes on with it."""

    attempt: Attempt
    reason: str = ""
    """Why it is not gone on with, where somebody does not want it any more."""


@dataclass(frozen=True, slots=True)
class ReportAgain:
    """Send the last event of an ended attempt once more."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Forget:
    """Drop ended attempts that the controller has recorded."""

    refs: tuple[ExecutionRef, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """Begin an accepted attempt, or go on with one that an earlier process began."""

    attempt: Attempt


Written = TakeOn | Refuse | Expire | AnswerCancelled | SayPaused | EndInterrupted
"""Actions that are an event in the journal, and nothing else."""

Action = Written | CancelRunning | Pause | GoOn | ReportAgain | Forget | Start

MAX_CRASHES = 3
"""How often an attempt is gone on with after a crash: a task that ends its agent each time is not the way out of it.
Processes that ended in order, as at an upgrade, do not count."""

CANCEL_WANTED = "asked for through the controller."
NOT_ASSIGNED = "no longer assigned to this agent."


def reconcile(situation: Situation) -> list[Action]:
    """What to do now, in this order. A `Start` is always the last one.

    What is taken on in this call begins in the next one, so call again until the answer stays empty.
    """
    actions: list[Action] = []
    document = situation.document
    wanted: dict[Key, Assignment] = {}
    recorded: set[Key] = set()
    if document is not None:
        wanted = {key(assignment): assignment for assignment in reversed(document.executions)}
        recorded = {key(ref) for ref in document.recorded}
    known = {key(attempt.ref): attempt for attempt in situation.attempts}

    receipts = tuple(known[name].ref for name in known if name in recorded and known[name].phase is Phase.ENDED)
    if receipts:
        actions.append(Forget(receipts))

    if document is not None:
        # In the order of the document, which is the order of execution.
        named = dict.fromkeys(key(assignment) for assignment in document.executions)
        unmet = [name for name in named if name not in known and name not in situation.forgotten | recorded]
        actions += [_meet(situation, wanted[name]) for name in unmet]

    for name, attempt in known.items():
        if name not in recorded:
            actions += _settle(situation, attempt, wanted.get(name))

    start = _next(situation, known)
    if start is not None and not any(isinstance(action, EndInterrupted) for action in actions):
        actions.append(Start(start))
    return actions


def _meet(situation: Situation, assignment: Assignment) -> Action:
    """What to do with an assignment that the journal does not hold."""
    refusal = situation.judge(assignment)
    if refusal is not None:
        return Refuse(assignment, refusal)
    return TakeOn(assignment)


def _settle(situation: Situation, attempt: Attempt, wanted: Assignment | None) -> list[Action]:
    """What an attempt in the journal needs, but for beginning it."""
    name = key(attempt.ref)
    unwanted = ""
    # Without a document nothing is known, and nothing known is no reason to stop anything.
    if situation.document is not None:
        unwanted = NOT_ASSIGNED if wanted is None else _cancel_reason(wanted)
    # What is about to write that it began (accepted, and running all the same) is treated as what began.
    if attempt.phase is not Phase.ENDED and name == situation.running:
        return _steer(situation, attempt.ref, wanted, unwanted)
    match attempt.phase:
        case Phase.ACCEPTED:
            if unwanted:
                return [AnswerCancelled(attempt.ref, unwanted)]
            return [Expire(attempt.ref)] if name in situation.late else []
        case Phase.RUNNING:
            return _broken_off(situation, attempt, wanted, unwanted)
        case Phase.ENDED:
            return [ReportAgain(attempt)] if name in situation.unheard else []
        case _:
            assert_never(attempt.phase)


def _steer(situation: Situation, running: ExecutionRef, wanted: Assignment | None, unwanted: str) -> list[Action]:
    """What the run that goes on now is to be told."""
    if unwanted:
        return [CancelRunning(running, unwanted)]
    if wanted is None or _to_be_held(wanted) == situation.pausing:
        return []
    return [GoOn(running) if situation.pausing else Pause(running)]


def _broken_off(situation: Situation, attempt: Attempt, wanted: Assignment | None, unwanted: str) -> list[Action]:
    """What becomes of an attempt that began and does not run, but for going on with it."""
    goes_on = bool(attempt.trail_length) and attempt.crashes < MAX_CRASHES
    if unwanted or key(attempt.ref) in situation.broke or not goes_on:
        return [EndInterrupted(attempt, unwanted)]
    return [SayPaused(attempt)] if wanted is not None and _to_be_held(wanted) and not attempt.paused else []


def _to_be_held(wanted: Assignment) -> bool:
    return wanted.wanted is Wanted.PAUSE


def _cancel_reason(wanted: Assignment) -> str:
    if wanted.wanted is not Wanted.CANCEL:
        return ""
    return wanted.reason or CANCEL_WANTED


def _next(situation: Situation, known: dict[Key, Attempt]) -> Attempt | None:
    """What may begin or go on now: first what an earlier process began, then in the order of the document."""
    if situation.document is None or situation.running is not None or not situation.may_start:
        return None
    assigned = [(assignment, known.get(key(assignment))) for assignment in situation.document.executions]
    for assignment, attempt in assigned:
        if attempt is not None and attempt.phase is Phase.RUNNING and assignment.wanted is Wanted.RUN:
            return attempt
    for assignment, attempt in assigned:
        startable = attempt is not None and attempt.phase is Phase.ACCEPTED and key(assignment) not in situation.late
        if startable and assignment.wanted is Wanted.RUN:
            return attempt
    return None
