"""The use cases of drafts up to a person's review: start, stop, follow, answer, edit, discard, and looking at them."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import structlog
from pydantic import JsonValue
from sqlalchemy import Connection

from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_controller.drafts.documents import read_brief, read_version
from droidfleet_controller.drafts.explorations import Explorations, lease_holder, no_model
from droidfleet_controller.drafts.log import DraftLogs, Heard
from droidfleet_controller.drafts.record import DraftIssue, DraftState, StoredDraft, StoredEntry, found
from droidfleet_controller.drafts.rules import (
    over,
    require_not_begun,
    require_reviewable,
    require_version,
    required,
    written,
)
from droidfleet_controller.drafts.settings import DraftBounds, ModelFacts
from droidfleet_controller.fleet.live import Live
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.ids import new_id
from droidfleet_controller.store import drafts, events
from droidfleet_controller.store.database import Database
from droidfleet_controller.store.events import AuditLine
from droidfleet_designer.draft.check import Checked, check
from droidfleet_designer.draft.draft import Brief
from droidfleet_designer.ports import PlanCheck, Shot
from droidfleet_designer.tools.workshop import BEFORE
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import (
    ConflictError,
    DroidfleetError,
    ExhaustedError,
    InvalidInputError,
    NotFoundError,
    PreconditionError,
)
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.snapshot import Snapshot

log = structlog.get_logger(__name__)

MAX_REQUEST_ID = 256
PROBE_S = 10.0
"""The lease by which it is found out at once whether the phone can be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartDraft:
    """What somebody asks for. ``brief``: JSON text; ``request_id`` empty: a random one."""

    brief: str
    request_id: str = ""
    actor: str = ""


class Drafts:
    """The use cases."""

    def __init__(
        self,
        *,
        database: Database,
        clock: Clock,
        live: Live,
        registry: Registry,
        logs: DraftLogs,
        approvals: Approvals,
        explorations: Explorations,
        plans: PlanCheck,
        words: EffectWords,
        model: ModelFacts | None,
        bounds: DraftBounds,
    ) -> None:
        self._database = database
        self._clock = clock
        self._live = live
        self._registry = registry
        self._logs = logs
        self._approvals = approvals
        self._explorations = explorations
        self._plans = plans
        self._words = words
        self._starting: dict[str, asyncio.Event] = {}
        self.model = model
        self.bounds = bounds

    async def run(self) -> None:
        """Goes on with what was explored when the process before ended, and owns explorations until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._explorations.run(), name="explorations")
            for draft in await self._database.run(drafts.exploring):
                self._explorations.begin(draft)

    async def start(self, asked: StartDraft) -> StoredDraft:
        """Begins an exploration, or answers with the draft that the same call began before.

        Raises:
            InvalidInputError: ``INVALID_BRIEF`` with all issues, ``BAD_REQUEST_ID``.
            ConflictError: ``REQUEST_ID_REUSED``.
            NotFoundError: ``DEVICE_NOT_FOUND``.
            PreconditionError: ``MODEL_NOT_CONFIGURED``; ``DEVICE_BUSY``, who has it.
            UnavailableError: ``DEVICE_OFFLINE``.
            ExhaustedError: ``TOO_MANY_DRAFTS``.
        """
        brief = read_brief(asked.brief)
        if len(asked.request_id) > MAX_REQUEST_ID:
            raise InvalidInputError("BAD_REQUEST_ID", f"request_id: at most {MAX_REQUEST_ID} characters.")
        request_id = asked.request_id or new_id("q")
        while (same := self._starting.get(request_id)) is not None:
            # The same call came twice at the same time: what becomes of the first one is the answer.
            await same.wait()
        ended = self._starting[request_id] = asyncio.Event()
        try:
            return await self._started(brief, request_id=request_id, actor=asked.actor)
        finally:
            del self._starting[request_id]
            ended.set()

    async def _started(self, brief: Brief, *, request_id: str, actor: str) -> StoredDraft:
        before = await self._database.run(partial(drafts.by_request, request_id=request_id))
        if before is not None:
            return _the_same(before, brief)
        if self.model is None:
            raise no_model()
        busy = len(self._explorations.running) + len(self._starting) - 1
        if busy >= self.bounds.exploring:
            raise ExhaustedError(
                "TOO_MANY_DRAFTS",
                f"{busy} drafts are explored already, which is the most at a time.",
                hint="Wait until one has ended, or stop one; --drafts raises the bound.",
            )
        draft_id = new_id("d")
        await self.require_free(brief.device, draft_id)
        return await self._begin(brief, draft_id=draft_id, request_id=request_id, actor=actor)

    async def require_free(self, device: str, draft_id: str) -> None:
        """Refuses a phone that nobody could have now. Who comes between this and the exploration still wins."""
        self._registry.require([device])
        holder = next((each for each, name in self._explorations.running.items() if name == device), None)
        if holder is not None:
            raise PreconditionError(
                "DEVICE_BUSY", f"{device} is explored for draft {holder}.", hint="Wait for its end, or stop it."
            )
        leased = await self._live.open(device, holder=lease_holder(draft_id), ttl_s=PROBE_S)
        with suppress(DroidfleetError):
            await self._live.close(device, leased.lease_id)

    async def _begin(self, brief: Brief, *, draft_id: str, request_id: str, actor: str) -> StoredDraft:
        assert self.model is not None
        limits, now = self.bounds.limits, self._clock.now()
        draft = StoredDraft(
            draft_id=draft_id,
            request_id=request_id,
            brief=brief,
            model=self.model.name,
            max_tokens=min(limits.max_tokens, brief.settings.max_tokens or limits.max_tokens),
            currency=limits.currency,
            created_by=actor,
            created_at=now,
            updated_at=now,
        )

        def write(connection: Connection) -> tuple[StoredDraft, bool]:
            before = drafts.by_request(connection, request_id)
            if before is not None:
                return _the_same(before, brief), False
            drafts.add(connection, draft)
            _audit(connection, draft, "StartDraft", actor)
            return draft, True

        def follow(written: tuple[StoredDraft, bool]) -> None:
            if written[1]:
                self._explorations.begin(draft)

        stored, _ = await self._database.run(write, after=follow)
        log.info("draft_started", draft_id=stored.draft_id, device=brief.device)
        return stored

    async def stop(self, draft_id: str) -> StoredDraft:
        """Ends an exploration. May be repeated.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
        """
        await self.get(draft_id)
        await self._explorations.stop(draft_id)
        return await self.get(draft_id)

    async def answer(self, draft_id: str, approval_id: str, *, allowed: bool, actor: str) -> None:
        """Allows what was withheld, or not.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
            PreconditionError: ``APPROVAL_OVER``.
        """
        await self.get(draft_id)
        self._approvals.answer(draft_id, approval_id, allowed=allowed, actor=actor)

    # Looking --------------------------------------------------------------------------------------------------------

    async def get(self, draft_id: str) -> StoredDraft:
        """A draft.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
        """
        return await self._database.run(partial(required, draft_id=draft_id))

    async def page(
        self, *, states: Collection[DraftState], before: int | None, limit: int
    ) -> Sequence[tuple[int, StoredDraft]]:
        """Drafts, newest first, from before a number on."""
        return await self._database.run(partial(drafts.page, states=states, before=before, limit=limit))

    def follow(self, draft_id: str, *, after: int) -> AsyncIterator[StoredEntry | Heard]:
        """See `DraftLogs.follow`."""
        return self._logs.follow(draft_id, after=after)

    async def snapshot(self, draft_id: str, snapshot_id: str) -> Snapshot:
        """A screen that the exploration saw.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``, ``SNAPSHOT_NOT_FOUND``.
        """
        await self.get(draft_id)
        snapshot = await self._logs.of(draft_id).snapshot(snapshot_id)
        if snapshot is None:
            raise NotFoundError(
                "SNAPSHOT_NOT_FOUND",
                f"draft {draft_id!r} has no screen {snapshot_id!r}.",
                hint="The entries of its log name the screens that there are.",
            )
        return snapshot

    async def picture(self, draft_id: str, digest: str) -> Shot:
        """A picture that the exploration took.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``; ``ARTIFACT_GONE``: there is none such, or it made room for others.
        """
        await self.get(draft_id)
        shot = await self._logs.of(draft_id).picture(digest)
        if shot is None:
            raise NotFoundError(
                "ARTIFACT_GONE",
                f"draft {draft_id!r} has no picture {digest!r} (any more).",
                hint="Pictures make room for newer ones; artifact_quota_mb says how much there is.",
            )
        return shot

    # A person's version ---------------------------------------------------------------------------------------------

    async def edit(self, draft_id: str, *, version: int, text: str, actor: str) -> StoredDraft:
        """Puts a person's version in place, with what is wrong with it.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
            InvalidInputError: ``INVALID_DRAFT``: it is no JSON object; nothing is kept.
            PreconditionError: ``DRAFT_OVER``.
            ConflictError: ``STALE_VERSION``.
        """
        proposal = read_version(text)
        draft = await self.get(draft_id)
        require_reviewable(draft)
        require_version(draft, version)
        kept, issues = await self._checked(draft, proposal, text)
        now = self._clock.now()

        def write(connection: Connection) -> StoredDraft:
            current = required(connection, draft_id)
            require_reviewable(current)
            require_version(current, version)
            require_not_begun(current)
            edited = replace(current, text=kept, issues=issues, version=current.version + 1, updated_at=now)
            written(drafts.replace(connection, edited, version=current.version), draft_id)
            _audit(connection, edited, "EditDraft", actor)
            return edited

        return await self._database.run(write)

    async def _checked(
        self, draft: StoredDraft, proposal: Mapping[str, JsonValue], text: str
    ) -> tuple[str, tuple[DraftIssue, ...]]:
        """The text that is kept of a person's version, and what is wrong with it."""
        kept = await self._database.run(partial(drafts.snapshots, draft_id=draft.draft_id))
        kept.pop(BEFORE, None)  # what was in front before is nothing that the exploration did
        # Marks are what the person was shown, not what a document says that they were.
        proposal = {**proposal, "marks": _marks(draft)}

        def work() -> Checked:
            snapshots = {name: Snapshot.model_validate_json(zlib.decompress(body)) for name, body in kept.items()}
            return check(proposal, brief=draft.brief, snapshots=snapshots, words=self._words, person=True)

        # In a thread: to match every selector on every screen takes long for a loop that serves others, too.
        checked = await asyncio.to_thread(work)
        if checked.draft is None:
            return text, found(checked.issues)
        return checked.draft.model_dump_json(by_alias=True), found(await self._plans.issues(checked.draft))

    async def discard(self, draft_id: str, *, actor: str) -> StoredDraft:
        """Ends a draft for good. May be repeated.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``.
            PreconditionError: ``DRAFT_OVER``: it was accepted.
        """
        await self.stop(draft_id)
        now = self._clock.now()

        def write(connection: Connection) -> StoredDraft:
            draft = required(connection, draft_id)
            if draft.state is DraftState.DISCARDED:
                return draft
            if draft.state is DraftState.ACCEPTED:
                raise over(draft)
            require_not_begun(draft)
            gone = replace(draft, state=DraftState.DISCARDED, version=draft.version + 1, updated_at=now)
            written(drafts.replace(connection, gone, version=draft.version), draft_id)
            _audit(connection, gone, "DiscardDraft", actor)
            return gone

        return await self._database.run(write)


def _marks(draft: StoredDraft) -> JsonValue:
    try:
        read = json.loads(draft.text)
    except ValueError:
        return []
    marks: JsonValue = read.get("marks", []) if isinstance(read, dict) else []
    return marks


def _audit(connection: Connection, draft: StoredDraft, command: str, actor: str) -> None:
    line = AuditLine(at=draft.updated_at, actor=actor, command=command, subject=f"draft {draft.draft_id}")
    events.add_audit(connection, line)


def _the_same(before: StoredDraft, brief: Brief) -> StoredDraft:
    if before.brief != brief:
        raise ConflictError(
            "REQUEST_ID_REUSED",
            f"the request id began draft {before.draft_id!r} with another description or settings.",
            hint="Use a new request id for a new draft.",
        )
    return before
