"""Saving and reading task templates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches

from sqlalchemy import Connection

from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.store import events, tasks, texts
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine, FleetEvent
from droidfleet_controller.tasks.documents import Checked, check_template
from droidfleet_controller.tasks.template import StoredTask
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, NotFoundError
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import Issue, Validation
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.validate import validate_document

SUGGESTED_FROM = 1_000
"""Newest tasks among which a mistyped id is looked for."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The revision that holds the text; ``created``: it is new; ``warnings``: what should be looked at."""

    task: StoredTask
    created: bool
    warnings: tuple[Issue, ...]


class Library:
    """The use cases around stored tasks. ``words``: those that are warned of, by default the package's."""

    def __init__(
        self, *, database: Database, clock: Clock, broadcast: Broadcast, words: EffectWords | None = None
    ) -> None:
        self._words = words
        self._database = database
        self._clock = clock
        self._broadcast = broadcast

    def validate(self, body: str) -> Validation[TaskTemplate]:
        """What is wrong with a document, and what is worth a look. Never raises for bad input."""
        return validate_document(body, words=self._words)

    async def save(self, body: str, *, actor: str) -> Saved:
        """Stores a template under its task id, exactly as written.

        A document that states its revision gets that one; without, the library counts.

        Raises:
            InvalidInputError: ``INVALID_TASK`` with all issues.
            ConflictError: ``REVISION_EXISTS``, the stated revision holds another text, or a later one exists.
        """
        checked = check_template(body, words=self._words)
        now = self._clock.now()
        return await self._database.run(
            lambda connection: _save(connection, checked, actor, now), after=lambda _: self._broadcast.events()
        )

    async def get(self, task_id: str, revision: int | None = None) -> StoredTask:
        """One revision with its text, the newest when none is named.

        Raises:
            NotFoundError: ``TASK_NOT_FOUND``.
        """

        def read(connection: Connection) -> StoredTask:
            found = tasks.get(connection, task_id, revision)
            if found is None:
                raise task_not_found(connection, task_id, revision)
            return found

        return await self._database.run(read)

    async def page(self, *, after: str, limit: int) -> list[StoredTask]:
        """The newest revision of each task by id after ``after``, without texts."""
        return await self._database.run(lambda connection: tasks.page(connection, after=after, limit=limit))


def _save(connection: Connection, checked: Checked, actor: str, now: datetime) -> Saved:
    newest = tasks.get(connection, checked.task_id)
    if checked.revision_given:
        stated = tasks.get(connection, checked.task_id, checked.revision)
        if stated is not None and stated.body == checked.body:
            return Saved(stated, created=False, warnings=checked.warnings)
        if newest is not None and checked.revision <= newest.revision:
            raise ConflictError(
                "REVISION_EXISTS",
                f"revision {checked.revision} of {checked.task_id!r} is taken: the newest is {newest.revision}"
                " and holds another text.",
                hint=f'Write "revision": {newest.revision + 1}, or leave the field out and the library counts.',
            )
        revision = checked.revision
    else:
        if newest is not None and newest.body == checked.body:
            return Saved(newest, created=False, warnings=checked.warnings)
        revision = 1 if newest is None else newest.revision + 1
    task = StoredTask(
        task_id=checked.task_id,
        revision=revision,
        sha256=texts.keep(connection, checked.body),
        add_revision=not checked.revision_given,
        step_count=checked.step_count,
        bound_s=checked.bound_s,
        created_at=now,
        body=checked.body,
    )
    tasks.add(connection, task)
    subject = f"{task.task_id} revision {task.revision}"
    events.add(connection, [FleetEvent(occurred_at=now, recorded_at=now, kind="TaskSaved", summary=f"{subject} saved")])
    events.add_audit(connection, AuditLine(at=now, actor=actor, command="SaveTask", subject=subject))
    return Saved(task, created=True, warnings=checked.warnings)


def task_not_found(connection: Connection, task_id: str, revision: int | None) -> NotFoundError:
    """The error for a task that is not stored, with the nearest one as a hint."""
    newest = tasks.get(connection, task_id)
    if newest is not None:
        return NotFoundError(
            "TASK_NOT_FOUND",
            f"task {task_id!r} has no revision {revision}.",
            hint=f"The newest is {newest.revision}.",
        )
    near = get_close_matches(task_id, tasks.newest_ids(connection, limit=SUGGESTED_FROM), n=1)
    return NotFoundError(
        "TASK_NOT_FOUND",
        f"no task {task_id!r} is stored.",
        hint=f"Did you mean {near[0]!r}?" if near else "List the stored tasks with: droidfleet task list",
    )
