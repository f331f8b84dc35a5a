"""Walks the tree of a task's steps: which step is next, which is skipped, what a failure does to what follows.

    list -> step: stopped? chance? values? when? -> leaf: `outcome.act`     container: its lists, the same way
         <- its result, to the observer and the results -> optional, onFailure, jumps -> the next step, or the end

A failure travels up as a `Failure`: a container ends with the code of the step that failed in it, and its own
`optional` and `onFailure` are asked in turn. What must never be passed over ends the task from wherever it happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from droidfleet_agent.engine.chance import chance, drawn
from droidfleet_agent.engine.conditions import decide, wants_of
from droidfleet_agent.engine.context import RunContext
from droidfleet_agent.engine.control import RunCancelled
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.failing import last_screen, look_at_failure
from droidfleet_agent.engine.hold import hold
from droidfleet_agent.engine.messages import counted
from droidfleet_agent.engine.outcome import act, settle_doubt
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.steps import execute
from droidfleet_agent.engine.trail import Decided, Ended, InDoubt
from droidfleet_agent.engine.wait import wait_until
from droidfleet_shared.clock import Deadline
from droidfleet_shared.protocol.codes import ON_FAILURE_APPLIES, OPTIONAL_SKIPS, Detail, StepCode
from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.result import OutputValue, StepResult
from droidfleet_shared.protocol.steps import BranchStep, Goto, GroupStep, IfStep, RepeatStep, Step
from droidfleet_shared.protocol.values import MissingValueError, UnfitValueError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a list of steps ended. ``step_id`` and ``detail`` are those of the innermost step that failed, None when the
    run was stopped between two steps. ``code`` is the task's, unless something passes over it."""

    code: StepCode
    message: str
    step_id: str | None = None
    detail: Detail = Detail.NONE


class _InnerFailure(Exception):  # noqa: N818 - the outcome of a container, not a defect
    """A list within a container ended by this failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a step ended: it failed, or it is to be gone on with the step ``goto`` (None: the next one)."""

    failure: Failure | None = None
    goto: str | None = None


class Flow:
    """Runs the steps of one task."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._rounds: dict[str, int] = {}
        """How many rounds of each REPEAT began, by its path."""
        self._open: list[Step] = []
        """The steps that run now, the outermost first."""
        self.failed_screen = ""
        """What was in front when a step last failed."""
        self.continued = False
        """Whether the task went on after a failure because `onFailure` said so."""

    async def run(self, steps: tuple[Step, ...], path: str, *, iteration: int = 0) -> Failure | None:
        """Runs a list of steps; the failure that ended it, or None."""
        position = 0
        while position < len(steps):
            step = steps[position]
            ended = await self._step(step, f"{path}/{position}", iteration)
            goto = ended.goto
            if ended.failure is not None:
                follows = after_failure(step, ended.failure.code)
                if follows == "STOP":
                    return ended.failure
                self.continued = True
                goto = follows.goto if isinstance(follows, Goto) else None
            position = position + 1 if goto is None else _position_of(steps, goto)
        return None

    async def _step(self, step: Step, path: str, iteration: int) -> _Ended:
        context = self._context
        if (before := context.trail.ended(path, iteration)) is not None:
            return self._as_before(step, before)
        container = isinstance(step, GroupStep | IfStep | RepeatStep)
        doubt = None if container else context.trail.doubted(path)
        if (refused := await self._enter(step, path, doubt)) is not None:
            return _Ended(refused)
        started_at, started = context.clock.now(), context.clock.monotonic()
        run = StepRun(
            step,
            path=path,
            phone=context.phone,
            clock=context.clock,
            task_deadline=context.deadline,
            observer=context.observer,
            control=context.control,
            outputs=context.outputs,
            eyes=context.eyes,
            random=chance(context.seed, path, iteration, "step"),
            secrets=context.values.secrets,
        )
        goto: str | None = None
        inner: Failure | None = None
        ending: StepDone | StepFailed
        outputs = dict(context.outputs)
        self._open.append(step)
        try:
            if doubt is not None:
                run.dispatched = doubt.dispatched
                ending = await settle_doubt(run, self._resolved(step))
            else:
                ending, goto = await self._perform(run, step, path, iteration)
        except StepFailed as failed:
            ending = failed
        except _InnerFailure as failed_inside:
            inner = failed_inside.failure
            ending = StepFailed(inner.code, inner.message)
        except RunCancelled:
            ending = StepFailed(StepCode.CANCELLED, context.cancelled(f"in step {step.id!r}"))
        duration_ms = context.since(started)
        context.acted |= run.dispatched > 0
        if isinstance(ending, StepFailed) and inner is None:
            self.failed_screen = last_screen(run)
            if context.looks_at_failure and self._ends_task(ending.code):
                self.failed_screen = await look_at_failure(context, run, ending.code)
        self._open.pop()
        if container and (ended := context.trail.ended(path, iteration)) is not None:
            # What it had is what counts; what its steps had led here.
            return self._as_before(step, ended, inner)
        result = context.result(run, step, ending, iteration=iteration, started_at=started_at, duration_ms=duration_ms)
        context.results.add(result)
        failure = None if result.successful else inner or self._failure(run, ending, result)
        await context.observer.step_finished(
            Ended(
                result=result,
                counts_as=StepCode.OK if failure is None else failure.code,
                outputs={} if container else _newer(context.outputs, outputs),
            )
        )
        return _Ended(goto=goto) if failure is None else _Ended(failure)

    async def _enter(self, step: Step, path: str, doubt: InDoubt | None) -> Failure | None:
        """Announces the step, unless an earlier process did; why it is not to begin, where it is not.

        A step in doubt stays the open one until it is settled: announced anew it would seem to have done nothing.
        """
        context = self._context
        if doubt is not None or context.trail.leads_on:
            await context.observer.step_resumed(step.id, path)
            return None
        with suppress(RunCancelled):  # said below, with where it was
            await hold(context.clock, context.control, context.observer)
        if stopped := context.stopped(f"before step {step.id!r}"):
            return Failure(*stopped)
        await context.observer.step_started(step.id, path)
        return None

    def _as_before(self, step: Step, ended: Ended, inner: Failure | None = None) -> _Ended:
        """What a step that ended in an earlier process had."""
        result = ended.result
        self._context.results.add(result)
        self._context.outputs.update(ended.outputs)
        self._context.acted |= result.dispatched > 0
        if not result.successful:
            message = f"Step {result.id!r}: {result.message}"
            return _Ended(inner or Failure(ended.counts_as, message, result.id, result.detail))
        return _Ended(goto=step.goto if isinstance(step, BranchStep) and result.detail is Detail.JUMPED else None)

    async def _decide(
        self, run: StepRun, condition: Condition, *, what: str, words: str, in_front: bool = True
    ) -> bool:
        """What a container decides on a look, now or in an earlier process. ``what`` names it in the trail."""
        if (before := self._context.trail.decided(run.path, what)) is not None:
            return before.holds
        holds = await decide(run, condition, what=words, in_front=in_front)
        await self._context.observer.decided(
            Decided(path=run.path, what=what, holds=holds, at=self._context.clock.now())
        )
        return holds

    def _ends_task(self, code: StepCode) -> bool:
        """Whether nothing passes over a failure with this code in the innermost of the open steps."""
        return not any(
            (step.optional and code in OPTIONAL_SKIPS) or after_failure(step, code) != "STOP" for step in self._open
        )

    def _failure(self, run: StepRun, ending: StepDone | StepFailed, result: StepResult) -> Failure:
        if result.code is StepCode.CANCELLED:
            return Failure(StepCode.CANCELLED, result.message, result.id, result.detail)
        message = f"Step {result.id!r}: {result.message}"
        if isinstance(ending, StepFailed) and ending.out_of_time and run.deadline.at == self._context.deadline.at:
            timed_out = self._context.timed_out(f"in mid-step. {message}")
            return Failure(StepCode.TASK_TIMEOUT, timed_out, result.id, result.detail)
        return Failure(result.code, message, result.id, result.detail)

    async def _perform(self, run: StepRun, written: Step, path: str, iteration: int) -> tuple[StepDone, str | None]:
        """The step's success and where it goes on, after what may make it unnecessary."""
        if not drawn(written.probability, seed=self._context.seed, path=path, iteration=iteration):
            return StepDone(Detail.SKIPPED_BY_CHANCE, f"Not run: `probability` is {written.probability} percent."), None
        step = self._resolved(written)
        run.step = step
        if step.when is not None:
            run.wants = wants_of(step.when)
            if isinstance(step, GroupStep | IfStep | RepeatStep):
                holds = await self._decide(run, step.when, what="when", words="`when`", in_front=False)
            else:
                holds = await decide(run, step.when, what="`when`", in_front=False)
            if not holds:
                return StepDone(Detail.WHEN_FALSE, "Not run: `when` does not hold."), None
        run.wants = self._context.wants_of_action(written, step)
        run.now_acting()
        match step:
            case GroupStep() | IfStep() | RepeatStep():
                done = await act(run, step, lambda: self._container(run, step, path, iteration))
                return done, None
            case BranchStep():
                return await self._branch(run, step)
            case _:
                return await act(run, step, lambda: execute(run, step)), None

    def _resolved(self, step: Step) -> Step:
        try:
            return self._context.values.resolve(step, self._context.outputs)
        except MissingValueError as error:
            raise StepFailed(
                StepCode.VALUE_MISSING,
                f"{error.reference} has no value yet. Extract it in a step that runs before this one.",
            ) from None
        except UnfitValueError as error:
            raise StepFailed(
                StepCode.VALUE_MISSING,
                f"With the values put in, {error.field} is not one that is accepted: {error.reason}.",
            ) from None

    async def _branch(self, run: StepRun, step: BranchStep) -> tuple[StepDone, str | None]:
        holds = False

        async def branch() -> StepDone:
            nonlocal holds
            holds = await decide(run, step.condition, what="The condition")
            return StepDone(Detail.JUMPED if holds else Detail.NOT_JUMPED)

        done = await act(run, step, branch)
        return done, step.goto if holds else None

    async def _container(
        self, run: StepRun, step: GroupStep | IfStep | RepeatStep, path: str, iteration: int
    ) -> StepDone:
        match step:
            case GroupStep():
                await self._app_in_front(run)
                await self._inner(step.steps, f"{path}/steps", iteration)
                return StepDone(Detail.DONE)
            case IfStep():
                if await self._decide(run, step.condition, what="condition", words="The condition"):
                    await self._inner(step.then, f"{path}/then", iteration)
                    return StepDone(Detail.THEN)
                await self._inner(step.otherwise or (), f"{path}/else", iteration)
                return StepDone(Detail.ELSE)
            case RepeatStep():
                await self._app_in_front(run)
                return await self._repeat(run, step, path)
            case _:
                assert_never(step)

    async def _repeat(self, run: StepRun, step: RepeatStep, path: str) -> StepDone:
        begun = 0
        limit = await self._duration(run, step)
        while True:
            if step.until is not None:
                known = self._context.trail.leads_on
                if not known and (stopped := self._context.stopped(f"before a round of step {step.id!r}")):
                    raise _InnerFailure(Failure(*stopped))
                run.begin(step.timeout_ms)
                run.wants = wants_of(step.until)
                if await self._decide(run, step.until, what="until", words="`until`", in_front=False):
                    return StepDone(Detail.UNTIL_HELD, f"`until` held after {counted(begun, 'round')}.")
            if begun == step.max_iterations or (limit is not None and await self._over(run, limit)):
                return StepDone(Detail.BOUND_REACHED, f"{counted(begun, 'round')}.")
            # Rounds in which every step is skipped must not keep the process from its other work.
            await asyncio.sleep(0)
            begun += 1
            iteration = self._rounds.get(path, 0)
            self._rounds[path] = iteration + 1
            await self._inner(step.steps, f"{path}/steps", iteration)

    async def _duration(self, run: StepRun, step: RepeatStep) -> Deadline | None:
        if step.max_duration_ms is None:
            return None
        clock = self._context.clock
        began_at = await self._noted(run, "began", holds=True)
        gone_s = max(0.0, clock.since(began_at.at, began_at.uptime))
        return Deadline(clock, clock.monotonic() - gone_s + step.max_duration_ms / 1000)

    async def _over(self, run: StepRun, limit: Deadline) -> bool:
        return (await self._noted(run, "over", holds=limit.passed)).holds

    async def _noted(self, run: StepRun, what: str, *, holds: bool) -> Decided:
        """What the clock says, or said in an earlier process."""
        before = self._context.trail.decided(run.path, what)
        if before is not None:
            return before
        clock = self._context.clock
        now = Decided(path=run.path, what=what, holds=holds, at=clock.now(), uptime=clock.uptime())
        await self._context.observer.decided(now)
        return now

    async def _inner(self, steps: tuple[Step, ...], path: str, iteration: int) -> None:
        failure = await self.run(steps, path, iteration=iteration)
        if failure is not None:
            raise _InnerFailure(failure)

    async def _app_in_front(self, run: StepRun) -> None:
        if run.step.package_name is not None and self._context.trail.decided(run.path, "inFront") is None:
            await wait_until(run, lambda _matcher: True)
            now = self._context.clock.now()
            await self._context.observer.decided(Decided(path=run.path, what="inFront", holds=True, at=now))


def _newer(outputs: Mapping[str, OutputValue], before: Mapping[str, OutputValue]) -> dict[str, OutputValue]:
    return {name: value for name, value in outputs.items() if before.get(name) is not value}


def after_failure(step: Step, code: StepCode) -> str | Goto:
    """What follows a step that failed: ``"STOP"``, ``"CONTINUE"``, or a `Goto`."""
    return step.on_failure if code in ON_FAILURE_APPLIES else "STOP"


def _position_of(steps: tuple[Step, ...], step_id: str) -> int:
    """The validator has seen that the step is there, and further on."""
    return next(position for position, step in enumerate(steps) if step.id == step_id)
