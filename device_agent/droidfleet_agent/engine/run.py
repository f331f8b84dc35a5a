"""`Engine`: runs one task on one phone, and reports how each step went.

task -> values, seed, deadline (`context`) -> the tree of steps (`flow`) -> each step (`outcome`, `steps`) -> result
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from random import SystemRandom

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.context import RunContext
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.flow import Failure, Flow
from droidfleet_agent.engine.hold import RunClock
from droidfleet_agent.engine.redact import redacted
from droidfleet_agent.engine.sight import Eyes, needs_of_task
from droidfleet_agent.engine.trail import Trail, TrailLostError
from droidfleet_agent.engine.values import RunValues
from droidfleet_agent.vision import load_vision
from droidfleet_agent.vision.port import Vision, VisionMissingError
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import MAX_SEED, Task
from droidfleet_shared.protocol.validate import check_agent

NO_BOUND_S = 10 * 365 * 86_400.0
"""A task without `maxDurationMs` is bounded by its steps' deadlines; this only keeps the arithmetic the same."""


class Engine:
    """Runs validated tasks against one phone, one at a time. ``vision`` gives sight to tasks that need it.

    ``looks_at_failure``: where a task fails, what is in front is asked for, and a picture is kept (`failing`).
    """

    def __init__(
        self,
        phone: Phone,
        *,
        clock: Clock,
        vision: Callable[[], Vision] = load_vision,
        looks_at_failure: bool = False,
    ) -> None:
        self._phone = phone
        self._clock = clock
        self._vision = vision
        self._looks_at_failure = looks_at_failure

    async def run(
        self,
        task: Task,
        *,
        execution_id: str,
        agent_name: str,
        observer: RunObserver,
        control: RunControl,
        trail: Trail | None = None,
    ) -> TaskResult:
        """Runs a task to its end and returns what happened; a failing task is a result, never an exception.

        ``trail``: of an earlier process that did not come to the end; the run goes on where that one stopped. The
        task's own bound counts from when it first began (`Clock.since`).

        A task for another agent is answered with ``AGENT_MISMATCH``, one that needs what this agent lacks with
        ``NOT_SUPPORTED``, and the phone is not asked anything.

        Raises:
            RunLeft: ``control`` was asked to leave the run; what was written of it leads on.
            Whatever ``observer`` raises, and defects of the engine itself.
        """
        clock = RunClock(self._clock)
        trail = trail or Trail()
        started_at, started = clock.now(), clock.monotonic()
        if trail.began is not None:
            before_s = max(0.0, clock.since(trail.began.at, trail.began.uptime))
            started_at, started = trail.began.at, started - before_s
        bound_s = NO_BOUND_S if task.max_duration_ms is None else task.max_duration_ms / 1000
        context = RunContext(
            task=task,
            phone=self._phone,
            clock=clock,
            observer=observer,
            control=control,
            eyes=Eyes(self._vision, task.artifacts),
            values=RunValues(task),
            seed=SystemRandom().randint(0, MAX_SEED) if task.random_seed is None else task.random_seed,
            deadline=Deadline(clock, started + bound_s),
            trail=trail,
            looks_at_failure=self._looks_at_failure,
        )
        flow = Flow(context)
        failure = await self._refusal(task, agent_name)
        if failure is None:
            try:
                failure = await flow.run(task.steps, "/steps")
            except TrailLostError as error:
                code = StepCode.AGENT_RESTARTED if trail.in_doubt is None else StepCode.OUTCOME_UNKNOWN
                failure = Failure(code, f"The agent broke off, and could not go on: {error.message}")
        detail = Detail.FAILURES_CONTINUED if flow.continued else Detail.NONE
        return _result(
            context, failure, detail=detail, screen=flow.failed_screen, agent_name=agent_name,
            execution_id=execution_id, started_at=started_at, duration_ms=context.since(started),
        )  # fmt: skip

    async def _refusal(self, task: Task, agent_name: str) -> Failure | None:
        if mismatch := check_agent(task, agent_name):
            return Failure(StepCode.AGENT_MISMATCH, f"Nothing was run: {mismatch}.")
        if needs := needs_of_task(task):
            try:
                vision = await asyncio.to_thread(self._vision)
                if needs.texts:
                    # Here and not in the first step that reads: loading takes seconds that no step has asked for.
                    await asyncio.to_thread(vision.prepare)
            except VisionMissingError as error:
                return Failure(StepCode.NOT_SUPPORTED, f"Nothing was run: {error.message} {error.hint}")
        return None


def _result(
    context: RunContext,
    failure: Failure | None,
    *,
    detail: Detail,
    screen: str,
    agent_name: str,
    execution_id: str,
    started_at: datetime,
    duration_ms: int,
) -> TaskResult:
    result = TaskResult(
        task_id=context.task.task_id,
        revision=context.task.revision,
        agent_name=agent_name,
        execution_id=execution_id,
        successful=failure is None,
        code=StepCode.OK if failure is None else failure.code,
        detail=detail if failure is None else failure.detail,
        message="" if failure is None else failure.message,
        failed_step_id=None if failure is None else failure.step_id,
        failed_screen="" if failure is None or failure.step_id is None else screen,
        acted=context.acted,
        outputs=context.outputs,
        steps=(),
        steps_omitted=context.results.omitted,
        random_seed=context.seed,
        started_at=started_at,
        duration_ms=duration_ms,
    )
    # The steps' results went through it one by one.
    return redacted(result, context.values.secrets).model_copy(update={"steps": context.results.kept()})
