"""Fills agents' windows and makes their next documents, inside the caller's transaction.

Called by everybody who changed something that a document shows. What it returns is published after the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import Connection

from droidfleet_controller.dispatch.deadlines import first_check
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.states import IN_WINDOW, ExecutionState
from droidfleet_controller.dispatch.window import MAX_RECEIPTS, Body, Document, Listed, choose
from droidfleet_controller.store import documents, events, executions, run_values, texts
from droidfleet_controller.tasks.values import filled
from droidfleet_shared.bus.messages import WINDOW

BodyKey = tuple[str, str]
"""`Execution.body_key`."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """The new documents; ``changed``: executions that joined a window; ``fresh``: the caller's new ones, decided."""

    documents: tuple[Document, ...]
    changed: tuple[Execution, ...] = ()
    fresh: tuple[Execution, ...] = ()


def refresh(
    connection: Connection,
    agents: Iterable[str],
    *,
    now: datetime,
    fresh: Sequence[Execution] = (),
    at_hand: Mapping[BodyKey, Body] = MappingProxyType({}),
) -> Assigned:
    """Moves what fits into the agents' windows and makes each agent's next document.

    ``fresh``: new executions, not yet inserted and all of them queued, at most one for each agent; they stand behind
    what waits already with their priority. ``at_hand``: texts by `Execution.body_key` that need not be read.
    """
    names = sorted(set(agents))
    new = {execution.device: execution for execution in fresh}
    lines = executions.lines(connection, names, limit=WINDOW)
    for name, execution in new.items():
        line = lines.setdefault(name, [])
        line.append(execution)
        line.sort(key=lambda each: each.turn)
    bodies = _bodies(connection, lines, at_hand)
    heads = documents.bump(connection, names)
    receipts = documents.owed(connection, heads, limit=MAX_RECEIPTS)
    made: list[Document] = []
    joined: list[Execution] = []
    for name in names:
        entries = [Listed(execution, bodies[execution.body_key]) for execution in lines.get(name, ())]
        window = [entry for entry in entries if entry.execution.state in IN_WINDOW]
        waiting = [entry for entry in entries if entry.execution.state not in IN_WINDOW]
        carried = receipts.get(name, ())
        for entry in waiting[: choose(window, waiting, receipts=len(carried))]:
            execution = entry.execution
            if execution is new.get(name):
                execution = new[name] = _checked(replace(execution, state=ExecutionState.ASSIGNED))
            else:
                execution = _checked(execution.moved(ExecutionState.ASSIGNED, now=now))
                joined.append(execution)
            window.append(Listed(execution, entry.body))
        window.sort(key=lambda entry: entry.execution.turn)
        made.append(Document(name, heads[name].generation, tuple(window), carried, heads[name].host_id))
    executions.save(connection, joined)
    events.add(connection, [happening("ExecutionAssigned", execution, now=now) for execution in joined])
    return Assigned(tuple(made), tuple(joined), tuple(new[execution.device] for execution in fresh))


def _checked(execution: Execution) -> Execution:
    return replace(execution, check_at=first_check(execution))


def current(connection: Connection, agents: Sequence[str]) -> list[Document]:
    """The agents' documents as they are, for publishing again."""
    windows = executions.windows(connection, agents)
    bodies = _bodies(connection, windows, {})
    heads = documents.heads(connection, agents)
    receipts = documents.owed(connection, heads, limit=MAX_RECEIPTS)
    made: list[Document] = []
    for name, head in heads.items():
        window = tuple(Listed(execution, bodies[execution.body_key]) for execution in windows.get(name, ()))
        made.append(Document(name, head.generation, window, receipts.get(name, ()), head.host_id))
    return made


def _bodies(
    connection: Connection, lines: Mapping[str, Sequence[Execution]], at_hand: Mapping[BodyKey, Body]
) -> Mapping[BodyKey, Body]:
    needed = {execution.body_key for line in lines.values() for execution in line} - at_hand.keys()
    if not needed:
        return at_hand
    found = texts.load(connection, {digest for digest, _ in needed})
    values = run_values.load(connection, {values_id for _, values_id in needed if values_id})
    read = {
        (digest, values_id): Body.of(filled(found[digest], values[values_id]) if values_id else found[digest])
        for digest, values_id in needed
    }
    return {**at_hand, **read}
