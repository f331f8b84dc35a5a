"""A run that is held: where, for how long, and what stands still meanwhile."""

from __future__ import annotations

import pytest

from droidfleet_agent.engine.hold import MAX_HOLD_S, RunClock
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_shared.bus.messages import ExecutionFinished, ExecutionPaused, Wanted
from droidfleet_shared.protocol.codes import StepCode
from support.assignments import SEE_SHOP, TAP_TEA, WAIT_FOR_NOTHING, assignment, document, task_text
from support.clock import HandClock, settle
from support.waiting import until
from unit.agent.test_worker import Bench, working

WAIT_S = 30.0
"""`WAIT_FOR_NOTHING`'s."""

DELAY: dict[str, object] = {"id": "delay", "action": "DELAY", "minMs": 20_000, "maxMs": 20_000}


class Held:
    """A worker with one execution, and documents that say what is wanted of it."""

    def __init__(self, bench: Bench, *steps: dict[str, object], **fields: object) -> None:
        self.bench = bench
        self._task = task_text(*steps, **fields)  # type: ignore[arg-type]  # fields of a task
        self._generation = 0

    async def want(self, wanted: Wanted) -> None:
        self._generation += 1
        self.bench.worker.want(document(self._generation, assignment("a", task=self._task, wanted=wanted)))
        await settle()

    async def attempt(self) -> Attempt:
        [attempt] = await self.bench.journal.attempts()
        return attempt

    async def result(self) -> tuple[StepCode, int]:
        await until(lambda: self.bench.worker.running is None)
        last = await self.bench.last()
        assert isinstance(last, ExecutionFinished), last
        return last.result.code, last.result.duration_ms


async def later(bench: Bench, seconds: float) -> None:
    """What is held by then, and looks again a second later."""
    await bench.clock.move(1)
    bench.clock.stand_still(seconds)
    await bench.clock.move(1)


async def test_a_wait_is_held_and_has_as_much_time_left_afterwards() -> None:
    async with working(Bench()) as bench:
        held = Held(bench, WAIT_FOR_NOTHING | {"optional": True})
        await held.want(Wanted.RUN)
        await bench.clock.move(10)
        await held.want(Wanted.PAUSE)
        await later(bench, 3_600)
        paused = await bench.last()
        assert isinstance(paused, ExecutionPaused)
        assert (paused.step_id, (await held.attempt()).paused) == ("wait", True)
        await held.want(Wanted.RUN)
        await bench.clock.move(WAIT_S - 12)
        assert (await bench.last()).kind == "ExecutionContinued"
        await bench.clock.move(4)
        code, duration_ms = await held.result()
        assert code is StepCode.OK
        assert duration_ms == pytest.approx(WAIT_S * 1_000, abs=1_000)


async def test_a_task_is_held_over_its_own_bound() -> None:
    async with working(Bench()) as bench:
        held = Held(bench, DELAY, SEE_SHOP, maxDurationMs=25_000)
        await held.want(Wanted.RUN)
        await bench.clock.move(5)
        await held.want(Wanted.PAUSE)
        await later(bench, 600)
        await held.want(Wanted.RUN)
        await bench.clock.move(17)
        assert (await held.result())[0] is StepCode.OK


async def test_what_has_acted_comes_to_its_end_before_it_is_held() -> None:
    async with working(Bench()) as bench:
        after = {"condition": {"visible": {"text": "never"}}, "timeoutMs": 5_000}
        held = Held(bench, TAP_TEA | {"after": after, "onFailure": "CONTINUE"}, SEE_SHOP)
        await held.want(Wanted.RUN)
        await held.want(Wanted.PAUSE)
        await bench.clock.move(10)
        paused = await bench.last()
        assert isinstance(paused, ExecutionPaused)
        assert (paused.step_id, (await held.attempt()).open_step) == ("", None)
        assert len(bench.phone.done) == 1


async def test_a_cancel_ends_what_is_held() -> None:
    async with working(Bench()) as bench:
        held = Held(bench, WAIT_FOR_NOTHING)
        await held.want(Wanted.RUN)
        await held.want(Wanted.PAUSE)
        await bench.clock.move(60)
        await held.want(Wanted.CANCEL)
        assert (await held.result())[0] is StepCode.CANCELLED


async def test_what_has_not_begun_does_not_begin_while_it_is_to_be_held() -> None:
    async with working(Bench()) as bench:
        held = Held(bench, TAP_TEA)
        await held.want(Wanted.PAUSE)
        assert await bench.kinds() == ["ExecutionAccepted"]
        await held.want(Wanted.RUN)
        assert (await held.result())[0] is StepCode.OK


async def test_a_hold_that_nobody_ends_ends_the_run() -> None:
    async with working(Bench()) as bench:
        held = Held(bench, WAIT_FOR_NOTHING)
        await held.want(Wanted.RUN)
        await held.want(Wanted.PAUSE)
        await bench.clock.move(10)
        assert (await held.attempt()).paused
        await later(bench, MAX_HOLD_S)
        last = await bench.last()
        assert isinstance(last, ExecutionFinished)
        assert last.result.code is StepCode.CANCELLED
        assert "held for 24 hours" in last.result.message


async def test_another_process_finds_it_held_and_goes_on_when_it_may() -> None:
    first = Bench()
    async with working(first):
        held = Held(first, WAIT_FOR_NOTHING | {"optional": True}, TAP_TEA)
        await held.want(Wanted.RUN)
        await held.want(Wanted.PAUSE)
        await first.clock.move(1)
        assert (await held.attempt()).paused
    second = Bench(first.journal)
    async with working(second):
        held.bench = second
        await held.want(Wanted.PAUSE)
        assert (await second.kinds())[-1] == "ExecutionPaused"
        await held.want(Wanted.RUN)
        assert (await second.kinds())[-3:-1] == ["ExecutionResumed", "ExecutionContinued"]
        await second.clock.move(WAIT_S + 1)
        assert (await held.result())[0] is StepCode.OK
        assert len(second.phone.done) == 1


async def test_what_broke_off_before_it_was_held_is_said_to_be_held() -> None:
    first = Bench()
    async with working(first):
        held = Held(first, WAIT_FOR_NOTHING)
        await held.want(Wanted.RUN)
    second = Bench(first.journal)
    async with working(second):
        held.bench = second
        await held.want(Wanted.PAUSE)
        assert (await second.kinds())[-1] == "ExecutionPaused"
        assert (await held.attempt()).paused


def test_the_clock_of_a_run_stands_still_and_goes_on_from_there() -> None:
    hand = HandClock()
    clock = RunClock(hand)
    deadline = clock.deadline(10)
    with clock.standing():
        hand.stand_still(100)
        assert deadline.remaining() == 10
    hand.stand_still(4)
    assert deadline.remaining() == 6
