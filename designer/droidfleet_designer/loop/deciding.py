"""What is next in an exploration. Pure: from its state alone, so that any process can go on with it.

Each move leads to at least one entry, and each entry uses up a call, a turn or a bound: so there is an end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from droidfleet_designer.conversation import Stop, ToolCall
from droidfleet_designer.log import ApprovalAnswered, Ended, Ending, Entry, OutcomeKind, Told, ToolBegan, ToolEnded
from droidfleet_designer.loop.budget import MAX_HALVINGS, nearly_spent
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.loop.state import (
    CALL_CUT,
    CALL_MALFORMED,
    LAST_TURNS,
    NO_CALL,
    NOT_CARRIED_OUT,
    OUTPUT_CUT,
    RESTARTED,
    State,
)
from droidfleet_designer.loop.telling import told
from droidfleet_designer.model.calls import CutCall, MalformedCall, read_call
from droidfleet_designer.observation.quoting import quoted
from droidfleet_designer.tools.catalogue import SUBMIT
from droidfleet_shared.errors import DroidfleetError

STAGNATION = "STAGNATION"
MAX_SAID = 500
"""Characters of what the model said, in the message of an end."""


@dataclass(frozen=True, slots=True)
class Write:
    """Write the entry; nothing else happens. `Ended` comes after the phone is given back."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model."""


@dataclass(frozen=True, slots=True)
class Carry:
    """Carry the call out."""

    call: ToolCall
    arguments: Mapping[str, JsonValue]


Move = Write | Ask | Carry


def next_move(state: State, *, limits: Limits) -> Move:  # noqa: PLR0911 - one for each move
    """What is next, for a state that has begun and not ended, when nothing is going on."""
    if state.draft is not None:
        return Write(_ended(state, Ending.DRAFTED))
    if (end := _beyond_bounds(state, limits)) is not None:
        return Write(end)
    if state.running is not None:
        return Write(_interrupted(state, state.running))
    if state.stop is Stop.REFUSED:
        said = f" It said: {quoted(state.said, most=MAX_SAID)}" if state.said else ""
        return Write(failed(state, "MODEL_REFUSED", f"The model would not do this.{said}", "Say it in other words."))
    if state.due is not None:
        return _call(state, state.due, limits)
    if (telling := _owed(state, limits)) is not None:
        return Write(Told(code=telling, text=told(telling, _language(state))))
    if state.turn >= state.began_with.max_turns:
        message = f"The model was asked {state.turn} times, which is all."
        return Write(failed(state, "TURN_LIMIT", message, "Describe a smaller task, or allow more turns."))
    return Ask()


def failed(state: State, code: str, message: str, hint: str = "") -> Ended:
    """The end of an exploration that came to nothing."""
    return _ended(state, Ending.FAILED, code, message, hint)


def failed_by(state: State, error: DroidfleetError) -> Ended:
    """The end that an error makes."""
    return failed(state, error.code, error.message, error.hint)


def out_of_budget(state: State) -> Ended:
    """The end when another answer would cost more than is left."""
    began = state.began_with
    money = "" if began.max_money is None else f" and {began.max_money:g} {began.currency}"
    message = (
        f"{state.spent_tokens:,} tokens are spent; another answer would go beyond {began.max_tokens:,} tokens{money}."
    )
    return failed(state, "BUDGET_SPENT", message, "Describe a smaller task, or allow more.")


def stopped(state: State) -> Ended:
    """The end by a person; what was found before it stays."""
    return _ended(state, Ending.STOPPED if state.draft is None else Ending.DRAFTED)


def _beyond_bounds(state: State, limits: Limits) -> Ended | None:  # noqa: PLR0911 - one for each bound
    if state.resumes > limits.max_resumes:
        return failed(state, "RESUMED_TOO_OFTEN", f"The designer was restarted {state.resumes} times in it.")
    if state.lease_lost:
        return failed(state, "LEASE_LOST", "The phone was taken away.", "Start again when it is free.")
    if state.offline >= limits.max_offline:
        return failed(state, "DEVICE_OFFLINE", f"The phone did not answer {state.offline} calls in a row.")
    if state.submissions > limits.max_resubmissions:
        message = f"The task was found wrong {state.submissions} times; the last answer to it says why."
        return failed(state, "NO_ACCEPTABLE_DRAFT", message, "Describe it more closely, or try another model.")
    if state.bad_turns > limits.max_bad_turns:
        message = f"{state.bad_turns} answers in a row had no call that could be carried out."
        return failed(state, state.bad, message, "This model may not know how to call tools.")
    if state.too_long > MAX_HALVINGS:
        return failed(state, "MODEL_REFUSED_REQUEST", "The conversation is longer than the model reads.")
    if state.repeats >= limits.max_repeats:
        return failed(state, STAGNATION, f"The same was done on the same screen {state.repeats} times.")
    return None


def _interrupted(state: State, running: ToolBegan) -> Entry:
    """What is written of a call in which an earlier process ended. It is never carried out again."""
    if state.asking:
        return ApprovalAnswered(approval_id=state.asking, allowed=False)
    code = "RESTARTED_WITHHELD" if state.untouched else "RESTARTED_SUBMIT" if running.name == SUBMIT else "RESTARTED_IN"
    outcome = OutcomeKind.INTERRUPTED if code == "RESTARTED_IN" else OutcomeKind.RETRY
    return ToolEnded(
        call_id=running.call_id,
        name=running.name,
        outcome=outcome,
        code=RESTARTED,
        text=told(code, _language(state)),
    )


def _call(state: State, call: ToolCall, limits: Limits) -> Move:
    if state.halted:
        return _unanswered(state, call, state.halted)
    if state.answered >= limits.max_calls_a_turn:
        return _unanswered(state, call, NOT_CARRIED_OUT, "TOO_MANY_CALLS")
    match read_call(call, state.stop):
        case CutCall(reason):
            return _unanswered(state, call, CALL_CUT, reason=reason)
        case MalformedCall(reason):
            return _unanswered(state, call, CALL_MALFORMED, reason=reason)
        case whole:
            return Carry(call, whole.arguments)


def _unanswered(state: State, call: ToolCall, code: str, telling: str = "", *, reason: str = "") -> Write:
    """An answer to a call that is not carried out."""
    text = told(telling or code, _language(state), reason=reason)
    return Write(ToolEnded(call_id=call.id, name=call.name, outcome=OutcomeKind.RETRY, code=code, text=text))


def _owed(state: State, limits: Limits) -> str | None:
    """What the model is told before it is asked again; None: nothing more."""
    if state.turn == 0:
        return None
    owed = [state.bad] if state.bad in (NO_CALL, OUTPUT_CUT) else []
    owed += [STAGNATION] if state.repeats == limits.max_repeats - 1 else []
    owed += [LAST_TURNS] if not state.warned and nearly_spent(state) else []
    return next((code for code in owed if code not in state.told), None)


def _language(state: State) -> str:
    return state.began_with.brief.settings.language


def _ended(state: State, ending: Ending, code: str = "", message: str = "", hint: str = "") -> Ended:
    return Ended(
        ending=ending,
        code=code,
        message=message,
        hint=hint,
        spent_tokens=state.spent_tokens,
        spent_money=state.spent_money,
    )
