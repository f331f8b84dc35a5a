"""What the database says of an agent, held against the broker's document and the agent's heartbeat. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from droidfleet_controller.admin.finding import Finding
from droidfleet_controller.dispatch.execution import Execution
from droidfleet_controller.dispatch.states import BEGUN
from droidfleet_controller.fleet.device import Device
from droidfleet_controller.store.documents import Head
from droidfleet_shared.bus.messages import BadMessageError, DesiredState, ExecutionRef

REBUILD = "droidfleet admin rebuild-bus"
SOON = "The agent applies it by itself when it hears of it. If it stays so: see the agent's log, and restart the agent."


@dataclass(frozen=True, slots=True)
class Ours:
    """What the database has for one agent: its document's head, and the live executions that the document lists."""

    agent: str
    epoch: str
    head: Head
    window: tuple[Execution, ...]


def broker_differs(ours: Ours, stored: bytes | None) -> Finding | None:
    """What is wrong with the broker's copy of a document; ``stored`` None: it has none."""
    code, message, hint = "", "", f"Publish it again: {REBUILD}"
    if stored is None:
        code, message = (
            "DOCUMENT_MISSING",
            f"the broker has no document; generation {ours.head.generation} belongs there.",
        )
    else:
        try:
            theirs = DesiredState.decode(stored)
        except BadMessageError as error:
            code, message = "DOCUMENT_UNREADABLE", f"the broker's document cannot be read: {error.message}"
        else:
            code, message = _differs(ours, theirs)
    return Finding(code=code, where=f"device {ours.agent}", message=message, hint=hint) if code else None


def _differs(ours: Ours, theirs: DesiredState) -> tuple[str, str]:
    generation = ours.head.generation
    if theirs.epoch != ours.epoch:
        return "DOCUMENT_OF_ANOTHER_DATABASE", f"the broker's document is of database {theirs.epoch or '(none)'}."
    if theirs.generation != generation:
        code = "DOCUMENT_OUTDATED" if theirs.generation < generation else "DOCUMENT_AHEAD"
        return code, f"the broker has generation {theirs.generation} of the document, the database {generation}."
    listed = {_ref(each) for each in theirs.executions}
    wanted = {(each.execution_id, each.attempt) for each in ours.window}
    if listed != wanted:
        other = ", ".join(sorted(execution_id for execution_id, _ in listed ^ wanted))
        return "DOCUMENT_DIFFERS", f"generation {generation} lists other executions than the database: {other}."
    return "", ""


def agent_differs(device: Device, ours: Ours | None, known: Mapping[str, Execution]) -> Iterator[Finding]:
    """What an agent that is heard says otherwise. ``known``: executions by id, what it runs among them if it exists."""
    where = f"device {device.name}"
    beat = device.heartbeat
    if beat.running is not None:
        yield from _runs_other(where, beat.running, known.get(beat.running.execution_id))
    if ours is None:
        return
    if ours.head.host_id not in {"", device.holder.host_id}:
        yield Finding(
            code="AGENT_ON_ANOTHER_HOST",
            where=where,
            message=f"its document is for another host than {device.holder.host}, where the agent runs.",
            hint="Restart the agent: its name is granted anew then.",
        )
    elif beat.epoch != ours.epoch:
        said = f"follows a document of database {beat.epoch}" if beat.epoch else "has no document"
        yield Finding(code="AGENT_BEHIND", where=where, message=f"the agent {said}.", hint=SOON)
    elif beat.generation != ours.head.generation:
        code = "AGENT_BEHIND" if beat.generation < ours.head.generation else "AGENT_AHEAD"
        message = (
            f"the agent follows generation {beat.generation} of its document, the database has {ours.head.generation}."
        )
        yield Finding(code=code, where=where, message=message, hint=SOON)
    else:
        yield from _does_not_run(device, ours)


def _runs_other(where: str, running: ExecutionRef, execution: Execution | None) -> Iterator[Finding]:
    if execution is None:
        yield Finding(
            code="RUNS_UNKNOWN",
            where=where,
            message=f"the agent runs {running.execution_id}, which the database does not know.",
            hint="It stops by itself when it reads its document; what it reports is kept and not counted.",
        )
    elif execution.terminal or execution.attempt != running.attempt:
        yield Finding(
            code="RUNS_ENDED",
            where=where,
            message=f"the agent runs attempt {running.attempt} of {running.execution_id}, which is {execution.state} "
            f"(attempt {execution.attempt}).",
            hint="It stops by itself when it reads its document. If it stays so: restart the agent.",
        )


def _does_not_run(device: Device, ours: Ours) -> Iterator[Finding]:
    """The agent follows our newest document and is not at what it should be at, and no result came."""
    running = device.heartbeat.running
    for execution in ours.window:
        if execution.state in BEGUN and (
            running is None or _ref(running) != (execution.execution_id, execution.attempt)
        ):
            yield Finding(
                code="NOT_RUNNING",
                where=f"execution {execution.execution_id}",
                message=f"it is {execution.state} on {device.name}, whose agent is not at it.",
                hint="A result that its agent has is sent again within 15 minutes; else it is lost at its deadline.",
            )


def _ref(ref: ExecutionRef) -> tuple[str, int]:
    return ref.execution_id, ref.attempt
