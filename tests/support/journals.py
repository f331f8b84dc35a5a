"""Every journal for the contract suite, one that fails on demand, and the events that tests write into them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from droidfleet_agent.engine.trail import Began, Decided, Ended, Entry
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Journal, Limits
from droidfleet_agent.journal.sqlite import JournalUnusableError, SqliteJournal
from droidfleet_shared.bus.messages import (
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
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import ArtifactModel, StepResult, TaskResult

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A = ExecutionRef(execution_id="a", attempt=1)
B = ExecutionRef(execution_id="b", attempt=1)


class FailingJournal(Journal):
    """`Journal` over another one. ``fails`` is asked before each call, with its name; a call that fails has changed
    nothing, and whoever made it may make it again."""

    def __init__(self, inner: Journal, *, fails: Callable[[str], bool] = lambda _call: False) -> None:
        self._inner = inner
        self.fails = fails

    async def attempts(self) -> Sequence[Attempt]:
        self._may_fail("attempts")
        return await self._inner.attempts()

    async def forgotten(self, ref: ExecutionRef) -> bool:
        self._may_fail("forgotten")
        return await self._inner.forgotten(ref)

    async def take_on(self, attempt: Attempt, make: Callable[[int], Event]) -> Event:
        self._may_fail("take_on")
        return await self._inner.take_on(attempt, make)

    async def append(self, ref: ExecutionRef, make: Callable[[int], Event], *, trail: Entry | None = None) -> Event:
        self._may_fail("append")
        return await self._inner.append(ref, make, trail=trail)

    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        self._may_fail("dispatching")
        await self._inner.dispatching(ref, step_id=step_id, path=path, ordinal=ordinal)

    async def leave(self, ref: ExecutionRef) -> None:
        self._may_fail("leave")
        await self._inner.leave(ref)

    async def note(self, ref: ExecutionRef, entry: Entry) -> None:
        self._may_fail("note")
        await self._inner.note(ref, entry)

    async def trail(self, ref: ExecutionRef) -> Sequence[Entry]:
        self._may_fail("trail")
        return await self._inner.trail(ref)

    async def outbox(self, limit: int) -> Sequence[Event]:
        self._may_fail("outbox")
        return await self._inner.outbox(limit)

    async def sent(self, events: Sequence[Event]) -> None:
        self._may_fail("sent")
        await self._inner.sent(events)

    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        self._may_fail("forget")
        await self._inner.forget(refs)

    async def close(self) -> None:
        await self._inner.close()

    def _may_fail(self, call: str) -> None:
        if self.fails(call):
            raise JournalUnusableError("JOURNAL_UNUSABLE", f"a fault: {call}.")


Open = Callable[[Limits], Journal]
JOURNALS: dict[str, Callable[[Path, Limits], Journal]] = {
    "memory": lambda _, limits: MemoryJournal(limits),
    "sqlite": SqliteJournal,
    "failing": lambda _, limits: FailingJournal(MemoryJournal(limits)),
}

Make = Callable[[int], Event]


def accepted(ref: ExecutionRef) -> Make:
    return lambda sequence: ExecutionAccepted(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW
    )


def rejected(ref: ExecutionRef) -> Make:
    return lambda sequence: ExecutionRejected(
        agent="phone",
        execution_id=ref.execution_id,
        attempt=ref.attempt,
        sequence=sequence,
        at=NOW,
        code="INVALID_TASK",
        message="no",
    )


def started(ref: ExecutionRef) -> Make:
    return lambda sequence: ExecutionStarted(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW
    )


def step_started(ref: ExecutionRef, step_id: str = "s1", path: str = "/steps/0") -> Make:
    return lambda sequence: StepStarted(
        agent="phone",
        execution_id=ref.execution_id,
        attempt=ref.attempt,
        sequence=sequence,
        at=NOW,
        step_id=step_id,
        path=path,
    )


def step_finished(ref: ExecutionRef, step_id: str = "s1", path: str = "/steps/0") -> Make:
    result = StepResult(
        id=step_id,
        action="CLICK",
        path=path,
        successful=True,
        code=StepCode.OK,
        started_at=NOW,
        duration_ms=1,
        looks=1,
        dispatched=1,
    )
    return lambda sequence: StepFinished(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW, result=result
    )


def finished(ref: ExecutionRef) -> Make:
    result = TaskResult(
        task_id="t",
        revision=1,
        agent_name="phone",
        execution_id=ref.execution_id,
        successful=True,
        code=StepCode.OK,
        started_at=NOW,
        duration_ms=1,
    )
    return lambda sequence: ExecutionFinished(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW, result=result
    )


def artifact(ref: ExecutionRef, data: str = "AAAA") -> Make:
    artifact = ArtifactModel(name="page", media_type="image/png", sha256="0" * 64, size_bytes=3)
    return lambda sequence: ArtifactStored(
        agent="phone",
        execution_id=ref.execution_id,
        attempt=ref.attempt,
        sequence=sequence,
        at=NOW,
        step_id="s1",
        path="/steps/0",
        artifact=artifact,
        data=data,
    )


async def take_on(journal: Journal, ref: ExecutionRef) -> Event:
    return await journal.take_on(Attempt(ref=ref, task="{}", start_by=None), accepted(ref))


async def ended(journal: Journal, ref: ExecutionRef) -> None:
    await take_on(journal, ref)
    await journal.append(ref, started(ref))
    await journal.append(ref, finished(ref))


def resumed(ref: ExecutionRef, restarts: int = 1) -> Make:
    return lambda sequence: ExecutionResumed(
        agent="phone",
        execution_id=ref.execution_id,
        attempt=ref.attempt,
        sequence=sequence,
        at=NOW,
        restarts=restarts,
    )


BEGAN = Began(seed=7, at=NOW)


def decision(number: int = 0) -> Decided:
    """An entry of a trail; ``number`` tells it from others."""
    return Decided(path=f"/steps/{number}", what="until", holds=False, at=NOW)


def step_end(outputs: dict[str, str] | None = None) -> Ended:
    """The entry of the step that `step_finished` reports."""
    result = StepResult(
        id="s1", action="CLICK", path="/steps/0", successful=True, code=StepCode.OK, started_at=NOW, duration_ms=1,
        looks=1, dispatched=1,
    )  # fmt: skip
    return Ended(result=result, counts_as=StepCode.OK, outputs={**(outputs or {})})


async def begun(journal: Journal, ref: ExecutionRef) -> None:
    """Takes an attempt on and begins it, with the first entry of its trail."""
    await take_on(journal, ref)
    await journal.append(ref, started(ref), trail=BEGAN)


def paused(ref: ExecutionRef) -> Make:
    return lambda sequence: ExecutionPaused(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW
    )


def continued(ref: ExecutionRef) -> Make:
    return lambda sequence: ExecutionContinued(
        agent="phone", execution_id=ref.execution_id, attempt=ref.attempt, sequence=sequence, at=NOW
    )
