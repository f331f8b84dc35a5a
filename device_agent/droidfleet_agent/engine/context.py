"""What all steps of one run share, and how their results are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.conditions import needs_activity
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.hold import RunClock
from droidfleet_agent.engine.redact import redacted, redacted_typing
from droidfleet_agent.engine.results import Results
from droidfleet_agent.engine.sight import Eyes, needs_of
from droidfleet_agent.engine.step import StepRun, Wants
from droidfleet_agent.engine.target import EMOJI_NOTE
from droidfleet_agent.engine.trail import Trail
from droidfleet_agent.engine.values import RunValues
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.codes import OPTIONAL_SKIPS, Detail, StepCode
from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.result import OutputValue, StepResult
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import Step
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.screen.matching import uses_emoji

DECIDED_APART = frozenset({"when", "after", "until"})
"""The fields of a step that are not decided on the looks of its own action."""


@dataclass(slots=True)
class RunContext:
    """One run of one task. ``deadline`` is the task's own bound; ``acted``: the phone was told to do something;
    ``trail``: the way of an earlier process, where the run is not a new one."""

    task: Task
    phone: Phone
    clock: RunClock
    observer: RunObserver
    control: RunControl
    eyes: Eyes
    values: RunValues
    seed: int
    deadline: Deadline
    trail: Trail = field(default_factory=Trail)
    looks_at_failure: bool = False
    acted: bool = False
    outputs: dict[str, OutputValue] = field(default_factory=dict)
    results: Results = field(default_factory=Results)
    _wants: dict[str, Wants] = field(default_factory=dict)

    def stopped(self, where: str) -> tuple[StepCode, str] | None:
        """Why nothing more is to begin: somebody cancelled the run, or its time is over.

        Raises:
            RunLeft: another process is to go on from here.
        """
        if self.control.cancelled:
            return StepCode.CANCELLED, self.cancelled(where)
        self.control.check(may_leave=True)
        if self.deadline.passed:
            return StepCode.TASK_TIMEOUT, self.timed_out(f"{where}.")
        return None

    def cancelled(self, where: str) -> str:
        """A sentence for people."""
        return f"Cancelled {where}: {self.control.reason}"

    def timed_out(self, where: str) -> str:
        """A sentence for people."""
        return f"The task's bound of {self.task.max_duration_ms} ms (`maxDurationMs`) was reached {where}"

    def since(self, start: float) -> int:
        """Milliseconds by the monotonic clock."""
        return round((self.clock.monotonic() - start) * 1000)

    def wants_of_action(self, written: Step, step: Step) -> Wants:
        """What the looks of the step's own action have to tell; worked out once for each step of the task."""
        known = self._wants.get(written.id)
        if known is None:
            condition = getattr(step, "condition", None)
            activity = step.activity_name is not None or (
                isinstance(condition, Condition) and needs_activity(condition)
            )
            known = self._wants[written.id] = Wants(activity=activity, sight=needs_of(step, without=DECIDED_APART))
        return known

    def result(
        self,
        run: StepRun,
        step: Step,
        ending: StepDone | StepFailed,
        *,
        iteration: int,
        started_at: datetime,
        duration_ms: int,
    ) -> StepResult:
        """The step's result, without secrets."""
        failed = ending if isinstance(ending, StepFailed) else None
        skipped = failed is not None and step.optional and failed.code in OPTIONAL_SKIPS
        message = ending.message
        selector = getattr(run.step, "selector", None)
        if isinstance(selector, Selector) and run.looks and uses_emoji(selector):
            message = f"{message} {EMOJI_NOTE}".strip()
        detail = ending.detail if isinstance(ending, StepDone) else Detail.SKIPPED_OPTIONAL if skipped else Detail.NONE
        result = StepResult(
            id=step.id,
            action=step.action,
            path=run.path,
            iteration=iteration,
            successful=failed is None or skipped,
            code=StepCode.OK if failed is None or skipped else failed.code,
            detail=detail,
            message=f"Skipped, being optional: {failed.code}: {message}" if failed is not None and skipped else message,
            started_at=started_at,
            duration_ms=duration_ms,
            looks=run.looks,
            dispatched=run.dispatched,
            target=run.target,
            candidates=failed.candidates if failed is not None else (),
            artifacts=(*run.artifacts, *(failed.artifacts if failed is not None else ())),
        )
        typed = self.values.secrets_in(step)
        if typed:
            result = redacted_typing(result, typed, written=step.model_dump_json(by_alias=True))
        return redacted(result, self.values.secrets)
