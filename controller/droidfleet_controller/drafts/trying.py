"""The use case of a trial: a draft, or one step of it, run once on a phone by the way that every task takes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sqlalchemy import Connection

from droidfleet_controller.dispatch.cancel import Cancels
from droidfleet_controller.dispatch.execution import MAX_PRIORITY, Execution
from droidfleet_controller.dispatch.reading import Executions
from droidfleet_controller.dispatch.runs import Runs, RunTask
from droidfleet_controller.dispatch.watch import Broadcast
from droidfleet_controller.drafts.record import StoredDraft, Trial, tried
from droidfleet_controller.drafts.rules import require_reviewable, require_version, required
from droidfleet_controller.drafts.service import MAX_REQUEST_ID, Drafts
from droidfleet_controller.drafts.trials import MAX_TRIAL_MS, trial_of
from droidfleet_controller.ids import new_id
from droidfleet_controller.store import drafts
from droidfleet_controller.store.database import Database
from droidfleet_controller.tasks.values import RunValues
from droidfleet_designer.draft.draft import Draft
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, PreconditionError, UnavailableError

BEGIN_S = 30.0
"""For the phone to begin with it: a trial is for a person who looks on, and not for later."""

MARGIN_S = 60.0
"""Beyond the task's own bound: for its result to come."""

TRIALS_OPEN = 20
"""Trials that are waited for at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryDraft:
    """What somebody asks for. ``step_id`` empty: the whole task; ``device`` empty: the explored one."""

    draft_id: str
    version: int
    step_id: str = ""
    allow: Collection[str] = ()
    values: RunValues = field(default_factory=RunValues)
    device: str = ""
    request_id: str = ""
    actor: str = ""


class Trials:
    """Runs trials and notes how they went."""

    def __init__(
        self,
        *,
        drafts: Drafts,
        database: Database,
        clock: Clock,
        runs: Runs,
        executions: Executions,
        cancels: Cancels,
        broadcast: Broadcast,
    ) -> None:
        self._drafts = drafts
        self._database = database
        self._clock = clock
        self._runs = runs
        self._executions = executions
        self._cancels = cancels
        self._broadcast = broadcast
        self._room = asyncio.Semaphore(TRIALS_OPEN)

    async def run(self, asked: TryDraft) -> Trial:
        """Tries it and waits for the end, or for that of the same call before.

        Raises:
            NotFoundError: ``DRAFT_NOT_FOUND``, ``STEP_NOT_FOUND``, ``DEVICE_NOT_FOUND``.
            PreconditionError: ``DRAFT_INVALID``, ``DRAFT_OVER``, ``DRAFT_EXPLORING``, ``STEP_WITHHELD``;
                ``DEVICE_BUSY``: somebody else has the phone.
            ConflictError: ``STALE_VERSION``, ``REQUEST_ID_REUSED``.
            UnavailableError: ``TRIAL_NOT_BEGUN``: the phone did not begin in time; ``TRIAL_NOT_ENDED``.
        """
        draft = await self._drafts.get(asked.draft_id)
        if len(asked.request_id) > MAX_REQUEST_ID:
            raise InvalidInputError("BAD_REQUEST_ID", f"request_id: at most {MAX_REQUEST_ID} characters.")
        earlier = next(
            (each for each in draft.trials if asked.request_id and each.request_id == asked.request_id), None
        )
        if earlier is not None:
            return earlier
        document = reviewed(draft, asked.version)
        made = trial_of(document, step_id=asked.step_id, allow=asked.allow)
        device = asked.device or draft.brief.device
        async with self._room:
            await self._drafts.require_free(device, draft.draft_id)
            started = await self._runs.start(
                RunTask(
                    task=made.text,
                    devices=(device,),
                    values=asked.values,
                    request_id=f"trial-{draft.draft_id}-{asked.request_id or new_id('q')}",
                    expires_in=timedelta(seconds=BEGIN_S),
                    priority=MAX_PRIORITY,
                    actor=asked.actor,
                )
            )
            ended = await self._ended(started.executions[0], actor=asked.actor)
        if ended.result is None:
            raise UnavailableError(
                "TRIAL_NOT_BEGUN",
                f"{device} did not run the trial: {ended.state.value}.",
                hint="See what it does, and try again.",
            )
        trial = Trial(
            at=self._clock.now(),
            version=draft.version,
            step_id=asked.step_id,
            withheld=made.withheld,
            result=ended.result,
            execution_id=ended.execution_id,
            request_id=asked.request_id,
        )
        await self._note(draft.draft_id, trial)
        return trial

    async def _ended(self, execution: Execution, *, actor: str) -> Execution:
        """Waits for the end. Whoever does not wait any longer ends the trial: nobody looks on."""
        ids = frozenset({execution.execution_id})
        try:
            async with asyncio.timeout(BEGIN_S + MAX_TRIAL_MS / 1000 + MARGIN_S):
                with self._broadcast.watching(ids) as watch:
                    changed = await self._executions.require(ids)
                    while not changed[0].terminal:
                        changed = await watch.take()
                    return await self._executions.get(execution.execution_id)
        except (TimeoutError, asyncio.CancelledError) as error:
            with suppress(DroidfleetError):
                await asyncio.shield(
                    self._cancels.cancel(execution.execution_id, reason="nobody waits for this trial", actor=actor)
                )
            if isinstance(error, asyncio.CancelledError):
                raise
            raise UnavailableError(
                "TRIAL_NOT_ENDED",
                f"the trial did not end in time; execution {execution.execution_id} was told to stop.",
                hint=f"See it with: droidfleet execution show {execution.execution_id}",
            ) from None

    async def _note(self, draft_id: str, trial: Trial) -> None:
        def write(connection: Connection) -> None:
            draft = required(connection, draft_id)
            # A trial changes nothing that anybody decides on, so the version stays.
            drafts.replace(connection, replace(tried(draft, trial), updated_at=trial.at), version=draft.version)

        await self._database.run(write)


def reviewed(draft: StoredDraft, version: int) -> Draft:
    """The draft's document, when it is this version and nothing is wrong with it.

    Raises:
        PreconditionError: ``DRAFT_INVALID``, ``DRAFT_OVER``, ``DRAFT_EXPLORING``, ``DRAFT_EMPTY``.
        ConflictError: ``STALE_VERSION``.
    """
    require_reviewable(draft)
    require_version(draft, version)
    if draft.issues:
        first, more = draft.issues[0], len(draft.issues) - 1
        raise PreconditionError(
            "DRAFT_INVALID",
            f"something is wrong with the draft: {first.path}: {first.code}: {first.message}"
            + (f" (and {more} more)" if more else ""),
            hint="Edit it first.",
        )
    return Draft.model_validate_json(draft.text)
