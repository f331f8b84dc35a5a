"""Whose turn it is, and what is assigned no more: the real worker, on a phone in memory."""

from __future__ import annotations

from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.reporting import Reporter
from droidfleet_shared.bus.messages import ExecutionFinished
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from support.assignments import AGENT, SEE_SHOP, TAP_TEA, WAIT_FOR_NOTHING, assignment, document, ref, task_text
from support.clock import settle
from support.waiting import until
from unit.agent.test_worker import Bench, working

BUSY = task_text(WAIT_FOR_NOTHING, TAP_TEA)


async def order_of_starts(bench: Bench) -> list[str]:
    return [event.execution_id for event in await bench.journal.outbox(1_000) if event.kind == "ExecutionStarted"]


async def test_the_first_of_the_document_runs_next_whatever_was_taken_on_before() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("running", task=BUSY), assignment("low")))
        await settle()
        bench.worker.want(document(2, assignment("running", task=BUSY), assignment("high"), assignment("low")))
        await settle()
        bench.worker.want(document(3, assignment("high"), assignment("low")))
        await settle()
        assert await order_of_starts(bench) == ["running", "high", "low"]


async def test_what_began_is_not_interrupted_for_what_stands_before_it() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("low", task=BUSY)))
        await settle()
        bench.worker.want(document(2, assignment("high"), assignment("low", task=BUSY)))
        await settle()
        assert await bench.kinds("high") == ["ExecutionAccepted"]
        assert (await bench.kinds("low"))[-1] == "StepStarted"


async def test_what_an_earlier_process_took_on_lets_a_more_urgent_one_go_first() -> None:
    journal = MemoryJournal()
    kept = Attempt(ref("low"), task_text(SEE_SHOP), None)
    await journal.take_on(kept, Reporter(AGENT, VirtualClock()).accepted(kept.ref))
    bench = Bench(journal)
    bench.worker.want(document(1, assignment("high"), assignment("low")))
    async with working(bench):
        await settle()
        assert await order_of_starts(bench) == ["high", "low"]


async def test_what_runs_and_is_assigned_no_more_ends_at_its_next_step_boundary() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=BUSY)))
        await settle()
        bench.worker.want(document(2, assignment("b")))
        await settle()
        ended = await bench.last("a")
        assert isinstance(ended, ExecutionFinished)
        assert (ended.attempt, ended.result.code, ended.result.acted) == (1, StepCode.CANCELLED, False)
        assert "no longer assigned" in ended.result.message
        assert bench.phone.done == []
        assert await bench.code("b") == StepCode.OK


async def test_what_waits_and_is_assigned_no_more_never_begins() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=BUSY), assignment("b", task=task_text(TAP_TEA))))
        await settle()
        bench.worker.want(document(2))
        await settle()
        ended = await bench.last("b")
        assert isinstance(ended, ExecutionFinished)
        assert (ended.result.code, ended.result.acted) == (StepCode.CANCELLED, False)
        assert (await order_of_starts(bench), bench.phone.done) == (["a"], [])


async def test_a_failing_execution_keeps_a_picture_of_its_phone() -> None:
    missing = {**WAIT_FOR_NOTHING, "timeoutMs": 100}
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(missing))))
        await settle()
        await bench.clock.move(0.2)
        # The picture is made to fit in a thread.
        await until(lambda: bench.worker.running is None)
        assert "ArtifactStored" in await bench.kinds("a")
        ended = await bench.last("a")
        assert isinstance(ended, ExecutionFinished)
        assert [each.name for each in ended.result.steps[0].artifacts] == ["failure"]
