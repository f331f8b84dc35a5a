"""Runs the explorations of this process, each to its end, and goes on with those that another process began."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

import structlog

from droidfleet_controller.drafts.approvals import Approvals
from droidfleet_controller.drafts.log import DraftLogs
from droidfleet_controller.drafts.record import StoredDraft
from droidfleet_controller.ids import new_id
from droidfleet_designer.draft.check import check
from droidfleet_designer.log import Ended, Ending
from droidfleet_designer.loop.explore import Exploration
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import Model
from droidfleet_designer.ports import Phones, PlanCheck
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DroidfleetError, PreconditionError
from droidfleet_shared.protocol.effects import EffectWords

log = structlog.get_logger(__name__)

AGAIN_S = 1.0
AGAIN_CAP_S = 60.0
"""Before a log that could not be read or written is tried again: doubled each time up to the cap."""

STOP_S = 30.0
"""For a stopped exploration to give the phone back and to write its end: a call to the phone takes so long at most."""


def no_model() -> PreconditionError:
    """There is nobody to explore."""
    return PreconditionError(
        "MODEL_NOT_CONFIGURED",
        "this controller has no language model.",
        hint="Start it with --model-url and --model, or with --practice-model; docs/designer.md has the settings.",
    )


def lease_holder(draft_id: str) -> str:
    """Who has the phone, as others are told."""
    return f"draft {draft_id}"


@dataclass(slots=True, eq=False)
class _Running:
    draft: StoredDraft
    ended: asyncio.Event
    stopped: bool = False
    exploration: Exploration | None = None


class Explorations:
    """The explorations. ``model`` None: there is none, and what was begun with one ends."""

    def __init__(
        self,
        *,
        model: Model | None,
        phones: Phones,
        plans: PlanCheck,
        logs: DraftLogs,
        approvals: Approvals,
        limits: Limits,
        words: EffectWords,
        clock: Clock,
        random: Random,
    ) -> None:
        self._model = model
        self._phones = phones
        self._plans = plans
        self._logs = logs
        self._approvals = approvals
        self._limits = limits
        self._words = words
        self._clock = clock
        self._random = random
        self._running: dict[str, _Running] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def running(self) -> Mapping[str, str]:
        """The drafts that are explored just now, with their devices."""
        return {draft_id: each.draft.brief.device for draft_id, each in self._running.items()}

    async def run(self) -> None:
        """Owns the explorations until it is cancelled: then each gives its phone back, and can be gone on with."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.Event().wait()
            finally:
                self._group = None

    def begin(self, draft: StoredDraft) -> None:
        """Explores for a stored draft, from where its log ends. `run` must be going on."""
        assert self._group is not None
        if draft.draft_id in self._running:
            return
        running = self._running[draft.draft_id] = _Running(draft, asyncio.Event())
        self._group.create_task(self._to_the_end(running), name=f"draft {draft.draft_id}")

    async def stop(self, draft_id: str) -> None:
        """Ends an exploration as stopped by a person, and waits until that is written. Harmless where there is none."""
        running = self._running.get(draft_id)
        if running is None:
            return
        running.stopped = True
        if running.exploration is not None:
            running.exploration.stop()
        async with asyncio.timeout(STOP_S):
            await running.ended.wait()

    async def _to_the_end(self, running: _Running) -> None:
        draft_id = running.draft.draft_id
        wait_s = AGAIN_S
        try:
            while True:
                try:
                    ended = await self._explore(running)
                except DroidfleetError as error:
                    # Its log is out of reach, and nothing may happen that is not logged.
                    log.warning("exploration_interrupted", draft_id=draft_id, code=error.code, again_in_s=wait_s)
                    await self._clock.sleep(wait_s)
                    wait_s = min(AGAIN_CAP_S, 2 * wait_s)
                    continue
                log.info("exploration_ended", draft_id=draft_id, ending=ended.ending.value, code=ended.code)
                return
        except Exception:
            # One exploration's defect must not end the others, nor the controller.
            log.exception("exploration_lost", draft_id=draft_id)
        finally:
            del self._running[draft_id]
            running.ended.set()

    async def _explore(self, running: _Running) -> Ended:
        draft = running.draft
        if self._model is None:
            error = no_model()
            over = Ended(ending=Ending.FAILED, code=error.code, message=error.message, hint=error.hint)
            await self._logs.of(draft.draft_id).append(over)
            return over
        exploration = running.exploration = Exploration(
            model=self._model,
            workshop=partial(
                Workshop,
                phones=self._phones,
                holder=lease_holder(draft.draft_id),
                clock=self._clock,
                words=self._words,
                new_id=_id("l"),
            ),
            log=self._logs.of(draft.draft_id),
            approver=self._approvals.of(draft.draft_id),
            check=check,
            plans=self._plans,
            clock=self._clock,
            random=self._random,
            limits=self._limits,
            words=self._words,
            new_id=_id("q"),
        )
        if running.stopped:
            exploration.stop()
        return await exploration.run(draft.brief)


def _id(prefix: str) -> Callable[[], str]:
    return partial(new_id, prefix)
