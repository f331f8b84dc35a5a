"""How far an exploration is: a value folded from the entries of its log. Pure.

Calls are known by their place in the turn, not by their ids, which some servers give twice: they are answered in order,
each exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, assert_never

from droidfleet_designer.conversation import Stop, ToolCall
from droidfleet_designer.draft.draft import Draft
from droidfleet_designer.log import (
    ApprovalAnswered,
    ApprovalAsked,
    Began,
    Ended,
    Entry,
    OutcomeKind,
    Problem,
    Proposed,
    Resumed,
    Spoke,
    Told,
    ToolBegan,
    ToolEnded,
)
from droidfleet_designer.loop.screens import told_of

NO_CALL: Final = "NO_CALL"
OUTPUT_CUT: Final = "OUTPUT_CUT"
CALL_CUT: Final = "CALL_CUT"
CALL_MALFORMED: Final = "CALL_MALFORMED"
RESTARTED: Final = "RESTARTED"
NOT_CARRIED_OUT: Final = "NOT_CARRIED_OUT"
TASK_NOT_RIGHT: Final = "TASK_NOT_RIGHT"
TOO_LONG: Final = "CONVERSATION_TOO_LONG"
LAST_TURNS: Final = "LAST_TURNS"

_BAD: Final = {CALL_CUT, CALL_MALFORMED, "UNKNOWN_TOOL", "BAD_ARGUMENTS"}
"""The model did not know how to call."""

_PHONE_GONE: Final = {"DEVICE_OFFLINE", "DEVICE_BUSY", "DEVICE_NOT_FOUND"}

RECENT = 6
"""Calls among which the same one is looked for: a circle of three that is walked twice."""


@dataclass(frozen=True, slots=True)
class State:
    """Up to the last entry. What is ``of the turn`` begins anew when the model speaks."""

    began: Began | None = None
    ended: Ended | None = None
    draft: Draft | None = None
    resumes: int = 0

    turn: int = 0
    spent_tokens: int = 0
    spent_money: float | None = None
    said: str = ""
    """What the model said last."""

    stop: Stop = Stop.DONE
    calls: tuple[ToolCall, ...] = ()
    """Of the turn."""

    answered: int = 0
    """How many of them have an answer."""

    running: ToolBegan | None = None
    """The call that has begun and not ended."""

    asking: str = ""
    """The approval of the running call that is not answered yet."""

    untouched: bool = False
    """The running call was withheld, and nobody has allowed it."""

    halted: str = ""
    """Why the rest of the turn's calls is not carried out: `RESTARTED`, or `NOT_CARRIED_OUT`."""

    told: frozenset[str] = frozenset()
    """Codes of what the loop said since the model spoke."""

    warned: bool = False
    """The model knows that it should finish."""

    bad: str = ""
    """What was wrong with the turn's calls, a code; empty: nothing."""

    bad_turns: int = 0
    """In a row, up to this one."""

    submissions: int = 0
    """Of a task that was found wrong."""

    too_long: int = 0
    """How often the model's server found the conversation too long."""

    offline: int = 0
    """Calls in a row for which the phone was not there."""

    lease_lost: bool = False
    screen: tuple[str, ...] = ()
    """The lines that were seen last."""

    recent: tuple[tuple[str, ...], ...] = ()
    repeats: int = 0
    """How often the most repeated call of the turn stands in ``recent``."""

    counts: Mapping[str, int] = field(default_factory=dict)
    """Calls that began, by tool."""

    @property
    def began_with(self) -> Began:
        """What it began with, where there must be a beginning."""
        assert self.began is not None, "an exploration begins with its first entry"
        return self.began

    @property
    def due(self) -> ToolCall | None:
        """The call that is answered next; None: all are."""
        return self.calls[self.answered] if self.answered < len(self.calls) else None


def state_of(entries: Iterable[Entry]) -> State:
    """The state that a log leads to."""
    return reduce(after, entries, State())


def after(state: State, entry: Entry) -> State:  # noqa: PLR0911 - one for each kind
    """The state after one more entry."""
    match entry:
        case Began():
            return replace(state, began=entry, spent_money=None if entry.prices is None else 0.0)
        case Resumed():
            halted = RESTARTED if state.due is not None else state.halted
            return replace(state, resumes=state.resumes + 1, halted=halted, recent=(), repeats=0)
        case Spoke():
            return _spoke(state, entry)
        case Told():
            warned = state.warned or entry.code == LAST_TURNS
            return replace(state, told=state.told | {entry.code}, warned=warned)
        case ToolBegan():
            counts = {**state.counts, entry.name: state.counts.get(entry.name, 0) + 1}
            return replace(state, running=entry, untouched=False, counts=counts)
        case ApprovalAsked():
            return replace(state, asking=entry.approval_id, untouched=True)
        case ApprovalAnswered():
            return replace(state, asking="", untouched=not entry.allowed)
        case ToolEnded():
            return _ended(state, entry)
        case Proposed():
            return replace(state, draft=entry.draft)
        case Problem():
            return replace(state, too_long=state.too_long + (entry.code == TOO_LONG))
        case Ended():
            return replace(state, ended=entry)
        case _ as never:
            assert_never(never)


def _spoke(state: State, entry: Spoke) -> State:
    bad = "" if entry.calls else OUTPUT_CUT if entry.stop is Stop.LENGTH else NO_CALL
    return replace(
        state,
        turn=entry.turn,
        spent_tokens=entry.spent_tokens,
        spent_money=entry.spent_money,
        said=entry.text,
        stop=entry.stop,
        calls=entry.calls,
        answered=0,
        running=None,
        asking="",
        untouched=False,
        halted="",
        told=frozenset(),
        bad=bad,
        bad_turns=(state.bad_turns if state.bad else 0) + bool(bad),
        repeats=0,
    )


def _ended(state: State, entry: ToolEnded) -> State:
    bad = entry.code if entry.code in _BAD else ""
    gone = entry.outcome is OutcomeKind.FAILED and entry.code in _PHONE_GONE
    carried_out = state.running is not None
    recent, repeats = state.recent, state.repeats
    bounded_otherwise = bad or entry.code == TASK_NOT_RIGHT or entry.outcome is OutcomeKind.INTERRUPTED
    if state.running is not None and not bounded_otherwise:
        key = _key(state.running, entry, state.screen)
        recent = (*recent, key)[-RECENT:]
        repeats = max(repeats, recent.count(key))
    seen = told_of(entry.text, entry.snapshot).lines
    return replace(
        state,
        answered=state.answered + 1,
        running=None,
        asking="",
        untouched=False,
        halted=state.halted or ("" if entry.outcome is OutcomeKind.RESULT else NOT_CARRIED_OUT),
        bad=state.bad or bad,
        bad_turns=state.bad_turns + (bool(bad) and not state.bad),
        submissions=state.submissions + (entry.code == TASK_NOT_RIGHT),
        offline=state.offline + 1 if gone else 0 if carried_out else state.offline,
        lease_lost=entry.code == "LEASE_LOST",
        screen=seen or state.screen,
        recent=recent,
        repeats=repeats,
    )


def _key(began: ToolBegan, ended: ToolEnded, screen: tuple[str, ...]) -> tuple[str, ...]:
    """What makes two calls the same. The number of the screen changes with each look, so it does not count; but a call
    that was refused is the same only to the letter: with the right number it is another."""
    if ended.outcome is OutcomeKind.RETRY:
        return (began.name, began.arguments_json, ended.code)
    arguments = json.loads(began.arguments_json)
    return (began.name, json.dumps({**arguments, "screen": None}, sort_keys=True), *screen)
