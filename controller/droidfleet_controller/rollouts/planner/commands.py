"""What people, and rules outside the planner, ask of a rollout: whether its state allows it, and what it changes."""

from __future__ import annotations

from typing import assert_never

from droidfleet_controller.rollouts.planner.advance import (
    GATE_PAUSES,
    end_all,
    exceeded,
    gate_reason,
    open_wave,
    stop,
)
from droidfleet_controller.rollouts.planner.book import Book
from droidfleet_controller.rollouts.rollout import ALL_CODES, DRY_RUN_WAVE, Rule
from droidfleet_controller.rollouts.states import TERMINAL, Control, ReasonCode, RolloutState
from droidfleet_shared.errors import ConflictError, PreconditionError

_DONE = {
    Control.PAUSE: "paused",
    Control.RESUME: "resumed",
    Control.PROMOTE: "promoted",
    Control.CANCEL: "cancelled",
    Control.ABORT: "aborted",
}


def check(book: Book, control: Control, *, version: int | None) -> None:
    """Refuses what cannot be done now.

    Raises:
        ConflictError: ``STALE_VERSION``.
        PreconditionError: ``ROLLOUT_...``.
    """
    rollout = book.rollout
    if version is not None and version != rollout.version:
        raise ConflictError(
            "STALE_VERSION",
            f"the rollout is in version {rollout.version} ({_stands(book)}), and the command bears {version}.",
            hint="Look at the rollout again, then repeat the command if you still want it.",
            details={"version": str(rollout.version)},
        )
    if rollout.state in TERMINAL:
        raise PreconditionError("ROLLOUT_ENDED", f"the rollout has ended as {_stands(book)}.")
    if rollout.state is RolloutState.CANCELLING and control is not Control.ABORT:
        raise PreconditionError(
            "ROLLOUT_CANCELLING",
            "the rollout is being cancelled.",
            hint="Wait for what still runs, or abort it to end it at once.",
        )
    match control:
        case Control.PAUSE:
            if not book.running:
                raise PreconditionError(
                    "ROLLOUT_NOT_RUNNING", f"the rollout is {_stands(book)}: nothing new starts as it is."
                )
        case Control.RESUME:
            _check_resume(book)
        case Control.PROMOTE:
            _check_promote(book)
        case Control.CANCEL | Control.ABORT:
            pass
        case _:
            assert_never(control)


def carry_out(book: Book, control: Control, *, actor: str, reason: str, reason_code: ReasonCode | None) -> None:
    """Does what `check` has let pass."""
    who = actor or "somebody"
    said = f"{who} {_DONE[control]} the rollout" + (f": {reason}" if reason else ".")
    book.say(Rule.COMMAND, said, control=control.value, actor=actor)
    match control:
        case Control.PAUSE:
            book.move(RolloutState.PAUSED, reason_code or ReasonCode.PAUSED_BY_OPERATOR, said)
        case Control.RESUME:
            _acknowledge(book)
            book.move(RolloutState.RUNNING)
            book.moving()
        case Control.PROMOTE:
            _acknowledge(book)
            following = book.next_wave()
            if following is not None:
                open_wave(book, following)
            else:
                book.move(RolloutState.RUNNING)
                book.moving()
        case Control.CANCEL:
            stop(book, reason_code or ReasonCode.CANCELLED_BY_OPERATOR, said)
        case Control.ABORT:
            code = reason_code or ReasonCode.ABORTED_BY_OPERATOR
            fenced = end_all(book, reason=f"{code}: {said}", fence=True)
            book.move(RolloutState.ABORTED, code, said)
            sentence = f"{fenced} executions are fenced: what they report later is kept and not counted."
            book.say(Rule.WITHDRAW, sentence, withdrawn=fenced)
        case _:
            assert_never(control)


def _check_resume(book: Book) -> None:
    rollout = book.rollout
    if rollout.state is not RolloutState.PAUSED:
        hint = "Promote it to let it go on." if rollout.state is RolloutState.AWAITING_APPROVAL else ""
        raise PreconditionError("ROLLOUT_NOT_PAUSED", f"the rollout is {_stands(book)}, not paused.", hint=hint)
    if rollout.reason_code in GATE_PAUSES and gate_reason(book) is rollout.reason_code:
        what = "The dry run" if rollout.wave == DRY_RUN_WAVE else f"Wave {rollout.wave}"
        raise PreconditionError(
            "ROLLOUT_BELOW_GATE",
            f"the rollout paused because {rollout.reason} Nothing about that has changed.",
            hint=f"{what} stays as it is: promote the rollout to open the next wave all the same, or cancel it.",
        )


def _check_promote(book: Book) -> None:
    rollout = book.rollout
    if rollout.state is RolloutState.AWAITING_APPROVAL or (
        rollout.state is RolloutState.PAUSED and rollout.reason_code in GATE_PAUSES
    ):
        return
    if book.running and rollout.memory.soak_until is not None:
        return
    if rollout.state is RolloutState.PAUSED:
        raise PreconditionError(
            "ROLLOUT_PAUSED", f"the rollout is {_stands(book)}.", hint="Resume it first; its open wave is not complete."
        )
    raise PreconditionError(
        "ROLLOUT_NOT_PROMOTABLE",
        f"wave {rollout.wave} goes on: the next one can be opened by hand when it is complete.",
        hint="Wait until its members have ended.",
    )


def _acknowledge(book: Book) -> None:
    """What somebody has seen and goes on with does not pause again; one more failure does."""
    known = dict(book.rollout.memory.acknowledged)
    for wave in range(DRY_RUN_WAVE + 1, book.rollout.wave + 1):
        if exceeded(book, wave) is not None:
            failures = book.tallies[wave].failures
            known[wave] = {code: failures[code] for code in (ALL_CODES, *book.gate(wave).max_failures_by_code)}
    if known != book.rollout.memory.acknowledged:
        book.remember_acknowledged(known)


def _stands(book: Book) -> str:
    rollout = book.rollout
    return f"{rollout.state} ({rollout.reason_code})" if rollout.reason_code else rollout.state.value
