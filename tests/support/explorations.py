"""Explorations on a scripted phone with a scripted model, for tests of the loop."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from pydantic import JsonValue

from droidfleet_designer.draft.draft import Brief, Draft, DraftSettings, DraftTarget
from droidfleet_designer.log import Ended, ToolEnded
from droidfleet_designer.loop.explore import Exploration
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import Model
from droidfleet_designer.ports import Answered, Approver, Phones, PlanCheck
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import Clock, Deadline, VirtualClock
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.screen.snapshot import Snapshot
from support.designer_phones import DEVICE, ScriptedPhones
from support.memory_log import MemoryLog
from support.scripted_model import Part, ScriptedModel
from support.workshops import APPS, MOVES, PAGES, WORDS

BRIEF = Brief(description="Open the green tea and tell its weight.", device=DEVICE)
TASK: dict[str, JsonValue] = {"steps": [{"id": "open", "action": "CLICK", "selector": {"text": "Green tea"}}]}
WRONG: dict[str, JsonValue] = {"steps": []}
ISSUE = Issue("/task/steps", ValidationCode.WRONG_TYPE, "There is no step.", "Write at least one.")


@dataclass(frozen=True)
class Checked:
    """What came of the check."""

    draft: Draft | None
    issues: Sequence[Issue]


def check(
    proposal: Mapping[str, JsonValue], *, brief: Brief, snapshots: Mapping[str, Snapshot], words: EffectWords
) -> Checked:
    """Takes any task with steps."""
    task = proposal.get("task")
    if not isinstance(task, dict) or not task.get("steps"):
        return Checked(None, (ISSUE,))
    draft = Draft(summary=str(proposal.get("summary")), task=task, target=DraftTarget(device=brief.device))
    return Checked(draft, ())


class Plans(PlanCheck):
    """Says what the test says."""

    def __init__(self, *issues: Issue) -> None:
        self._issues = issues

    async def issues(self, draft: Draft) -> Sequence[Issue]:
        return self._issues


class Answers(Approver):
    """Allows, does not allow, or (None) does not answer."""

    def __init__(self, clock: Clock, *, allow: bool | None) -> None:
        self._clock = clock
        self._allow = allow

    async def approve(self, approval_id: str, *, deadline: Deadline) -> Answered:
        if self._allow is None:
            await self._clock.sleep(deadline.remaining())
            return Answered(allowed=False)
        return Answered(allowed=self._allow, by="Ada")


class Trip:
    """One exploration, and what is around it. A second one on the same ``log`` and ``phones`` goes on with it."""

    _ids = itertools.count(1)

    def __init__(
        self,
        model: Part | Model,
        *,
        sees: bool = False,
        limits: Limits | None = None,
        allow: bool | None = True,
        log: MemoryLog | None = None,
        phones: Phones | None = None,
        scripted: ScriptedPhones | None = None,
        clock: Clock | None = None,
        issues: Sequence[Issue] = (),
        settings: DraftSettings | None = None,
        start: str = "shop",
    ) -> None:
        self.clock = clock or VirtualClock()
        self.log = log or MemoryLog(self.clock)
        self.scripted = scripted or ScriptedPhones(PAGES, clock=self.clock, moves=MOVES, apps=APPS)
        if scripted is None:
            self.scripted.now = start
        self.brief = BRIEF.model_copy(update={"settings": settings or DraftSettings()})
        self.model = model if isinstance(model, Model) else ScriptedModel(model, sees=sees)
        self.exploration = Exploration(
            model=self.model,
            workshop=partial(
                Workshop,
                phones=phones or self.scripted,
                holder="the designer",
                clock=self.clock,
                words=WORDS,
                new_id=self._new_id,
                pause_s=0.0,
            ),
            log=self.log,
            approver=Answers(self.clock, allow=allow),
            check=check,
            plans=Plans(*issues),
            clock=self.clock,
            random=Random(7),
            limits=limits or Limits(),
            words=WORDS,
            new_id=self._new_id,
        )

    async def run(self) -> Ended:
        return await self.exploration.run(self.brief)

    @property
    def outcomes(self) -> list[tuple[str, str, str]]:
        """Name, outcome and code of each answer to a call."""
        return [(each.name, each.outcome.value, each.code) for each in self.log.kept if isinstance(each, ToolEnded)]

    def _new_id(self) -> str:
        return f"id-{next(self._ids)}"
