"""Explorations by the practice planner on the virtual phone's model, and the tasks that came of them, run there.

The loop, the tools, the check and the engine are the real ones; only the model's wire, the fleet and the phone's wire
are left out.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from pydantic import JsonValue

from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.look import take_look
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_designer.conversation import Answer, Message, Stop, Turn, Usage
from droidfleet_designer.draft.check import check
from droidfleet_designer.draft.draft import Brief, Draft
from droidfleet_designer.log import Ended
from droidfleet_designer.loop.explore import Exploration
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import Model, ToolSpec
from droidfleet_designer.ports import Answered, Approver, DeviceFact, GroupFact, Phones, PlanCheck, Shot
from droidfleet_designer.practice.planning import planned
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import Clock, Deadline, VirtualClock
from droidfleet_shared.errors import InvalidInputError, PreconditionError
from droidfleet_shared.protocol.effects import effect_words
from droidfleet_shared.protocol.issues import Issue
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.screen.snapshot import Snapshot, snapshot_of
from support.in_process_phone import InProcessPhone
from support.memory_log import KillingLog, MemoryLog
from support.runs import Recorder

DEVICE = "phone-01"
LOOK_S = 30.0


class PracticeModel(Model):
    """The planner as a model, without the wire between."""

    @property
    def name(self) -> str:
        return "practice"

    @property
    def sees(self) -> bool:
        return False

    async def answer(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec],
        max_output_tokens: int,
        deadline: Deadline,
        heard: Callable[[str], None],
    ) -> Turn:
        said = planned(messages)
        heard(said.text)
        calls = (said.call,) if said.call is not None else ()
        stop = Stop.REFUSED if said.refused else Stop.CALLS if calls else Stop.DONE
        return Turn(answer=Answer(text=said.text, calls=calls), stop=stop, usage=Usage(input_tokens=1, output_tokens=1))


class OnePhone(Phones):
    """A fleet of the one phone, worked by the engine as its live session does."""

    def __init__(self, phone: InProcessPhone, clock: Clock) -> None:
        self._phone = phone
        self._clock = clock
        self._engine = Engine(phone, clock=clock)
        self._session = ""
        self._ids = itertools.count(1)

    async def devices(self) -> Sequence[DeviceFact]:
        return [DeviceFact(DEVICE, "ONLINE")]

    async def groups(self) -> Sequence[GroupFact]:
        return []

    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        self._session = f"session-{next(self._ids)}"
        return self._session

    async def renew(self, device: str, session_id: str) -> None:
        pass

    async def close(self, device: str, session_id: str) -> None:
        self._session = ""

    async def look(self, device: str) -> Snapshot:
        matcher = await take_look(self._phone, deadline=self._clock.deadline(LOOK_S), with_activity=True)
        return snapshot_of(matcher.screen)

    async def shot(self, device: str) -> Shot:
        raise AssertionError("nobody sees")

    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        if session_id != self._session:
            raise PreconditionError("LEASE_LOST", "this session has ended.")
        return await _run(self._engine, {"taskId": "live", "steps": [dict(step)]}, execution_id=request_id)


class Plans(PlanCheck):
    """Says of target and schedule what the test says, as long as they are there."""

    def __init__(self, *issues: Issue) -> None:
        self._issues = issues

    async def issues(self, draft: Draft) -> Sequence[Issue]:
        there = {"/target": draft.target.device is None, "/schedule": draft.schedule.once is None}
        return [issue for issue in self._issues if any(there[part] for part in there if issue.path.startswith(part))]


class _Nobody(Approver):
    async def approve(self, approval_id: str, *, deadline: Deadline) -> Answered:
        return Answered(allowed=False)


class PracticeRun:
    """One exploration. ``draft`` is there when it ended with one. ``plans``: what the fleet says of its plan.
    ``last``: the log's entry at which the first process ends (`KillingLog`); `explore` again goes on."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        plans: PlanCheck | None = None,
        limits: Limits | None = None,
        last: int | None = None,
    ) -> None:
        self._plans = plans or Plans()
        self._limits = limits or Limits()
        self.clock = VirtualClock()
        self.log = MemoryLog(self.clock) if last is None else KillingLog(self.clock, last=last, written=True)
        self.phone = InProcessPhone(scenario, self.clock)
        self._ids = itertools.count(1)

    async def explore(self, brief: Brief) -> Ended:
        """Explores to the end."""
        words = effect_words()
        exploration = Exploration(
            model=PracticeModel(),
            workshop=partial(
                Workshop,
                phones=OnePhone(self.phone, self.clock),
                holder="the designer",
                clock=self.clock,
                words=words,
                new_id=self._new_id,
                pause_s=0.0,
            ),
            log=self.log,
            approver=_Nobody(),
            check=check,
            plans=self._plans,
            clock=self.clock,
            random=Random(1),
            limits=self._limits,
            words=words,
            new_id=self._new_id,
        )
        return await exploration.run(brief)

    @property
    def draft(self) -> Draft | None:
        """What it ended with."""
        return next((each.draft for each in reversed(self.log.kept) if each.kind == "proposed"), None)

    def _new_id(self) -> str:
        return f"id-{next(self._ids)}"


async def executed(
    draft: Draft, scenario: Scenario, *, inputs: Mapping[str, str] | None = None
) -> tuple[TaskResult, InProcessPhone]:
    """Runs a draft's task once on a phone of its own, as a trial does: what may not be undone is withheld."""
    clock = VirtualClock()
    phone = InProcessPhone(scenario, clock)
    task = json.loads(json.dumps(draft.task))
    for mark in draft.marks:
        _at(task, mark.path.removeprefix("/task"))["probability"] = 0
    return await _run(Engine(phone, clock=clock), task, inputs=inputs), phone


async def _run(
    engine: Engine, task: Mapping[str, JsonValue], *, execution_id: str = "e1", inputs: Mapping[str, str] | None = None
) -> TaskResult:
    document = {"schemaVersion": 1, **task, "assignedAgentName": DEVICE, "inputValues": dict(inputs or {})}
    validation = validate_task(json.dumps(document))
    if validation.task is None:
        raise InvalidInputError("INVALID_STEP", "the task is not valid.", issues=validation.errors)
    whole: Task = validation.task
    return await engine.run(
        whole, execution_id=execution_id, agent_name=DEVICE, observer=Recorder(), control=RunControl()
    )


def _at(task: dict[str, JsonValue], pointer: str) -> dict[str, JsonValue]:
    """The step at a JSON Pointer."""
    here: JsonValue = task
    for part in pointer.split("/")[1:]:
        here = here[int(part)] if isinstance(here, list) else here[part] if isinstance(here, dict) else None
    assert isinstance(here, dict)
    return here
