"""A fleet of one phone in memory, for tests of the designer: pages, and what leads from one to another.

Steps are read by the real validator and selectors by the real matcher; what a step did stands in `done`, in words:
``CLICK Buy``, ``INPUT green tea``, ``KEY HOME``, ``OPEN com.example.shop``.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pydantic import JsonValue

from droidfleet_designer.ports import DeviceFact, GroupFact, Phones, Shot
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.errors import ConflictError, InvalidInputError, PreconditionError
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import (
    ClickStep,
    InputStep,
    KeyStep,
    LongClickStep,
    OpenStep,
    Step,
    StopAppStep,
    WaitStep,
)
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.screen.matching import Ambiguous, Matched
from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.snapshot import Snapshot, snapshot_of
from support.screens import dump as dump_of
from support.screens import screen_of, window

DEVICE = "phone-01"
LAUNCHER = "com.example.launcher"
PICTURE = Shot("image/png", b"\x89PNG of the screen", 108, 240)


def page(*children: Node, package: str = "com.example.shop") -> Snapshot:
    """What one page of an app shows."""
    return snapshot_of(shown(*children, package=package))


def shown(*children: Node, package: str = "com.example.shop") -> Screen:
    """The same before it is a value."""
    return replace(screen_of(dump_of(window(*children, package=package))), package=package)


@dataclass(frozen=True)
class _Held:
    session: str
    holder: str
    ttl_s: float
    until: Deadline


class ScriptedPhones(Phones):
    """One phone.

    ``pages`` by name, the first is shown; ``moves``: from a page, by what was done there, to another; ``apps``: the
    page on which a package opens. Tests set ``now`` to change the page, put errors into ``faults`` (by method, raised
    one by one; a step's comes after it was done if it is ``OUTCOME_UNKNOWN``), results into ``results``, and methods
    into ``hanging``, which then never answer.
    """

    def __init__(
        self,
        pages: Mapping[str, Snapshot],
        *,
        clock: Clock,
        moves: Mapping[tuple[str, str], str] | None = None,
        apps: Mapping[str, str] | None = None,
        devices: Sequence[DeviceFact] = (DeviceFact(DEVICE, "ONLINE"),),
        groups: Sequence[GroupFact] = (),
    ) -> None:
        self.pages = dict(pages)
        self.now = next(iter(pages))
        self.done: list[str] = []
        self.steps: list[dict[str, JsonValue]] = []
        self.asked: list[str] = []
        self.faults: dict[str, deque[Exception]] = defaultdict(deque)
        self.results: deque[tuple[StepCode, bool | None]] = deque()
        self.hanging: set[str] = set()
        self._clock = clock
        self._moves = dict(moves or {})
        self._apps = dict(apps or {})
        self._devices = devices
        self._groups = groups
        self._held: _Held | None = None
        self._sessions = 0
        self._ran: dict[str, TaskResult] = {}

    @property
    def holder(self) -> str:
        """Who has the phone; empty: nobody."""
        return self._held.holder if self._held is not None and not self._held.until.passed else ""

    def taken_by(self, holder: str) -> None:
        """Somebody else has it now."""
        self._held = _Held("theirs", holder, 1e6, self._clock.deadline(1e6))

    async def devices(self) -> Sequence[DeviceFact]:
        await self._meet("devices")
        return self._devices

    async def groups(self) -> Sequence[GroupFact]:
        await self._meet("groups")
        return self._groups

    async def open(self, device: str, *, holder: str, ttl_s: float) -> str:
        await self._meet("open")
        if self.holder:
            raise ConflictError("DEVICE_BUSY", f"the device is in use by {self.holder}.")
        self._sessions += 1
        self._held = _Held(f"session-{self._sessions}", holder, ttl_s, self._clock.deadline(ttl_s))
        return self._held.session

    async def renew(self, device: str, session_id: str) -> None:
        await self._meet("renew")
        held = self._require(session_id)
        self._held = replace(held, until=self._clock.deadline(held.ttl_s))

    async def close(self, device: str, session_id: str) -> None:
        await self._meet("close")
        if self._held is not None and self._held.session == session_id:
            self._held = None

    async def look(self, device: str) -> Snapshot:
        await self._meet("look")
        return self.pages[self.now]

    async def shot(self, device: str) -> Shot:
        await self._meet("shot")
        return PICTURE

    async def step(self, device: str, session_id: str, *, step: Mapping[str, JsonValue], request_id: str) -> TaskResult:
        held = self._require(session_id)
        if request_id in self._ran:
            return self._ran[request_id]
        read = _read(step)
        unknown = bool(self.faults["step"]) and getattr(self.faults["step"][0], "code", "") == "OUTCOME_UNKNOWN"
        if not unknown:
            await self._meet("step")
        self._held = replace(held, until=self._clock.deadline(held.ttl_s))
        self.steps.append(dict(step))
        code, acted = self.results.popleft() if self.results else (self._do(read), True)
        self._ran[request_id] = _result(code, acted=acted)
        if unknown:
            await self._meet("step")
        return self._ran[request_id]

    def _require(self, session_id: str) -> _Held:
        if self._held is None or self._held.session != session_id or self._held.until.passed:
            raise PreconditionError("LEASE_LOST", "this session has ended.")
        return self._held

    async def _meet(self, method: str) -> None:
        self.asked.append(method)
        if method in self.hanging:
            await asyncio.Event().wait()
        if self.faults[method]:
            raise self.faults[method].popleft()

    def _do(self, step: Step) -> StepCode:
        said: str = step.action
        match step:
            case ClickStep() | LongClickStep() | InputStep():
                found = self._find(step.selector)
                if isinstance(found, StepCode):
                    return found
                said += f" {step.value if isinstance(step, InputStep) else found}".rstrip()
                said += " ENTER" if isinstance(step, InputStep) and step.submit else ""
            case KeyStep():
                said += f" {step.key}"
            case OpenStep() | StopAppStep():
                said += f" {step.package_name}"
                if isinstance(step, OpenStep) and step.package_name not in self._apps:
                    return StepCode.ACTION_FAILED
            case WaitStep(condition=condition):
                assert condition is not None
                assert condition.visible is not None
                if not self.pages[self.now].matcher().any_visible(condition.visible):
                    return StepCode.CONDITION_NOT_MET
            case _:
                pass
        self.done.append(said)
        if isinstance(step, OpenStep):
            self.now = self._apps[step.package_name]
        self.now = self._moves.get((self.now, said), self.now)
        return StepCode.OK

    def _find(self, selector: Selector) -> str | StepCode:
        """The text of what a selector names; or why it names nothing."""
        if selector.point is not None:
            return f"at {selector.point.x_percent}%, {selector.point.y_percent}%"
        match self.pages[self.now].matcher().match(selector, touch=True):
            case Matched(node=found):
                return found.text or found.description
            case Ambiguous():
                return StepCode.TARGET_AMBIGUOUS
            case _:
                return StepCode.TARGET_NOT_FOUND


def _read(step: Mapping[str, JsonValue]) -> Step:
    document = {"schemaVersion": 1, "taskId": "live", "assignedAgentName": DEVICE, "steps": [step]}
    validation = validate_task(json.dumps(document))
    if validation.task is None:
        raise InvalidInputError("INVALID_STEP", "the step is not valid.", issues=validation.errors)
    return validation.task.steps[0]


def _result(code: StepCode, *, acted: bool | None) -> TaskResult:
    return TaskResult(
        task_id="live",
        revision=1,
        agent_name=DEVICE,
        execution_id="live-1",
        successful=code is StepCode.OK,
        code=code,
        detail=Detail.NONE,
        message="" if code is StepCode.OK else f"the phone says {code}",
        acted=acted,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ms=1,
    )
