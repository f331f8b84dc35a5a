"""Running a task: one execution for each device, all or none, in one transaction, then out to the agents.

This is the path that people wait on: one validation, one transaction, one publication for each device, and no waiting
in between.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

import structlog
from sqlalchemy import Connection

from droidfleet_controller.dispatch import assign
from droidfleet_controller.dispatch.assign import Assigned
from droidfleet_controller.dispatch.execution import (
    MAX_PRIORITY,
    MIN_PRIORITY,
    NORMAL_PRIORITY,
    Execution,
    TaskText,
)
from droidfleet_controller.dispatch.happenings import happening
from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.dispatch.window import Body
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.ids import new_id
from droidfleet_controller.store import events, executions, run_values, runs, tasks, texts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_controller.store.runs import Run
from droidfleet_controller.tasks.documents import Checked, check_run
from droidfleet_controller.tasks.library import task_not_found
from droidfleet_controller.tasks.values import RunValues, filled
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, InvalidInputError

log = structlog.get_logger(__name__)

MAX_DEVICES = 10_000
MAX_REQUEST_ID = 256

HEAD_START = 3
"""Turns of the event loop that the publication gets before the answer is built (document made, handed to the broker's
client, written): building an answer takes as long as the whole way to the agent."""

DEFAULT_EXPIRY = timedelta(hours=24)
MAX_EXPIRY = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRef:
    """A stored task; ``revision`` None: the newest."""

    task_id: str
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTask:
    """What somebody asks for. ``task`` is a reference or a document's text; ``values`` go over those in the document;
    ``request_id`` empty: a random one."""

    task: TaskRef | str
    devices: tuple[str, ...]
    values: RunValues = field(default_factory=RunValues)
    request_id: str = ""
    expires_in: timedelta = DEFAULT_EXPIRY
    priority: int = NORMAL_PRIORITY
    actor: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """What a call created, in the order asked."""

    run_id: str
    executions: tuple[Execution, ...]
    assigned: Assigned | None = None


class Runs:
    """The use case RunTask."""

    def __init__(
        self, *, database: Database, clock: Clock, registry: Registry, publisher: Publisher, broadcast: Broadcast
    ) -> None:
        self._database = database
        self._clock = clock
        self._registry = registry
        self._publisher = publisher
        self._broadcast = broadcast

    async def start(self, command: RunTask) -> Started:
        """Carries out a call, or answers with what the same call created before.

        Raises:
            InvalidInputError: the document is not valid with these values, the devices or the times cannot be.
            NotFoundError: an unknown task or device; all unknown devices are named.
            ConflictError: ``REQUEST_ID_REUSED``.
        """
        checked = None
        if isinstance(command.task, str):
            checked, values = check_run(command.task, command.values, stored=False)
            command = replace(command, task=checked.body, values=values)
        devices = _devices(command, checked)
        if not timedelta(0) < command.expires_in <= MAX_EXPIRY:
            raise InvalidInputError(
                "BAD_EXPIRY", f"expires_in must be positive and at most {MAX_EXPIRY.days} days: {command.expires_in}."
            )
        if not MIN_PRIORITY <= command.priority <= MAX_PRIORITY:
            raise InvalidInputError(
                "BAD_PRIORITY", f"priority must be {MIN_PRIORITY} to {MAX_PRIORITY}: {command.priority}."
            )
        self._registry.require(devices)
        now = self._clock.now()
        started = await self._database.run(
            lambda connection: _start(connection, command, checked, devices, now), after=self._announce
        )
        for _ in range(HEAD_START):
            await asyncio.sleep(0)
        log.info("run_started", run_id=started.run_id, executions=len(started.executions))
        return started

    def _announce(self, started: Started) -> None:
        if started.assigned is None:
            return
        self._publisher.submit(started.assigned.documents)
        self._broadcast.executions(started.assigned.changed)
        self._broadcast.events()


def _devices(command: RunTask, checked: Checked | None) -> tuple[str, ...]:
    named = checked.agent if checked else None
    devices = command.devices
    if named is not None:
        if devices and devices != (named,):
            raise InvalidInputError(
                "DEVICE_CONFLICT",
                f"the document is assigned to {named!r}, and the call names other devices.",
                hint="Leave the devices out, or take assignedAgentName out of the document.",
            )
        devices = (named,)
    if not devices:
        raise InvalidInputError(
            "BAD_DEVICES",
            "no device is named.",
            hint="Name one or more (--device NAME), or write assignedAgentName into the document.",
        )
    if len(devices) > MAX_DEVICES:
        raise InvalidInputError(
            "BAD_DEVICES", f"{len(devices)} devices; at most {MAX_DEVICES} in one run.", hint="Start several runs."
        )
    if len(set(devices)) != len(devices):
        twice = sorted({name for name in devices if devices.count(name) > 1})[:5] if len(devices) <= 1_000 else []
        raise InvalidInputError(
            "BAD_DEVICES", f"devices are named twice: {', '.join(twice) or 'some'}.", hint="Name each device once."
        )
    if len(command.request_id) > MAX_REQUEST_ID:
        raise InvalidInputError("BAD_REQUEST_ID", f"at most {MAX_REQUEST_ID} characters.")
    return devices


def _start(
    connection: Connection, command: RunTask, checked: Checked | None, devices: Sequence[str], now: datetime
) -> Started:
    digest = _digest(command, devices)
    if command.request_id:
        earlier = runs.by_request(connection, command.request_id)
        if earlier is not None:
            return _again(connection, earlier, digest, command.values)
    run_id = new_id("r")
    template = _template(connection, command, checked)
    text = template.text
    if template.values:
        run_values.add(connection, run_id, template.values)
        text = replace(text, values_id=run_id)
    queued = [
        Execution(
            execution_id=new_id("x"),
            run_id=run_id,
            device=device,
            state=ExecutionState.QUEUED,
            created_at=now,
            updated_at=now,
            expires_at=now + command.expires_in,
            check_at=now + command.expires_in,
            task_id=template.task_id,
            revision=template.revision,
            text=text,
            step_count=template.step_count,
            bound_s=template.bound_s,
            priority=command.priority,
        )
        for device in devices
    ]
    at_hand = {queued[0].body_key: Body.of(filled(template.body, template.values))}
    assigned = assign.refresh(connection, devices, now=now, fresh=queued, at_hand=at_hand)
    executions.add(connection, assigned.fresh)
    runs.add(connection, Run(run_id, command.request_id or run_id, digest, now))
    events.add(connection, [happening("ExecutionCreated", execution, now=now) for execution in assigned.fresh])
    line = AuditLine(
        at=now,
        actor=command.actor,
        command="RunTask",
        subject=run_id,
        details=f"{template.task_id} revision {template.revision} on {len(devices)} device(s)",
    )
    events.add_audit(connection, line)
    return Started(run_id, assigned.fresh, assigned)


def _again(connection: Connection, earlier: Run, digest: str, asked: RunValues) -> Started:
    # The digest is kept for good, so it says nothing of values: a short secret could be found by trying.
    given = run_values.load(connection, [earlier.run_id]).get(earlier.run_id, RunValues())
    if earlier.digest != digest or not given.equals(asked):
        raise ConflictError(
            "REQUEST_ID_REUSED",
            f"request id {earlier.request_id!r} was used for another call (run {earlier.run_id}).",
            hint="Use a new request id for a new call.",
        )
    return Started(earlier.run_id, tuple(executions.of_run(connection, earlier.run_id)))


@dataclass(frozen=True, slots=True)
class _Template:
    """What the executions of a call have in common. ``values`` with the secrets among themselves."""

    task_id: str
    revision: int
    text: TaskText
    body: str
    values: RunValues
    step_count: int
    bound_s: float


def _template(connection: Connection, command: RunTask, checked: Checked | None) -> _Template:
    if checked is not None:
        sha256, values = texts.keep(connection, checked.body), command.values
        revision, add_name, add_revision = checked.revision, checked.agent is None, False
    else:
        assert isinstance(command.task, TaskRef)
        stored = tasks.get(connection, command.task.task_id, command.task.revision)
        if stored is None:
            raise task_not_found(connection, command.task.task_id, command.task.revision)
        checked, values = check_run(stored.body, command.values, stored=True)
        sha256, revision, add_name, add_revision = stored.sha256, stored.revision, True, stored.add_revision
    text = TaskText(sha256=sha256, add_name=add_name, add_revision=add_revision)
    return _Template(checked.task_id, revision, text, checked.body, values, checked.step_count, checked.bound_s)


def _digest(command: RunTask, devices: Sequence[str]) -> str:
    task = command.task
    asked: dict[str, object] = {
        "task": texts.digest(task) if isinstance(task, str) else [task.task_id, task.revision],
        "devices": list(devices),
        "expires_s": command.expires_in.total_seconds(),
    }
    if command.priority != NORMAL_PRIORITY:
        # Only then: digests of calls before there were priorities stay what they are.
        asked["priority"] = command.priority
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
