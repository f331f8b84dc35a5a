"""`Engine`: runs the steps of one task in order and reports how each went."""

from __future__ import annotations

from datetime import datetime

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunCancelled, RunControl, RunObserver
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.steps import execute
from droidfleet_agent.engine.target import EMOJI_NOTE
from droidfleet_agent.screen.matching import uses_emoji
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.codes import OPTIONAL_SKIPS, Detail, StepCode
from droidfleet_shared.protocol.result import OutputValue, StepResult, TaskResult
from droidfleet_shared.protocol.steps import Step
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import check_agent

NO_BOUND_S = 10 * 365 * 86_400.0
"""A task without `maxDurationMs` is bounded by its steps' deadlines; this only keeps the arithmetic the same."""


class Engine:
    """Runs validated tasks against one phone, one at a time."""

    def __init__(self, phone: Phone, *, clock: Clock) -> None:
        self._phone = phone
        self._clock = clock

    async def run(
        self, task: Task, *, execution_id: str, agent_name: str, observer: RunObserver, control: RunControl
    ) -> TaskResult:
        """Runs a task to its end and returns what happened; a failing task is a result, never an exception.

        A task for another agent is answered with ``AGENT_MISMATCH`` and the phone is not asked anything.

        Raises:
            Whatever ``observer`` raises, and defects of the engine itself.
        """
        return await _TaskRun(
            task,
            execution_id=execution_id,
            agent_name=agent_name,
            phone=self._phone,
            clock=self._clock,
            observer=observer,
            control=control,
        ).run()


class _TaskRun:
    """One task while it runs."""

    def __init__(
        self,
        task: Task,
        *,
        execution_id: str,
        agent_name: str,
        phone: Phone,
        clock: Clock,
        observer: RunObserver,
        control: RunControl,
    ) -> None:
        self._task = task
        self._execution_id = execution_id
        self._agent_name = agent_name
        self._phone = phone
        self._clock = clock
        self._observer = observer
        self._control = control
        self._started_at = clock.now()
        self._started = clock.monotonic()
        bound_s = NO_BOUND_S if task.max_duration_ms is None else task.max_duration_ms / 1000
        self._deadline = clock.deadline(bound_s)
        self._outputs: dict[str, OutputValue] = {}
        self._results: list[StepResult] = []

    async def run(self) -> TaskResult:
        if mismatch := check_agent(self._task, self._agent_name):
            return self._ended(StepCode.AGENT_MISMATCH, f"Nothing was run: {mismatch}.")
        for position, step in enumerate(self._task.steps):
            ended = self._before(step) or await self._step(step, f"/steps/{position}")
            if ended is not None:
                return ended
        return self._ended(StepCode.OK, "")

    def _before(self, step: Step) -> TaskResult | None:
        if self._control.cancelled:
            return self._ended(StepCode.CANCELLED, self._cancelled(f"before step {step.id!r}"))
        if self._deadline.passed:
            return self._ended(StepCode.TASK_TIMEOUT, self._timed_out(f"before step {step.id!r}."))
        return None

    def _after(self, result: StepResult, *, out_of_time: bool) -> TaskResult | None:
        """How the task ends by this step, or None. ``out_of_time``: the task's bound left the step too little time."""
        if result.successful:
            return None
        if result.code is StepCode.CANCELLED:
            return self._ended(StepCode.CANCELLED, result.message, failed=result)
        message = f"Step {result.id!r}: {result.message}"
        if out_of_time:
            return self._ended(StepCode.TASK_TIMEOUT, self._timed_out(f"in mid-step. {message}"), failed=result)
        return self._ended(result.code, message, failed=result)

    async def _step(self, step: Step, path: str) -> TaskResult | None:
        await self._observer.step_started(step.id, path)
        started_at, started = self._clock.now(), self._clock.monotonic()
        run = StepRun(
            step,
            path=path,
            phone=self._phone,
            clock=self._clock,
            deadline=self._deadline.at_most(step.timeout_ms / 1000),
            observer=self._observer,
            control=self._control,
            outputs=self._outputs,
        )
        try:
            ending: StepDone | StepFailed = await execute(run, step)
        except StepFailed as failed:
            ending = failed
        except RunCancelled:
            ending = StepFailed(StepCode.CANCELLED, self._cancelled(f"in step {step.id!r}"))
        result = self._result(run, step, ending, started_at=started_at, duration_ms=self._since(started))
        self._results.append(result)
        await self._observer.step_finished(result)
        out_of_time = isinstance(ending, StepFailed) and ending.out_of_time and run.deadline.at == self._deadline.at
        return self._after(result, out_of_time=out_of_time)

    def _result(
        self, run: StepRun, step: Step, ending: StepDone | StepFailed, *, started_at: datetime, duration_ms: int
    ) -> StepResult:
        failed = ending if isinstance(ending, StepFailed) else None
        skipped = failed is not None and step.optional and failed.code in OPTIONAL_SKIPS
        message = ending.message
        selector = getattr(step, "selector", None)
        if selector is not None and run.looks and uses_emoji(selector):
            message = f"{message} {EMOJI_NOTE}".strip()
        return StepResult(
            id=step.id,
            action=step.action,
            path=run.path,
            successful=failed is None or skipped,
            code=StepCode.OK if failed is None or skipped else failed.code,
            detail=Detail.SKIPPED_OPTIONAL
            if skipped
            else ending.detail
            if isinstance(ending, StepDone)
            else Detail.NONE,
            message=f"Skipped, being optional: {failed.code}: {message}" if failed is not None and skipped else message,
            started_at=started_at,
            duration_ms=duration_ms,
            looks=run.looks,
            dispatched=run.dispatched,
            target=run.target,
            candidates=failed.candidates if failed is not None else (),
            artifacts=failed.artifacts if failed is not None else (),
        )

    def _ended(self, code: StepCode, message: str, *, failed: StepResult | None = None) -> TaskResult:
        return TaskResult(
            task_id=self._task.task_id,
            revision=self._task.revision,
            agent_name=self._agent_name,
            execution_id=self._execution_id,
            successful=code is StepCode.OK,
            code=code,
            detail=failed.detail if failed is not None else Detail.NONE,
            message=message,
            failed_step_id=failed.id if failed is not None else None,
            outputs=self._outputs,
            steps=tuple(self._results),
            started_at=self._started_at,
            duration_ms=self._since(self._started),
        )

    def _since(self, start: float) -> int:
        return round((self._clock.monotonic() - start) * 1000)

    def _cancelled(self, where: str) -> str:
        return f"Cancelled {where}: {self._control.reason}"

    def _timed_out(self, where: str) -> str:
        return f"The task's bound of {self._task.max_duration_ms} ms (`maxDurationMs`) was reached {where}"
