"""A run that is killed at any line, any number of times, goes on: nothing is done twice, nothing that ended is lost.

The same random tasks, phones and faults as in `test_random_tasks`; what is written of the run is what the next one has.
"""

from __future__ import annotations

import asyncio
import json
from random import Random
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl, RunLeft, RunObserver
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Began, Decided, Ended, Entry, InDoubt, Trail, read_entry
from droidfleet_agent.journal.attempt import OpenStep
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel, StepResult, TaskResult
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import validate_task
from properties.test_random_tasks import _at_once
from support.random_phones import random_phone
from support.random_tasks import SEEDS, RandomTasks
from support.runs import AGENT, task_of
from support.screens import PACKAGE, dump, node, window

RUNS = 600
"""About a quarter of a minute on one core."""

MAX_LIVES = 12
"""Kills of one run: more than the worker allows, and a bound of the test."""

pytestmark = pytest.mark.timeout(300)  # on a busy machine


class Killed(BaseException):
    """The process ends here."""


class Disk(RunObserver):
    """What outlives the process: the trail, and the step that is open. Each call may be the last one, before it is
    written or after."""

    def __init__(self) -> None:
        self.trail: list[Entry] = []
        self.open: OpenStep | None = None
        self.kill_at: int | None = None
        self.kill_before = False
        self.calls = 0
        self.acts = 0
        self.unsettled = ""
        """The path of the step that this process has in doubt."""
        self.settled: list[StepResult] = []

    async def step_started(self, step_id: str, path: str) -> None:
        self._die("before")
        self.open = OpenStep(step_id, path)
        self._die("after")

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        self._die("before")
        assert self.open is not None
        assert self.unsettled == ""
        # What the journal refuses: another step than the open one, or an action that was announced before.
        assert (self.open.step_id, self.open.path) == (step_id, path)
        assert ordinal > self.open.dispatched
        self.open = OpenStep(step_id, path, ordinal)
        self.acts += 1
        self._die("after")

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:
        self._die("before")

    async def decided(self, decision: Decided) -> None:
        self._die("before")
        self._write(decision)
        self._die("after")

    async def step_finished(self, ended: Ended) -> None:
        result = ended.result
        self._die("before")
        self._write(ended)
        self.open = None
        if result.path == self.unsettled:
            self.unsettled = ""
            self.settled.append(result)
        self._die("after")

    def control(self) -> RunControl:
        """The switch of the next process."""
        return RunControl()

    def _write(self, entry: Entry) -> None:
        self.trail.append(read_entry(entry.model_dump_json()))

    def _die(self, when: str) -> None:
        if when == "before":
            self.calls += 1
        if self.calls == self.kill_at and (when == "before") is self.kill_before:
            raise Killed

    @property
    def ended(self) -> list[StepResult]:
        return [entry.result for entry in self.trail if isinstance(entry, Ended)]


class Lives:
    """One task on one phone, in as many processes as it takes."""

    def __init__(self, task: Task, phone: MemoryPhone, clock: VirtualClock, *, disk: Disk | None = None) -> None:
        self.task = task
        self.phone = phone
        self.clock = clock
        self.disk = disk or Disk()

    def run(self, kills: list[tuple[int, bool]]) -> TaskResult:
        """``kills``: for each process, at which of its calls it ends, and whether before that is written."""
        with mock.patch("asyncio.to_thread", _at_once):
            return asyncio.run(self._run(kills))

    async def _run(self, kills: list[tuple[int, bool]]) -> TaskResult:
        self.disk.trail = [Began(seed=self.task.random_seed or 0, at=self.clock.now())]
        for at_call, before in kills:
            self.disk.calls, self.disk.kill_at, self.disk.kill_before = 0, at_call, before
            try:
                return await self._life()
            except (Killed, RunLeft):
                continue
        self.disk.kill_at = None
        return await self._life()

    async def _life(self) -> TaskResult:
        step = self.disk.open
        doubt = InDoubt(step.path, step.dispatched) if step is not None and step.dispatched else None
        self.disk.unsettled = "" if doubt is None else doubt.path
        seed = self.task.random_seed or 0
        return await Engine(self.phone, clock=self.clock, looks_at_failure=True).run(
            self.task.model_copy(update={"random_seed": seed}),
            execution_id="e",
            agent_name=AGENT,
            observer=self.disk,
            control=self.disk.control(),
            trail=Trail(self.disk.trail, in_doubt=doubt),
        )


KILLS = st.lists(st.tuples(st.integers(1, 25), st.booleans()), min_size=1, max_size=MAX_LIVES)


@given(SEEDS, KILLS)
@settings(max_examples=RUNS, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_a_run_that_is_killed_anywhere_ends_every_step_once_and_repeats_no_action(
    seed: int, kills: list[tuple[int, bool]]
) -> None:
    clock = VirtualClock()
    task = validate_task(json.dumps(RandomTasks(Random(seed)).task())).require()
    lives = Lives(task, random_phone(Random(seed + 1), clock), clock)
    result = lives.run(kills)

    assert result.successful == (result.code is StepCode.OK)
    assert "could not go on" not in result.message
    ended = [(each.path, each.iteration) for each in lives.disk.ended]
    assert len(ended) == len(set(ended))
    # What ended in an earlier process is what the result has.
    if result.steps_omitted == 0:
        assert list(result.steps) == lives.disk.ended
    assert all(each.successful or each.code is StepCode.OUTCOME_UNKNOWN for each in lives.disk.settled)


PAGE = dump(
    window(
        *(
            node(word, (0, place * 100, 500, place * 100 + 80), clickable=True)
            for place, word in enumerate(("Tea", "Milk", "Pay"), 1)
        )
    )
)
TASK = task_of(
    {"action": "EXTRACT_TEXT", "selector": {"text": "Tea"}, "outputField": "first"},
    {
        "action": "GROUP",
        "packageName": PACKAGE,
        "steps": [{"id": "g", "action": "CLICK", "selector": {"text": "Tea"}}],
    },
    {
        "action": "REPEAT",
        "maxIterations": 3,
        "until": {"visible": {"text": "never"}},
        "steps": [
            {"id": "m", "action": "CLICK", "selector": {"text": "Milk"}},
            {
                "id": "if",
                "action": "IF",
                "condition": {"visible": {"text": "Pay"}},
                "then": [{"id": "p", "action": "CLICK", "selector": {"text": "Pay"}}],
            },
        ],
    },
    {"action": "CLICK", "selector": {"text": "${outputs.first}"}},
)
TAPS = ["Tea", *("Milk", "Pay") * 3, "Tea"]
CALLS = 60
"""More than the run makes."""


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at_call", range(1, CALLS))
def test_a_kill_at_each_line_leaves_every_action_done_once_or_one_in_doubt(at_call: int, before: bool) -> None:
    clock = VirtualClock()
    phone = MemoryPhone({"shop": Page(PAGE)}, start="shop", clock=clock)
    lives = Lives(TASK, phone, clock)
    result = lives.run([(at_call, before)])
    taps = [each.target for each in phone.done]
    if lives.disk.settled:
        # It had happened, or not: nobody knows, and it ends there.
        assert result.code is StepCode.OUTCOME_UNKNOWN
        assert taps == TAPS[: len(taps)]
        assert len(taps) in (lives.disk.acts - 1, lives.disk.acts)
    else:
        assert (result.code, taps) == (StepCode.OK, TAPS)
