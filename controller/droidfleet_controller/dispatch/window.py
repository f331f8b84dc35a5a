"""The desired-state document of one agent: which executions it lists, and its text. Pure.

A document holds the next few executions in the order of their turns; the rest stays queued in the database. It is
bounded by count (`WINDOW` of each priority) and by bytes, and always takes at least one, since one document's text fits
by the protocol's own bound.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from droidfleet_controller.dispatch.deadlines import take_on_by
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_shared.bus.messages import MAX_MESSAGE_BYTES, WINDOW, Assignment, DesiredState, ExecutionRef, Wanted

MAX_RECEIPTS = 64
"""Receipts in one document, oldest first; the others follow when the agent has applied these."""

CANCEL_REQUESTED = "CANCEL_REQUESTED"
"""The code of a reason when somebody asked for the end; their words follow it."""

RECEIPT_BYTES = 128
"""No less than one receipt takes in a document."""

MAX_REASON = 500
"""Characters of the reason of a cancel that the agent is told; control characters take six bytes each."""

ASSIGNMENT_BYTES = 512 + 6 * MAX_REASON
"""No less than an assignment takes beside its text: ids, the agent's name and the revision written into it, and the
reason of a cancel, which may come when it has long been listed."""


@dataclass(frozen=True, slots=True)
class Body:
    """A stored text, shared by all executions of it, with the bytes that it takes inside a document."""

    text: str
    wire_bytes: int

    @classmethod
    def of(cls, text: str) -> Body:
        """Measures ``text`` once."""
        return cls(text, len(json.dumps(text, ensure_ascii=False).encode()))


@dataclass(frozen=True, slots=True)
class Listed:
    """An execution with its task's text, as one entry of a document."""

    execution: Execution
    body: Body


@dataclass(frozen=True, slots=True)
class Document:
    """What to publish for one agent. The text is made late (`encode`), since ten thousand can wait at once."""

    agent: str
    generation: int
    listed: tuple[Listed, ...]
    receipts: tuple[ExecutionRef, ...]
    host_id: str = ""

    def encode(self, now: datetime, *, epoch: str = "") -> bytes:
        """The document as it goes on the bus; times to start are counted from ``now``. ``epoch``: of the database."""
        return DesiredState(
            agent=self.agent,
            epoch=epoch,
            generation=self.generation,
            host_id=self.host_id,
            executions=tuple(_assignment(entry, now) for entry in self.listed),
            recorded=self.receipts,
        ).encode()


def choose(listed: Sequence[Listed], waiting: Sequence[Listed], *, receipts: int) -> int:
    """How many of ``waiting`` (in the order of their turns) join ``listed`` in the agent's window.

    One joins unless `WINDOW` listed ones come before it, or it does not fit. So what is more urgent is never kept out
    by how many of the less urgent are listed.
    """
    room = MAX_MESSAGE_BYTES - min(receipts, MAX_RECEIPTS) * RECEIPT_BYTES - sum(_size(entry) for entry in listed)
    priorities = [entry.execution.priority for entry in listed]
    count = 0
    for entry in waiting:
        room -= _size(entry)
        before = sum(priority >= entry.execution.priority for priority in priorities)
        if before >= WINDOW or (room < 0 and priorities):
            break
        priorities.append(entry.execution.priority)
        count += 1
    return count


def address(text: str, *, agent: str | None, revision: int | None) -> str:
    """A template's text with the agent's name, and the revision where the library gave it, written in; None: left out.

    Nothing is parsed and printed again, so nothing of the author's text is reordered or lost.
    """
    fields = {"assignedAgentName": agent, "revision": revision}
    given = {name: value for name, value in fields.items() if value is not None}
    if not given:
        return text
    brace = text.index("{") + 1
    return f"{text[:brace]}{json.dumps(given, ensure_ascii=False)[1:-1]}, {text[brace:]}"


def _assignment(entry: Listed, now: datetime) -> Assignment:
    execution = entry.execution
    return Assignment(
        execution_id=execution.execution_id,
        attempt=execution.attempt,
        wanted=_wanted(execution),
        reason=_reason(execution),
        task=address(
            entry.body.text,
            agent=execution.device if execution.text.add_name else None,
            revision=execution.revision if execution.text.add_revision else None,
        ),
        start_within_s=_start_within_s(execution, now),
    )


def _wanted(execution: Execution) -> Wanted:
    if execution.cancel_requested:
        return Wanted.CANCEL
    return Wanted.PAUSE if execution.pause_requested else Wanted.RUN


def _start_within_s(execution: Execution, now: datetime) -> float:
    """What remains of the time to start; nothing for one that the agent should have taken on long ago."""
    if execution.state is ExecutionState.ASSIGNED and now >= take_on_by(execution):
        return 0.0
    return max(0.0, (execution.expires_at - now).total_seconds())


def _reason(execution: Execution) -> str:
    """What the agent is told of a cancel; the code alone says no more than the cancel itself."""
    if not execution.cancel_requested or execution.reason == CANCEL_REQUESTED:
        return ""
    return execution.reason.removeprefix(f"{CANCEL_REQUESTED}: ")[:MAX_REASON]


def _size(entry: Listed) -> int:
    return entry.body.wire_bytes + ASSIGNMENT_BYTES
