"""Fills agents' windows and makes their next documents, inside the caller's transaction.

Called by everybody who changed something that a document shows. What it returns is published after the commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.window import MAX_RECEIPTS, Body, Document, Listed, choose
from droidfleet_controller.store import documents, events, executions, texts
from droidfleet_shared.bus.messages import WINDOW, ExecutionRef


@dataclass(frozen=True, slots=True)
class Assigned:
    """The new documents; ``changed``: executions that joined a window; ``fresh``: the caller's new ones, decided."""

    documents: tuple[Document, ...]
    changed: tuple[Execution, ...] = ()
    fresh: tuple[Execution, ...] = ()


def refresh(
    connection: Connection, agents: Iterable[str], *, now: datetime, fresh: Sequence[Execution] = ()
) -> Assigned:
    """Moves what fits into the agents' windows and makes each agent's next document.

    ``fresh``: new executions, not yet inserted and all of them queued, at most one for each agent; they stand behind
    what waits already.
    """
    names = sorted(set(agents))
    new = {execution.device: execution for execution in fresh}
    listed = executions.windows(connection, names)
    open_agents = [name for name in names if len(listed.get(name, ())) < WINDOW]
    waiting = {
        name: executions.queued(connection, name, limit=WINDOW)
        for name in executions.waiting_devices(connection, open_agents)
    }
    for name in open_agents:
        if name in new:
            waiting.setdefault(name, []).append(new[name])
    bodies = _bodies(connection, [*_flat(listed), *_flat(waiting)])
    generations = documents.bump(connection, names)
    receipts = documents.owed(connection, generations, limit=MAX_RECEIPTS)
    made: list[Document] = []
    joined: list[Execution] = []
    for name in names:
        window = [Listed(execution, bodies[execution.text.sha256]) for execution in listed.get(name, ())]
        line = [Listed(execution, bodies[execution.text.sha256]) for execution in waiting.get(name, ())]
        carried = receipts.get(name, ())
        for entry in line[: choose(window, line, receipts=len(carried))]:
            execution = entry.execution
            if execution is new.get(name):
                execution = new[name] = replace(execution, state=ExecutionState.ASSIGNED)
            else:
                execution = execution.moved(ExecutionState.ASSIGNED, now=now)
                joined.append(execution)
            window.append(Listed(execution, entry.body))
        made.append(Document(name, generations[name], tuple(window), carried))
    executions.save(connection, joined)
    events.add(connection, [happening("ExecutionAssigned", execution, now=now) for execution in joined])
    return Assigned(tuple(made), tuple(joined), tuple(new[execution.device] for execution in fresh))


def current(connection: Connection, agents: Sequence[str]) -> list[Document]:
    """The agents' documents as they are, for publishing again."""
    listed = executions.windows(connection, agents)
    bodies = _bodies(connection, _flat(listed))
    generations = documents.generations(connection, agents)
    receipts = documents.owed(connection, generations, limit=MAX_RECEIPTS)
    return [
        _document(name, generation, listed.get(name, ()), bodies, receipts.get(name, ()))
        for name, generation in generations.items()
    ]


def _document(
    agent: str,
    generation: int,
    listed: Sequence[Execution],
    bodies: Mapping[str, Body],
    receipts: tuple[ExecutionRef, ...],
) -> Document:
    window = tuple(Listed(execution, bodies[execution.text.sha256]) for execution in listed)
    return Document(agent, generation, window, receipts)


def _bodies(connection: Connection, needed: Iterable[Execution]) -> dict[str, Body]:
    found = texts.load(connection, (execution.text.sha256 for execution in needed))
    return {digest: Body.of(text) for digest, text in found.items()}


def _flat(by_device: Mapping[str, Sequence[Execution]]) -> list[Execution]:
    return [execution for some in by_device.values() for execution in some]
