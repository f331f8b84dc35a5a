"""The use case of acceptance: a draft becomes a task of the library and, where asked, a rollout or a schedule.

That a draft is being accepted is written down before anything is created. When the process ends in between, the same
draft cannot be edited, and accepting it again finds what was created and creates only the rest: the library knows the
text, the rollout its request id, the schedule its name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum

import structlog
from pydantic import JsonValue
from sqlalchemy import Connection

from droidfleet_controller.drafts.plans import rollout_document, schedule_document
from droidfleet_controller.drafts.record import Accepted, DraftState, StoredDraft
from droidfleet_controller.drafts.rules import over, require_not_begun, require_version, required, written
from droidfleet_controller.drafts.service import Drafts
from droidfleet_controller.drafts.trying import reviewed
from droidfleet_controller.rollouts.service import Rollouts
from droidfleet_controller.rollouts.views import StartRollout
from droidfleet_controller.schedules.service import Schedules
from droidfleet_controller.store import drafts, events
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_controller.tasks.library import Library
from droidfleet_designer.draft.draft import Draft
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, DroidfleetError, UnavailableError

log = structlog.get_logger(__name__)


class Use(StrEnum):
    """What an accepted draft is used for at once."""

    TASK = "TASK"
    ROLLOUT = "ROLLOUT"
    SCHEDULE = "SCHEDULE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptDraft:
    """What somebody asks for. ``schedule`` empty: named after the task; ``inputs``: values for all phones."""

    draft_id: str
    version: int
    use: Use = Use.TASK
    schedule: str = ""
    inputs: Mapping[str, JsonValue] = field(default_factory=dict)
    request_id: str = ""
    actor: str = ""


@dataclass(slots=True)
class _Turn:
    """Whose turn it is to accept a draft; ``waiting``: how many there are."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class Acceptance:
    """Accepts drafts."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        database: Database,
        clock: Clock,
        library: Library,
        rollouts: Rollouts,
        schedules: Schedules,
    ) -> None:
        self._drafts = drafts
        self._database = database
        self._clock = clock
        self._library = library
        self._rollouts = rollouts
        self._schedules = schedules
        self._turns: dict[str, _Turn] = {}

    async def accept(self, asked: AcceptDraft) -> StoredDraft:
        """Accepts it, or answers with what the same call created before.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
            PreconditionError: ``DRAFT_INVALID``, ``DRAFT_OVER``, ``DRAFT_EXPLORING``; ``NO_TIMES``.
            ConflictError: ``STALE_VERSION``; ``REVISION_EXISTS``, ``SCHEDULE_EXISTS``.
            InvalidInputError: what library, rollouts and schedules say. Then the draft is as it was.
        """
        async with self._one_at_a_time(asked.draft_id):
            return await self._accept(asked)

    @asynccontextmanager
    async def _one_at_a_time(self, draft_id: str) -> AsyncIterator[None]:
        """Two who accept one draft at once do it one after the other."""
        turn = self._turns.setdefault(draft_id, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[draft_id]

    async def _accept(self, asked: AcceptDraft) -> StoredDraft:
        draft = await self._drafts.get(asked.draft_id)
        if draft.state is DraftState.ACCEPTED:
            if draft.accepted is not None and asked.request_id and draft.accepted.request_id == asked.request_id:
                return draft
            raise over(draft)
        document = reviewed(draft, asked.version)
        plan = _Plan(draft, document, asked)
        again = await self._begin(draft, plan)
        try:
            created = await self._create(plan, again=again)
        except UnavailableError:
            raise  # nobody knows what is there; accepting it again finds out
        except DroidfleetError:
            if not again:
                await self._give_up(draft)
            raise
        return await self._end(draft, created, asked)

    async def _begin(self, draft: StoredDraft, plan: _Plan) -> bool:
        """Writes down that it is being accepted. True: somebody did before and did not come to the end."""
        asked = plan.asked
        begun = Accepted(
            task_id=plan.task_id,
            revision=0,
            schedule=(asked.schedule or plan.task_id) if asked.use is Use.SCHEDULE else "",
            rollout_id=Use.ROLLOUT.value if asked.use is Use.ROLLOUT else "",
        )
        now = self._clock.now()

        def write(connection: Connection) -> bool:
            current = required(connection, draft.draft_id)
            require_version(current, plan.asked.version)
            if current.accepted is not None:
                if current.accepted != begun:
                    # What the first one began may be there already.
                    require_not_begun(current)
                return True
            noted = replace(current, accepted=begun, updated_at=now)
            written(drafts.replace(connection, noted, version=current.version), draft.draft_id)
            return False

        return await self._database.run(write)

    async def _create(self, plan: _Plan, *, again: bool) -> Accepted:
        asked = plan.asked
        saved = await self._library.save(plan.task_text, actor=asked.actor)
        created = Accepted(task_id=saved.task.task_id, revision=saved.task.revision, request_id=asked.request_id)
        document = rollout_document(
            plan.document, task_id=created.task_id, revision=created.revision, inputs=asked.inputs
        )
        match asked.use:
            case Use.TASK:
                return created
            case Use.ROLLOUT:
                started = await self._rollouts.start(
                    StartRollout(spec_json=json.dumps(document), request_id=plan.request_id, actor=asked.actor)
                )
                return created.model_copy(update={"rollout_id": started.view.rollout.rollout_id})
            case Use.SCHEDULE:
                name = asked.schedule or created.task_id
                schedule = schedule_document(plan.document, name=name, rollout=document)
                await self._scheduled(name, json.dumps(schedule), created, actor=asked.actor, again=again)
                return created.model_copy(update={"schedule": name})

    async def _scheduled(self, name: str, text: str, created: Accepted, *, actor: str, again: bool) -> None:
        try:
            await self._schedules.create(text, actor=actor)
        except ConflictError as error:
            if error.code != "SCHEDULE_EXISTS" or not again:
                raise
            # From the call before: it begins this very revision, which nobody else knew.
            spec = (await self._schedules.get(name)).schedule.spec.rollout
            if (spec.task, spec.revision) != (created.task_id, created.revision):
                raise

    async def _give_up(self, draft: StoredDraft) -> None:
        """It was not accepted: it may be edited again."""

        def write(connection: Connection) -> None:
            current = required(connection, draft.draft_id)
            if current.state is not DraftState.ACCEPTED:
                drafts.replace(connection, replace(current, accepted=None), version=current.version)

        await self._database.run(write)

    async def _end(self, draft: StoredDraft, created: Accepted, asked: AcceptDraft) -> StoredDraft:
        now = self._clock.now()

        def write(connection: Connection) -> StoredDraft:
            current = required(connection, draft.draft_id)
            if current.state is DraftState.ACCEPTED:
                return current
            require_version(current, asked.version)
            done = replace(
                current, state=DraftState.ACCEPTED, accepted=created, version=current.version + 1, updated_at=now
            )
            written(drafts.replace(connection, done, version=current.version), draft.draft_id)
            line = AuditLine(at=now, actor=asked.actor, command="AcceptDraft", subject=f"draft {draft.draft_id}")
            events.add_audit(connection, line)
            return done

        accepted = await self._database.run(write)
        log.info("draft_accepted", draft_id=draft.draft_id, task_id=created.task_id, revision=created.revision)
        return accepted


class _Plan:
    """What is created of one version of a draft. Its request id is the draft's own, whoever asks how often."""

    def __init__(self, draft: StoredDraft, document: Draft, asked: AcceptDraft) -> None:
        self.document = document
        self.asked = asked
        self.task_id = str(document.task["taskId"])
        self.task_text = json.dumps(document.task, ensure_ascii=False, indent=2)
        self.request_id = f"accept-{draft.draft_id}-{asked.version}"
