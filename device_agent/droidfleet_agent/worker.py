"""The worker: makes what one agent runs equal to what it is assigned, one execution at a time.

``document -> reconcile (pure) -> journal -> engine``. Everything is written into the journal before it is done, so that
at every line the process may die. Never speaks to the bus: it writes events, and says when there are new ones.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from random import Random, SystemRandom
from typing import assert_never

import structlog

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunControl, RunLeft
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Began, InDoubt, Trail
from droidfleet_agent.journal.attempt import Attempt, Phase, key
from droidfleet_agent.journal.port import Journal, JournalFullError
from droidfleet_agent.reconcile import (
    Action,
    AnswerCancelled,
    CancelRunning,
    EndInterrupted,
    Expire,
    Forget,
    GoOn,
    Key,
    Pause,
    Refusal,
    Refuse,
    ReportAgain,
    SayPaused,
    Situation,
    Start,
    TakeOn,
    Written,
    reconcile,
)
from droidfleet_agent.reporting import JournalObserver, Make, Reporter
from droidfleet_shared.bus.messages import Assignment, DesiredState, Event, ExecutionRef
from droidfleet_shared.clock import Clock, Deadline
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import MAX_SEED, Task
from droidfleet_shared.protocol.validate import check_agent, validate_task
from droidfleet_shared.protocol.values import secret_values
from droidfleet_shared.secrets import concealed, without

log = structlog.get_logger(__name__)

MAX_PASSES = 8
"""Passes of one reconciliation; two are needed (take on, then start), more only while the document changes."""

TICK_S = 1.0
"""How late the worker notices that a time has passed (a start limit, a result that was not recorded)."""

RESEND_FIRST_S = 30.0
RESEND_LAST_S = 15 * 60.0
"""A result that is not recorded is sent again after 30 s, then after twice as long each time, up to 15 minutes."""

START_EXPIRED = "START_EXPIRED"
"""The controller counts a rejection with this code as expired."""


@dataclass(slots=True)
class _Running:
    ref: ExecutionRef
    control: RunControl


@dataclass(slots=True)
class _Sent:
    """When and how often the last event of an attempt was sent."""

    due: Deadline
    wait_s: float


class Worker:
    """Runs the executions of one agent. ``changed`` is called after every change: new events, or another state.

    ``host_id``: of this host; documents for another one are left alone. ``held_up``: whether the name
    is in doubt before anybody says so. ``random`` draws the seeds of tasks that name none.
    """

    def __init__(
        self,
        agent: str,
        *,
        host_id: str,
        phone: Phone,
        journal: Journal,
        clock: Clock,
        changed: Callable[[], None],
        held_up: Callable[[], bool] = lambda: False,
        random: Random = SystemRandom(),  # noqa: B008  # without a state
    ) -> None:
        self._agent = agent
        self._host_id = host_id
        self._engine = Engine(phone, clock=clock, looks_at_failure=True)
        self._journal = journal
        self._random = random
        self._clock = clock
        self._changed = changed
        self._held_up = held_up
        self._reporter = Reporter(agent, clock)
        self._document: DesiredState | None = None
        self._running: _Running | None = None
        self._may_start = False
        self._displaced = False
        self._stopping = ""
        self._left: ExecutionRef | None = None
        self._taken_on = 0
        self._broke: set[Key] = set()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._start_by: dict[Key, Deadline] = {}
        self._sent: dict[Key, _Sent] = {}
        self._again: dict[Key, Event] = {}
        self.epoch = ""
        self.generation = 0
        """Epoch and generation of the last document that was applied."""

    @property
    def running(self) -> ExecutionRef | None:
        """What runs now, or was left."""
        return self._running.ref if self._running is not None else self._left

    # Orders from outside. They only note what is wanted; `run` acts on it.

    def want(self, document: DesiredState) -> None:
        """Takes a desired-state document. An older one than the last is ignored, the same one again is harmless.

        One of another epoch replaces the last whatever its generation: the controller has another database, which knows
        nothing of what that one listed. One for another host says that the name went there: nothing begins here.
        """
        last = self._document
        if last is not None and document.epoch == last.epoch and document.generation < last.generation:
            log.info("document_ignored", generation=document.generation, newest=last.generation)
            return
        self._displaced = document.host_id not in {"", self._host_id}
        if self._displaced:
            log.warning("document_for_another_host", generation=document.generation)
            return
        if last is not None and document.epoch != last.epoch:
            log.warning("database_changed", epoch=document.epoch, before=last.epoch)
        self._document = document
        self._wake.set()

    def allow_starts(self, allowed: bool) -> None:
        """Whether executions may begin: the name is granted, the phone is there and nobody else acts on it.

        What runs goes on.
        """
        if allowed != self._may_start:
            self._may_start = allowed
            self._wake.set()

    async def stop(self, reason: str) -> None:
        """Begins nothing more, stops what runs at its next step boundary, and returns when its end is written."""
        self._stopping = reason
        if self._running is not None:
            self._running.control.cancel(reason)
        await self._idle.wait()

    async def leave(self, reason: str) -> None:
        """Begins nothing more, leaves what runs at its next step boundary, or in a wait before its step acted, and
        returns when that is so. The next process goes on with it."""
        self._stopping = reason
        if self._running is not None:
            self._running.control.leave()
        await self._idle.wait()

    def sent(self, event: Event) -> None:
        """To be called when the broker has an event: a last one is due again unless it gets recorded."""
        name = (event.execution_id, event.attempt)
        self._again.pop(name, None)
        if event.kind in ("ExecutionFinished", "ExecutionRejected"):
            before = self._sent.get(name)
            wait_s = RESEND_FIRST_S if before is None else min(RESEND_LAST_S, before.wait_s * 2)
            self._sent[name] = _Sent(self._clock.deadline(wait_s), wait_s)

    def again(self) -> tuple[Event, ...]:
        """Last events that are to be sent once more, beside the journal's outbox."""
        return tuple(self._again.values())

    # The loop.

    async def run(self) -> None:
        """Reconciles after every change until cancelled. A journal that fails ends it: nothing is done unwritten."""
        await self._recall()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick(), name=f"worker tick {self._agent}")
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self._reconcile(group)

    async def _recall(self) -> None:
        """Times of attempts of an earlier process."""
        for attempt in await self._journal.attempts():
            if attempt.phase is Phase.ENDED:
                self._sent[key(attempt.ref)] = _Sent(self._clock.deadline(RESEND_FIRST_S), RESEND_FIRST_S)
            elif attempt.phase is Phase.ACCEPTED and attempt.start_by is not None:
                remaining = max(0.0, -self._clock.since(attempt.start_by, attempt.start_by_uptime))
                self._start_by[key(attempt.ref)] = self._clock.deadline(remaining)
        self._wake.set()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            if any(deadline.passed for deadline in self._start_by.values()) or any(
                sent.due.passed for sent in self._sent.values()
            ):
                self._wake.set()

    async def _reconcile(self, group: asyncio.TaskGroup) -> None:
        document = self._document
        for _ in range(MAX_PASSES):
            taken_on = self._taken_on
            actions = reconcile(await self._situation())
            for action in actions:
                if isinstance(action, Start) and self._taken_on != taken_on:
                    break  # what was taken on just now may come before it
                await self._do(action, group)
            if not actions or self._running is not None:
                break
        if document is not None and (self.epoch, self.generation) != (document.epoch, document.generation):
            self.epoch, self.generation = document.epoch, document.generation
            self._changed()

    async def _situation(self) -> Situation:
        # Before the journal is read: what ends meanwhile must not look as if it had been broken off.
        running = key(self._running.ref) if self._running is not None else None
        attempts = await self._journal.attempts()
        known = {key(attempt.ref) for attempt in attempts}
        assigned = self._document.executions if self._document is not None else ()
        forgotten = {key(each) for each in assigned if key(each) not in known and await self._journal.forgotten(each)}
        return Situation(
            document=self._document,
            attempts=attempts,
            forgotten=frozenset(forgotten),
            running=running,
            pausing=self._running is not None and self._running.control.pausing,
            broke=frozenset(self._broke),
            may_start=self._may_start and not (self._displaced or self._stopping or self._held_up()),
            late=frozenset(name for name, deadline in self._start_by.items() if deadline.passed),
            unheard=frozenset(name for name, sent in self._sent.items() if sent.due.passed and name not in self._again),
            judge=self._judge,
        )

    def _judge(self, assignment: Assignment) -> Refusal | None:
        validation = validate_task(assignment.task)
        if validation.task is None:
            issues = "; ".join(
                f"{issue.path or '(document)'} {issue.code}: {issue.message}"
                for issue in concealed(validation.errors, validation.document)
            )
            return Refusal(StepCode.INVALID_TASK, issues)
        mismatch = check_agent(validation.task, self._agent)
        return Refusal(StepCode.AGENT_MISMATCH, mismatch) if mismatch else None

    async def _do(self, action: Action, group: asyncio.TaskGroup) -> None:
        match action:
            case CancelRunning(_, reason):
                if self._running is not None:
                    self._running.control.cancel(reason)
            case Pause() | GoOn():
                if self._running is not None:
                    self._running.control.pausing = isinstance(action, Pause)
            case ReportAgain(attempt):
                if attempt.last is not None:
                    log.info("result_sent_again", execution_id=attempt.ref.execution_id, attempt=attempt.ref.attempt)
                    self._again[key(attempt.ref)] = attempt.last
                    self._changed()
            case Forget(refs):
                await self._journal.forget(refs)
                for ref in refs:
                    self._drop(key(ref))
            case Start(attempt):
                self._start(attempt, group)
            case _:
                await self._write(action)

    async def _write(self, action: Written) -> None:
        match action:
            case TakeOn(assignment):
                await self._take_on(assignment, self._reporter.accepted(assignment))
            case Refuse(assignment, refusal):
                await self._take_on(assignment, self._reporter.rejected(assignment, refusal.code, refusal.message))
            case Expire(ref):
                message = "the time in which it had to start has passed."
                await self._append(ref, self._reporter.rejected(ref, START_EXPIRED, message))
            case AnswerCancelled(ref, reason):
                await self._append(ref, self._reporter.finished(ref, await self._unstarted(ref, reason)))
            case SayPaused(attempt):
                step = attempt.open_step
                await self._append(attempt.ref, self._reporter.paused(attempt.ref, step.step_id if step else ""))
            case EndInterrupted(attempt, reason):
                await self._append(
                    attempt.ref, self._reporter.finished(attempt.ref, self._interrupted(attempt, reason))
                )
            case _:
                assert_never(action)

    async def _take_on(self, assignment: Assignment, make: Make) -> None:
        ref = _ref(assignment)
        limit_s = assignment.start_within_s
        attempt = Attempt(ref, assignment.task, None)
        if limit_s is not None:
            start_by, up = self._clock.now() + timedelta(seconds=limit_s), self._clock.uptime()
            attempt = replace(attempt, start_by=start_by, start_by_uptime=replace(up, s=up.s + limit_s))
        try:
            event = await self._journal.take_on(attempt, make)
        except JournalFullError as error:
            # It stays assigned; the controller's receipts make room, and the next document brings it again.
            log.warning("assignment_left", execution_id=ref.execution_id, code=error.code, message=error.message)
            return
        if limit_s is not None and event.kind == "ExecutionAccepted":
            self._start_by[key(ref)] = self._clock.deadline(limit_s)
        self._taken_on += 1
        log.info("execution_taken_on", execution_id=ref.execution_id, attempt=ref.attempt, kind=event.kind)
        self._changed()

    async def _append(self, ref: ExecutionRef, make: Make) -> None:
        event = await self._journal.append(ref, make)
        self._start_by.pop(key(ref), None)
        if self._left == ref:
            self._left = None
        log.info("execution_settled", execution_id=ref.execution_id, attempt=ref.attempt, kind=event.kind)
        self._changed()

    def _drop(self, name: Key) -> None:
        self._start_by.pop(name, None)
        self._sent.pop(name, None)
        self._again.pop(name, None)
        self._broke.discard(name)

    # One execution.

    def _start(self, attempt: Attempt, group: asyncio.TaskGroup) -> None:
        # It may have been withdrawn while other actions of the same pass were written.
        if self._stopping or not self._may_start:
            return
        running = _Running(attempt.ref, RunControl())
        self._running = running
        self._idle.clear()
        group.create_task(self._execute(attempt, running.control), name=f"execution {attempt.ref.execution_id}")

    async def _execute(self, attempt: Attempt, control: RunControl) -> None:
        ref = attempt.ref
        bound = log.bind(execution_id=ref.execution_id, attempt=ref.attempt)
        try:
            task = validate_task(attempt.task).require()
            trail = await (self._resume(attempt) if attempt.phase is Phase.RUNNING else self._begin(task, ref))
            assert trail.began is not None
            task = task.model_copy(update={"random_seed": trail.began.seed})
            self._start_by.pop(key(ref), None)
            self._changed()
            bound.info("execution_started", restarts=attempt.restarts)
            result = await self._run_engine(task, ref, control, trail)
            if result is not None:
                # Before its end is written: from then on it may be sent, recorded and forgotten at any moment.
                known = await self._known(ref)
                result = result.model_copy(update={"agent_restarts": known.restarts})
                await self._journal.append(ref, self._reporter.finished(ref, result))
                bound.info(
                    "execution_finished", code=result.code, duration_ms=result.duration_ms, events_unsent=known.unsent
                )
        except RunLeft:
            await self._journal.leave(ref)
            self._left = ref
            bound.info("execution_left", reason=self._stopping)
        finally:
            self._running = None
            self._idle.set()
            self._wake.set()
            self._changed()

    async def _begin(self, task: Task, ref: ExecutionRef) -> Trail:
        """From here on the attempt has begun, and will not begin again, in this process or the next. The seed is drawn
        here where the task names none: what is reported first is what the run uses."""
        seed = self._random.randint(0, MAX_SEED) if task.random_seed is None else task.random_seed
        began = Began(seed=seed, at=self._clock.now(), uptime=self._clock.uptime())
        await self._journal.append(ref, self._reporter.started(ref, random_seed=seed), trail=began)
        return Trail([began])

    async def _resume(self, attempt: Attempt) -> Trail:
        """The way of the process that broke off. That somebody goes on is written first: it is bounded."""
        ref, step = attempt.ref, attempt.open_step
        await self._journal.append(ref, self._reporter.resumed(ref, restarts=attempt.restarts + 1))
        if attempt.paused:
            await self._journal.append(ref, self._reporter.continued(ref, step.step_id if step is not None else ""))
        doubt = InDoubt(step.path, step.dispatched) if step is not None and step.dispatched else None
        return Trail(await self._journal.trail(ref), in_doubt=doubt)

    async def _run_engine(self, task: Task, ref: ExecutionRef, control: RunControl, trail: Trail) -> TaskResult | None:
        """The result, or None when the engine broke: then the attempt counts as interrupted and is not gone on with."""
        observer = JournalObserver(self._journal, ref, self._reporter, self._changed)
        try:
            result = await self._engine.run(
                task,
                execution_id=ref.execution_id,
                agent_name=self._agent,
                observer=observer,
                control=control,
                trail=trail,
            )
        except RunLeft:
            raise
        except Exception:
            # An error may quote what it stumbled over.
            trace = without(traceback.format_exc(), secret_values(task))
            log.error("execution_broke", execution_id=ref.execution_id, traceback=trace)
            self._broke.add(key(ref))
            return None
        result = observer.noted(result)
        if self._stopping and result.code is StepCode.CANCELLED and control.reason == self._stopping:
            # Nobody cancelled it: the agent went away under it.
            return result.model_copy(update={"code": StepCode.AGENT_RESTARTED})
        return result

    async def _unstarted(self, ref: ExecutionRef, reason: str) -> TaskResult:
        attempt = await self._known(ref)
        return self._ended(attempt, StepCode.CANCELLED, f"Cancelled before its first step: {reason}", acted=False)

    async def _known(self, ref: ExecutionRef) -> Attempt:
        [attempt] = [each for each in await self._journal.attempts() if key(each.ref) == key(ref)]
        return attempt

    def _interrupted(self, attempt: Attempt, reason: str) -> TaskResult:
        step = attempt.open_step
        if step is not None and step.dispatched:
            return self._ended(
                attempt,
                StepCode.OUTCOME_UNKNOWN,
                f"The agent broke off while step {step.step_id!r} was being carried out; whether its action happened "
                "is unknown, and it is not repeated.",
                acted=True,
                failed_step_id=step.step_id,
            )
        where = f"in step {step.step_id!r}, before its action" if step is not None else "between two steps"
        if reason:
            message = f"Cancelled after the agent broke off {where}: {reason}"
            return self._ended(attempt, StepCode.CANCELLED, message, acted=None)
        return self._ended(attempt, StepCode.AGENT_RESTARTED, f"The agent broke off {where}.", acted=None)

    def _ended(
        self, attempt: Attempt, code: StepCode, message: str, *, acted: bool | None, failed_step_id: str | None = None
    ) -> TaskResult:
        task: Task = validate_task(attempt.task).require()
        return TaskResult(
            task_id=task.task_id,
            revision=task.revision,
            agent_name=self._agent,
            execution_id=attempt.ref.execution_id,
            successful=False,
            code=code,
            message=message,
            failed_step_id=failed_step_id,
            acted=acted,
            started_at=self._clock.now(),
            duration_ms=0,
            agent_restarts=attempt.restarts,
        )


def _ref(assignment: Assignment) -> ExecutionRef:
    return ExecutionRef(execution_id=assignment.execution_id, attempt=assignment.attempt)
