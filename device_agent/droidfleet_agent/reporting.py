"""What the worker writes into the journal: events, cut to what the bus carries, and the observer of a run.

Never sends anything: the outbox does (`link.outbox`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from droidfleet_agent.engine.control import RunObserver
from droidfleet_agent.engine.trail import Decided, Ended
from droidfleet_agent.journal.port import Journal, JournalFullError
from droidfleet_shared.artifacts import MAX_RUN_ARTIFACT_BYTES, MAX_RUN_ARTIFACTS
from droidfleet_shared.bus.messages import (
    MAX_MESSAGE_BYTES,
    ArtifactStored,
    Event,
    ExecutionAccepted,
    ExecutionContinued,
    ExecutionFinished,
    ExecutionPaused,
    ExecutionRef,
    ExecutionRejected,
    ExecutionResumed,
    ExecutionStarted,
    StepFinished,
    StepStarted,
)
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.result import ArtifactModel, OutputValue, StepResult, TaskResult

Make = Callable[[int], Event]

KEPT_OUTPUT_CHARACTERS = 200
KEPT_STEPS = 20
"""Of a result that is far too large: enough to see what happened around its end."""

KEPT_MESSAGE_CHARACTERS = 4_000


class _Head(TypedDict):
    """What every event has (`EventBase`)."""

    agent: str
    execution_id: str
    attempt: int
    sequence: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes the events of one agent. Each method returns what `Journal` asks for: from the number to the event."""

    agent: str
    clock: Clock

    def accepted(self, ref: ExecutionRef) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionAccepted(**head(sequence))

    def rejected(self, ref: ExecutionRef, code: str, message: str) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionRejected(
            **head(sequence), code=code, message=message[:KEPT_MESSAGE_CHARACTERS]
        )

    def started(self, ref: ExecutionRef, *, random_seed: int) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionStarted(**head(sequence), random_seed=random_seed)

    def resumed(self, ref: ExecutionRef, *, restarts: int) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionResumed(**head(sequence), restarts=restarts)

    def paused(self, ref: ExecutionRef, step_id: str) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionPaused(**head(sequence), step_id=step_id)

    def continued(self, ref: ExecutionRef, step_id: str) -> Make:
        head = self._head(ref)
        return lambda sequence: ExecutionContinued(**head(sequence), step_id=step_id)

    def step_started(self, ref: ExecutionRef, step_id: str, path: str) -> Make:
        head = self._head(ref)
        return lambda sequence: StepStarted(**head(sequence), step_id=step_id, path=path)

    def artifact(self, ref: ExecutionRef, step_id: str, path: str, artifact: ArtifactModel, data: bytes) -> Make:
        head = self._head(ref)
        text = b64encode(data).decode()
        return lambda sequence: ArtifactStored(
            **head(sequence),
            step_id=step_id,
            path=path,
            artifact=artifact.model_copy(update={"inline": None}),
            data=text,
        )

    def step_finished(self, ref: ExecutionRef, result: StepResult) -> Make:
        head = self._head(ref)
        return lambda sequence: _fit_step(StepFinished(**head(sequence), result=result))

    def finished(self, ref: ExecutionRef, result: TaskResult) -> Make:
        head = self._head(ref)
        return lambda sequence: _fit_task(ExecutionFinished(**head(sequence), result=result))

    def _head(self, ref: ExecutionRef) -> Callable[[int], _Head]:
        """Of an event that happens now."""
        at = self.clock.now()
        return lambda sequence: {
            "agent": self.agent,
            "execution_id": ref.execution_id,
            "attempt": ref.attempt,
            "sequence": sequence,
            "at": at,
        }


class JournalObserver(RunObserver):
    """Writes what a run does, before it goes on. ``written`` is called after each event.

    An artifact for which there is no room, in the run's bounds or in the journal, is left out and counted: what a task
    does to a phone does not depend on pictures of it.
    """

    def __init__(self, journal: Journal, ref: ExecutionRef, reporter: Reporter, written: Callable[[], None]) -> None:
        self._journal = journal
        self._ref = ref
        self._reporter = reporter
        self._written = written
        self._open: list[tuple[str, str]] = []
        self._artifacts = 0
        self._artifact_bytes = 0
        self.left_out = 0
        """How many artifacts were not kept."""

    async def step_started(self, step_id: str, path: str) -> None:
        self._open.append((step_id, path))
        await self._journal.append(self._ref, self._reporter.step_started(self._ref, step_id, path))
        self._written()

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        await self._journal.dispatching(self._ref, step_id=step_id, path=path, ordinal=ordinal)

    async def artifact(self, artifact: ArtifactModel, data: bytes) -> None:
        if self._artifacts >= MAX_RUN_ARTIFACTS or self._artifact_bytes + len(data) > MAX_RUN_ARTIFACT_BYTES:
            self.left_out += 1
            return
        try:
            await self._journal.append(self._ref, self._reporter.artifact(self._ref, *self._open[-1], artifact, data))
        except JournalFullError:
            self.left_out += 1
            return
        self._artifacts += 1
        self._artifact_bytes += len(data)
        self._written()

    async def paused(self, step_id: str) -> None:
        await self._journal.append(self._ref, self._reporter.paused(self._ref, step_id))
        self._written()

    async def continued(self, step_id: str) -> None:
        await self._journal.append(self._ref, self._reporter.continued(self._ref, step_id))
        self._written()

    async def step_resumed(self, step_id: str, path: str) -> None:
        self._open.append((step_id, path))

    async def decided(self, decision: Decided) -> None:
        await self._journal.note(self._ref, decision)

    async def step_finished(self, ended: Ended) -> None:
        self._open.pop()
        await self._journal.append(self._ref, self._reporter.step_finished(self._ref, ended.result), trail=ended)
        self._written()

    def noted(self, result: TaskResult) -> TaskResult:
        """The result, with a word about what was left out."""
        if not self.left_out:
            return result
        note = (
            f"[{self.left_out} artifact(s) not kept: a run has {MAX_RUN_ARTIFACTS} and "
            f"{MAX_RUN_ARTIFACT_BYTES // 1_000_000} MB at most, and an agent without its broker has no room for many]"
        )
        return result.model_copy(update={"message": f"{result.message} {note}".strip()})


# Cutting: a result that the broker does not take would be lost as a whole, and would close the connection.


def _fit_step(event: StepFinished) -> StepFinished:
    for cut in (_without_inline, _without_candidates, _short_message):
        if _fits(event):
            break
        event = event.model_copy(update={"result": cut(event.result)})
    return event


def _fit_task(event: ExecutionFinished) -> ExecutionFinished:
    for name, cut in _TASK_CUTS:
        if _fits(event):
            break
        result = cut(event.result)
        message = f"{result.message} [cut to fit a message: {name}]".strip()
        event = event.model_copy(update={"result": result.model_copy(update={"message": message})})
    return event


def _fits(event: Event) -> bool:
    return len(event.encode()) <= MAX_MESSAGE_BYTES


def _without_inline(step: StepResult) -> StepResult:
    artifacts = tuple(artifact.model_copy(update={"inline": None}) for artifact in step.artifacts)
    return step.model_copy(update={"artifacts": artifacts})


def _without_candidates(step: StepResult) -> StepResult:
    return step.model_copy(update={"candidates": ()})


def _short_message(step: StepResult) -> StepResult:
    return step.model_copy(update={"message": step.message[:KEPT_MESSAGE_CHARACTERS]})


def _each_step(cut: Callable[[StepResult], StepResult]) -> Callable[[TaskResult], TaskResult]:
    return lambda result: result.model_copy(update={"steps": tuple(cut(step) for step in result.steps)})


def _short_outputs(result: TaskResult) -> TaskResult:
    return result.model_copy(update={"outputs": {name: _short_output(each) for name, each in result.outputs.items()}})


def _short_output(value: OutputValue) -> str:
    text = value if isinstance(value, str) else "\n".join(each or "" for each in value)
    kept = text[:KEPT_OUTPUT_CHARACTERS]
    return kept if kept == text else f"{kept}[cut here: {len(text) - len(kept)} characters more]"


def _last_steps(result: TaskResult) -> TaskResult:
    kept = tuple(_short_message(step) for step in result.steps[-KEPT_STEPS:])
    omitted = result.steps_omitted + len(result.steps) - len(kept)
    message = result.message[:KEPT_MESSAGE_CHARACTERS]
    return result.model_copy(update={"steps": kept, "steps_omitted": omitted, "message": message})


_TASK_CUTS: tuple[tuple[str, Callable[[TaskResult], TaskResult]], ...] = (
    ("texts of artifacts", _each_step(_without_inline)),
    ("candidates", _each_step(_without_candidates)),
    ("outputs", _short_outputs),
    (f"all but the last {KEPT_STEPS} steps", _last_steps),
)
