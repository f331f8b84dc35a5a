"""Everything that the validator accepts, the engine runs to a definite result within the bounds that are printed.

Random tasks on random screens with random faults, on a virtual clock. A failing example is one number: `_Run(seed)`
makes the same again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import ParamSpec, TypeVar
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings

from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import Clock, Deadline, VirtualClock
from droidfleet_shared.protocol.bounds import TaskBound, task_bound
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.explain import explain
from droidfleet_shared.protocol.explain_phrases import LANGUAGES
from droidfleet_shared.protocol.pointers import resolve
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import validate_task
from support.random_phones import Disturbance, Witness, disturbances, random_phone
from support.random_tasks import BROKEN_TASKS, PIN, SEEDS, VALID_TASKS, Document, RandomTasks
from support.runs import AGENT, Recorder

RUNS = 2_000
"""Enough to have met each action under each fault many times; about half a minute on one core."""

FEWER = RUNS // 10
"""Of what takes several runs for one example."""

SLACK_MS = 1
"""Durations are rounded to milliseconds, and a deadline has passed at its very moment."""

LONGEST_VALIDATION_S = 5.0
"""Of one document, computing; the usual is a few milliseconds, and a pattern of unbounded cost takes years."""

random_runs = settings(max_examples=RUNS, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
fewer_runs = settings(random_runs, max_examples=FEWER)


pytestmark = pytest.mark.timeout(300)  # on a busy machine

P = ParamSpec("P")
T = TypeVar("T")


class _Run:
    """One random task on one random phone, made and run from a number."""

    def __init__(self, seed: int, *, random_seed: int | None = None) -> None:
        document = RandomTasks(Random(seed)).task()
        if random_seed is not None:
            document["randomSeed"] = random_seed
        self.task: Task = validate_task(json.dumps(document)).require()
        self.bound: TaskBound = task_bound(self.task)
        self.clock = VirtualClock()
        self.control = RunControl()
        self.observer = Recorder()
        self.took_ms = 0.0
        random = Random(seed + 1)
        self._memory = random_phone(random, self.clock)
        self._ahead = disturbances(random)
        self.witness = Witness(self._memory, self.clock, self._ahead)

    def cancel(self, *, at_call: int) -> None:
        """Has the run cancelled when the phone is asked for the n-th time."""
        self.witness = _Cancelling(self._memory, self.clock, self._ahead, control=self.control, at_call=at_call)

    def run(self, *, cancelled_at: float | None = None) -> TaskResult:
        """Runs it to its end; ``cancelled_at``: cancels it at that moment of the clock, in seconds."""
        # A virtual clock does not wait for threads.
        with mock.patch("asyncio.to_thread", _at_once):
            return asyncio.run(self._run(cancelled_at))

    async def _run(self, cancelled_at: float | None) -> TaskResult:
        async with asyncio.TaskGroup() as group:
            cancelling = group.create_task(self._cancel_at(cancelled_at)) if cancelled_at is not None else None
            result = await Engine(self.witness, clock=self.clock, looks_at_failure=True).run(
                self.task, execution_id="e", agent_name=AGENT, observer=self.observer, control=self.control
            )
            self.took_ms = self.clock.monotonic() * 1_000
            if cancelling is not None:
                cancelling.cancel()
            return result

    async def _cancel_at(self, moment: float) -> None:
        await self.clock.sleep(moment)
        self.control.cancel("somebody asked for it")


async def _at_once(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    return function(*args, **kwargs)


@given(VALID_TASKS)
@settings(max_examples=FEWER, deadline=None)
def test_the_validator_accepts_what_is_valid_and_it_can_be_explained(document: Document) -> None:
    outcome = validate_task(json.dumps(document))
    assert outcome.errors == ()
    assert outcome.task is not None
    for language in LANGUAGES:
        explain(outcome.task, outcome.document, language=language)


@given(BROKEN_TASKS)
@example({"steps": [{"id": "a", "action": "NOPE", "onFailure": {"text": "x"}}]})
@settings(max_examples=RUNS // 4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_validator_answers_whatever_is_broken(document: Document) -> None:
    began = time.thread_time()
    outcome = validate_task(json.dumps(document))
    assert time.thread_time() - began < LONGEST_VALIDATION_S
    for issue in (*outcome.errors, *outcome.warnings):
        resolve(outcome.document, issue.path)  # it points into the document
        assert issue.message
    if outcome.task is not None:
        assert explain(outcome.task, outcome.document).bound.time_ms >= 0


@given(SEEDS)
@random_runs
def test_a_run_ends_with_a_definite_result_within_its_bounds(seed: int) -> None:
    run = _Run(seed)
    result = run.run()

    assert run.took_ms <= run.bound.total.time_ms + SLACK_MS
    assert result.duration_ms <= run.bound.total.time_ms + SLACK_MS
    _check_codes(result)
    _check_announcements(run.observer, result)
    _check_effects(run)
    _check_secrets(run.observer, result)


@given(SEEDS)
@fewer_runs
def test_a_run_with_the_same_seed_and_screens_is_the_same(seed: int) -> None:
    first = _Run(seed)
    result = first.run()
    again = _Run(seed, random_seed=result.random_seed)
    assert again.run() == result
    assert again.observer.heard == first.observer.heard


@given(SEEDS)
@fewer_runs
def test_a_cancel_at_any_moment_ends_the_run(seed: int) -> None:
    whole = _Run(seed)
    result = whole.run()
    random = Random(seed)
    run = _Run(seed, random_seed=result.random_seed)
    if random.random() < 0.5:
        run.cancel(at_call=random.randint(1, whole.witness.calls + 1))
        cancelled = run.run()
    else:
        cancelled = run.run(cancelled_at=random.uniform(0.0, whole.took_ms / 1_000))
    assert run.took_ms <= whole.took_ms + SLACK_MS
    if not run.control.cancelled:
        assert cancelled == result
    _check_codes(cancelled)
    _check_announcements(run.observer, cancelled)
    _check_effects(run)


@pytest.mark.parametrize("code", [StepCode.OK, StepCode.TARGET_NOT_FOUND, StepCode.OUTCOME_UNKNOWN])
def test_random_runs_meet_successes_and_failures(code: StepCode) -> None:
    assert any(_Run(seed).run().code is code for seed in range(200))


class _Cancelling(Witness):
    """Cancels the run when the phone is asked for the n-th time. Nothing may be sent after that."""

    def __init__(
        self, phone: MemoryPhone, clock: Clock, ahead: Sequence[Disturbance], *, control: RunControl, at_call: int
    ) -> None:
        super().__init__(phone, clock, ahead)
        self._control = control
        self._at_call = at_call

    async def _act(self, name: str, action: Callable[[], Awaitable[bool]], deadline: Deadline) -> bool:
        assert not self._control.cancelled, f"{name} was sent after the cancel"
        return await super()._act(name, action, deadline)

    def called(self) -> None:
        super().called()
        if self.calls == self._at_call:
            self._control.cancel("somebody asked for it")


def _check_codes(result: TaskResult) -> None:
    endings = [(each.successful, each.code, each.duration_ms) for each in result.steps]
    for successful, code, duration_ms in (*endings, (result.successful, result.code, result.duration_ms)):
        assert successful == (code is StepCode.OK)
        assert duration_ms >= 0
    assert result.successful or result.message


def _check_announcements(observer: Recorder, result: TaskResult) -> None:
    """What was started was finished, the last first, and what was sent was sent within it."""
    open_steps: list[str] = []
    for what, step_id, _ in observer.heard:
        if what == "started":
            open_steps.append(step_id)
        elif what == "dispatching":
            assert step_id == open_steps[-1]
        else:
            assert step_id == open_steps.pop()
    assert open_steps == []
    assert len(observer.finished) == len(result.steps) + result.steps_omitted


def _check_secrets(observer: Recorder, result: TaskResult) -> None:
    """Typed, shown on a screen, or read into an output: the secret is in nothing that leaves the engine."""
    for each in (result, *observer.finished):
        assert PIN not in each.model_dump_json()


def _check_effects(run: _Run) -> None:
    told = run.witness.may_have_happened
    hides = told["hide_keyboard"]
    assert sum(told.values()) - hides <= run.bound.total.effects
    assert hides <= run.bound.total.keyboard_hides
    dispatched: Counter[str] = Counter()
    for result in run.observer.finished:
        dispatched[result.path] += result.dispatched
    assert dispatched.total() <= sum(told.values()) + run.witness.did_not_happen
    for path, each in run.bound.steps.items():
        most = (each.once.effects + each.once.keyboard_hides) * each.runs
        assert dispatched[path] <= most + run.witness.did_not_happen
