"""The worker with a memory phone, a memory journal and a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from droidfleet_agent.driver.memory import Done, Fault, MemoryPhone
from droidfleet_agent.engine.trail import Began, Ended
from droidfleet_agent.journal.attempt import Attempt, Phase
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Limits
from droidfleet_agent.reconcile import MAX_CRASHES
from droidfleet_agent.reporting import Reporter
from droidfleet_agent.worker import RESEND_FIRST_S, TICK_S, Worker
from droidfleet_shared.bus.messages import Event, ExecutionFinished, ExecutionRejected, ExecutionStarted, Wanted
from droidfleet_shared.errors import ExhaustedError
from droidfleet_shared.protocol.codes import StepCode
from support.assignments import AGENT, SEE_SHOP, TAP_TEA, WAIT_FOR_NOTHING, assignment, document, ref, task_text
from support.clock import HandClock, settle
from support.controller import step_result
from support.shop import shop
from support.waiting import until

HOST = "h-1"

GROUP: dict[str, object] = {"id": "group", "action": "GROUP", "steps": [TAP_TEA]}


class Bench:
    """A worker, everything around it, and what it wrote."""

    def __init__(self, journal: MemoryJournal | None = None) -> None:
        self.clock = HandClock()
        self.phone: MemoryPhone = shop(self.clock)
        self.journal = journal or MemoryJournal()
        self.changes = 0
        self.worker = Worker(
            AGENT,
            host_id=HOST,
            phone=self.phone,
            journal=self.journal,
            clock=self.clock,
            changed=self._changed,
        )

    def _changed(self) -> None:
        self.changes += 1

    async def events(self, execution_id: str = "a") -> list[Event]:
        return [event for event in await self.journal.outbox(1000) if event.execution_id == execution_id]

    async def kinds(self, execution_id: str = "a") -> list[str]:
        return [event.kind for event in await self.events(execution_id)]

    async def last(self, execution_id: str = "a") -> Event:
        return (await self.events(execution_id))[-1]

    async def code(self, execution_id: str = "a") -> str:
        """The code that ended an execution."""
        event = await self.last(execution_id)
        if isinstance(event, ExecutionFinished):
            return event.result.code
        assert isinstance(event, ExecutionRejected)
        return event.code


@asynccontextmanager
async def working(bench: Bench, *, may_start: bool = True) -> AsyncIterator[Bench]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.worker.run(), name="worker")
        bench.worker.allow_starts(may_start)
        await settle()
        yield bench
        task.cancel()


async def test_an_assigned_execution_is_accepted_run_and_finished() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
        assert await bench.kinds() == [
            "ExecutionAccepted",
            "ExecutionStarted",
            "StepStarted",
            "StepFinished",
            "ExecutionFinished",
        ]
        assert await bench.code() == StepCode.OK
        assert [each.call for each in bench.phone.done] == ["tap"]
        assert bench.worker.generation == 1


async def test_the_same_document_again_changes_nothing() -> None:
    async with working(Bench()) as bench:
        wanted = document(1, assignment("a", task=task_text(TAP_TEA)))
        for _ in range(3):
            bench.worker.want(wanted)
            await settle()
        assert len(await bench.events()) == 5
        assert len(bench.phone.done) == 1


async def test_an_older_document_is_ignored() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(2, assignment("b")))
        bench.worker.want(document(1, assignment("a")))
        await settle()
        assert await bench.events("a") == []
        assert bench.worker.generation == 2


async def test_a_document_of_another_database_replaces_the_last_whatever_its_generation() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(500, assignment("a", task=task_text(WAIT_FOR_NOTHING, TAP_TEA)), epoch="db-1"))
        await settle()
        bench.worker.want(document(1, assignment("b"), epoch="db-2"))
        await settle()
        assert (await bench.code("a"), await bench.code("b")) == (StepCode.CANCELLED, StepCode.OK)
        assert (bench.worker.epoch, bench.worker.generation) == ("db-2", 1)


async def test_a_document_for_another_host_is_left_alone() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a"), host_id="h-2"))
        await settle()
        assert await bench.events("a") == []
        bench.worker.want(document(2, assignment("b"), host_id=HOST))
        await settle()
        assert (await bench.kinds("a"), await bench.code("b")) == ([], StepCode.OK)


async def test_nothing_begins_once_the_name_has_gone_to_another_host() -> None:
    async with working(Bench(), may_start=False) as bench:
        bench.worker.want(document(1, assignment("a"), host_id=HOST))
        await settle()
        bench.worker.want(document(2, assignment("b"), host_id="h-2"))
        bench.worker.allow_starts(True)
        await settle()
        assert (await bench.kinds("a"), await bench.kinds("b")) == (["ExecutionAccepted"], [])


async def test_executions_run_one_after_the_other_in_the_order_of_the_document() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("b"), assignment("a")))
        await settle()
        order = [event.execution_id for event in await bench.journal.outbox(100) if event.kind.startswith("Execution")]
        assert order == ["b", "a", "b", "b", "a", "a"]


async def test_nothing_starts_before_it_is_allowed_though_it_is_accepted() -> None:
    async with working(Bench(), may_start=False) as bench:
        bench.worker.want(document(1, assignment("a")))
        await settle()
        assert await bench.kinds() == ["ExecutionAccepted"]
        bench.worker.allow_starts(True)
        await settle()
        assert await bench.code() == StepCode.OK


async def test_a_task_for_another_agent_is_refused_and_the_phone_left_alone() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA, agent="Phone-01"))))
        await settle()
        assert (await bench.kinds(), await bench.code()) == (["ExecutionRejected"], StepCode.AGENT_MISMATCH)
        assert bench.phone.calls == []


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"schemaVersion": 2}'])
async def test_an_invalid_task_is_refused_with_its_errors(text: str) -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=text)))
        await settle()
        assert (await bench.kinds(), await bench.code()) == (["ExecutionRejected"], StepCode.INVALID_TASK)


async def test_a_refused_execution_does_not_hold_up_the_next() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task="?"), assignment("b")))
        await settle()
        assert await bench.code("b") == StepCode.OK


async def test_a_cancel_ends_a_wait_at_once() -> None:
    async with working(Bench()) as bench:
        waiting = task_text(WAIT_FOR_NOTHING, TAP_TEA)
        bench.worker.want(document(1, assignment("a", task=waiting)))
        await bench.clock.move(1)
        assert bench.worker.running == ref("a")
        bench.worker.want(document(2, assignment("a", task=waiting, wanted=Wanted.CANCEL)))
        await settle()
        assert await bench.code() == StepCode.CANCELLED
        assert bench.phone.done == []
        assert bench.worker.running is None


async def test_a_cancel_of_what_never_began_is_answered_as_cancelled() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING)), assignment("b")))
        await settle()
        bench.worker.want(
            document(2, assignment("a", task=task_text(WAIT_FOR_NOTHING)), assignment("b", wanted=Wanted.CANCEL))
        )
        await settle()
        assert await bench.kinds("b") == ["ExecutionAccepted", "ExecutionFinished"]
        assert await bench.code("b") == StepCode.CANCELLED


async def test_what_is_taken_out_of_the_document_is_stopped() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        await settle()
        bench.worker.want(document(2))
        await settle()
        assert await bench.code() == StepCode.CANCELLED


async def test_an_execution_that_cannot_start_in_time_is_refused_as_expired() -> None:
    async with working(Bench(), may_start=False) as bench:
        wanted = document(1, assignment("a", start_within_s=60), assignment("b"))
        bench.worker.want(wanted)
        await bench.clock.move(59)
        assert await bench.kinds() == ["ExecutionAccepted"]
        # Read once more, as every minute: the time goes on from the first reading.
        bench.worker.want(wanted)
        await bench.clock.move(1 + TICK_S)
        assert (await bench.kinds(), await bench.code()) == (
            ["ExecutionAccepted", "ExecutionRejected"],
            "START_EXPIRED",
        )
        bench.worker.allow_starts(True)
        await settle()
        assert bench.worker.running is None
        assert await bench.code("b") == StepCode.OK


async def test_a_limit_on_the_start_is_no_limit_on_the_run() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING), start_within_s=5)))
        await bench.clock.move(20)
        assert bench.worker.running == ref("a")


async def test_a_recorded_result_is_forgotten_and_never_runs_again() -> None:
    async with working(Bench()) as bench:
        wanted = assignment("a", task=task_text(TAP_TEA))
        bench.worker.want(document(1, wanted))
        await settle()
        bench.worker.want(document(2, recorded=[ref("a")]))
        await settle()
        assert list(await bench.journal.attempts()) == []
        bench.worker.want(document(3, wanted))
        await settle()
        assert len(bench.phone.done) == 1
        assert list(await bench.journal.attempts()) == []


async def test_a_result_that_is_not_recorded_is_sent_again_at_growing_distances() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a")))
        await settle()
        last = await bench.last()
        bench.worker.sent(last)
        await bench.clock.move(RESEND_FIRST_S - 1)
        assert bench.worker.again() == ()
        await bench.clock.move(1 + TICK_S)
        assert bench.worker.again() == (last,)
        bench.worker.sent(last)
        assert bench.worker.again() == ()
        await bench.clock.move(2 * RESEND_FIRST_S - TICK_S - 1)
        assert bench.worker.again() == ()
        await bench.clock.move(1 + 2 * TICK_S)
        assert bench.worker.again() == (last,)


async def test_a_result_that_is_recorded_is_not_sent_again() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a")))
        await settle()
        bench.worker.sent(await bench.last())
        bench.worker.want(document(2, recorded=[ref("a")]))
        await bench.clock.move(10 * RESEND_FIRST_S)
        assert bench.worker.again() == ()


async def test_an_action_is_announced_in_the_journal_before_the_phone_is_touched() -> None:
    bench = Bench()
    seen: list[tuple[int, int]] = []
    announce = bench.journal.dispatching

    async def dispatching(*args: object, **kwargs: object) -> None:
        await announce(*args, **kwargs)  # type: ignore[arg-type]  # passed on as it came
        [kept] = await bench.journal.attempts()
        assert kept.open_step is not None
        seen.append((kept.open_step.dispatched, len(bench.phone.done)))

    bench.journal.dispatching = dispatching  # type: ignore[method-assign]  # a spy
    async with working(bench):
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
    assert seen == [(1, 0)]
    assert bench.phone.done == [Done("tap", target="Tea", point=bench.phone.done[0].point)]


async def test_the_start_is_reported_with_the_seed_of_the_run() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a"), assignment("b", task=task_text(randomSeed=7))))
        await settle()
        drawn, given = (await bench.events("a"))[1], (await bench.events("b"))[1]
        assert isinstance(drawn, ExecutionStarted)
        assert isinstance(given, ExecutionStarted)
        assert drawn.random_seed is not None
        assert given.random_seed == 7


async def test_a_long_loop_without_a_broker_keeps_the_journal_small() -> None:
    rounds: list[dict[str, object]] = [
        {"id": f"s{number}", "action": "WAIT", "selector": {"text": "Shop"}} for number in range(150)
    ]
    async with working(Bench(MemoryJournal(Limits(progress=40)))) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(*rounds))))
        await until(lambda: bench.worker.generation == 1 and bench.worker.running is None)
        [attempt] = await bench.journal.attempts()
        assert (len(await bench.events()), attempt.unsent) == (43, 260)
        assert await bench.code() == StepCode.OK


async def _crashed(bench: Bench, *, in_action: bool) -> MemoryJournal:
    """The journal that a process leaves which dies in a step."""
    reporter = Reporter(AGENT, bench.clock)
    journal = bench.journal
    await journal.take_on(Attempt(ref("a"), task_text(TAP_TEA), None), reporter.accepted(ref("a")))
    began = Began(seed=1, at=bench.clock.now())
    await journal.append(ref("a"), reporter.started(ref("a"), random_seed=1), trail=began)
    await journal.append(ref("a"), reporter.step_started(ref("a"), "tea", "/steps/0"))
    if in_action:
        await journal.dispatching(ref("a"), step_id="tea", path="/steps/0", ordinal=1)
    return journal


async def test_an_action_that_a_crash_broke_off_is_unknown_and_never_repeated() -> None:
    journal = await _crashed(Bench(), in_action=True)
    async with working(Bench(journal)) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
        # The picture of the failure is made in a thread.
        await until(lambda: bench.worker.running is None)
        assert await bench.code() == StepCode.OUTCOME_UNKNOWN
        assert bench.phone.done == []


async def test_a_step_that_a_crash_broke_off_before_its_action_is_done_once_and_the_result_says_so() -> None:
    journal = await _crashed(Bench(), in_action=False)
    async with working(Bench(journal)) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
        last = await bench.last()
        assert isinstance(last, ExecutionFinished)
        assert (last.result.code, last.result.agent_restarts) == (StepCode.OK, 1)
        assert "ExecutionResumed" in await bench.kinds()
        assert [each.call for each in bench.phone.done] == ["tap"]


@pytest.mark.parametrize(
    ("ended", "code", "failed"), [(False, StepCode.OUTCOME_UNKNOWN, "tea"), (True, StepCode.OK, None)]
)
async def test_after_a_crash_in_a_container_it_goes_on_where_it_was(
    ended: bool, code: StepCode, failed: str | None
) -> None:
    bench = Bench()
    reporter, journal, text = Reporter(AGENT, bench.clock), bench.journal, task_text(GROUP)
    began = Began(seed=1, at=bench.clock.now())
    await journal.take_on(Attempt(ref("a"), text, None), reporter.accepted(ref("a")))
    await journal.append(ref("a"), reporter.started(ref("a"), random_seed=1), trail=began)
    await journal.append(ref("a"), reporter.step_started(ref("a"), "group", "/steps/0"))
    await journal.append(ref("a"), reporter.step_started(ref("a"), "tea", "/steps/0/steps/0"))
    await journal.dispatching(ref("a"), step_id="tea", path="/steps/0/steps/0", ordinal=1)
    if ended:
        result = step_result("tea").model_copy(update={"path": "/steps/0/steps/0"})
        await journal.append(
            ref("a"), reporter.step_finished(ref("a"), result), trail=Ended(result=result, counts_as=StepCode.OK)
        )
    async with working(Bench(journal)) as bench:
        bench.worker.want(document(1, assignment("a", task=text)))
        await settle()
        last = await bench.last()
        assert isinstance(last, ExecutionFinished)
        assert (last.result.code, last.result.failed_step_id) == (code, failed)
        assert bench.phone.done == []


async def test_what_broke_off_and_is_cancelled_meanwhile_is_not_gone_on_with() -> None:
    journal = await _crashed(Bench(), in_action=False)
    async with working(Bench(journal)) as bench:
        bench.worker.want(document(2))
        await settle()
        assert await bench.code() == StepCode.CANCELLED
        assert bench.phone.done == []


async def test_a_result_of_an_earlier_process_is_sent_again_until_it_is_recorded() -> None:
    journal = await _crashed(Bench(), in_action=True)
    async with working(Bench(journal)) as second:
        second.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
    await journal.sent(await journal.outbox(100))
    async with working(Bench(journal)) as bench:
        await bench.clock.move(RESEND_FIRST_S + TICK_S)
        assert [event.kind for event in bench.worker.again()] == ["ExecutionFinished"]


async def test_a_limit_on_the_start_outlives_a_restart() -> None:
    first = Bench()
    async with working(first, may_start=False):
        first.worker.want(document(1, assignment("a", start_within_s=60)))
        await settle()
    second = Bench(first.journal)
    await second.clock.move(61)
    async with working(second):
        second.worker.want(document(1, assignment("a", start_within_s=60)))
        await settle()
        assert await second.code() == "START_EXPIRED"


@pytest.mark.parametrize("ahead_s", [86_400.0, -86_400.0])
async def test_a_wall_clock_that_is_set_between_two_processes_changes_no_limit(ahead_s: float) -> None:
    first = Bench()
    async with working(first, may_start=False):
        first.worker.want(document(1, assignment("a", start_within_s=60), assignment("b", start_within_s=20)))
        await settle()
    second = Bench(first.journal)
    second.clock.ahead_s = ahead_s
    await second.clock.move(30)
    async with working(second):
        second.worker.want(document(1, assignment("a", start_within_s=60), assignment("b", start_within_s=20)))
        await settle()
        assert (await second.code("a"), await second.code("b")) == (StepCode.OK, "START_EXPIRED")


@pytest.mark.parametrize("ahead_s", [86_400.0, -86_400.0])
async def test_a_wall_clock_that_is_set_in_mid_run_changes_no_bound_of_the_task(ahead_s: float) -> None:
    text = task_text(WAIT_FOR_NOTHING, TAP_TEA, maxDurationMs=60_000)
    journal: MemoryJournal | None = None
    for process in range(3):
        bench = Bench(journal)
        journal = bench.journal
        await bench.clock.move(25 * process)
        bench.clock.ahead_s = ahead_s * process
        async with working(bench):
            bench.worker.want(document(1, assignment("a", task=text)))
            await bench.clock.move(5)
            assert await bench.kinds() == [*(await bench.kinds())[:-1], "StepStarted"]
            if process < 2:
                await bench.worker.leave("the agent is stopping.")
            else:
                await bench.clock.move(6)
                assert await bench.code() == StepCode.TASK_TIMEOUT


async def test_a_defect_of_the_engine_ends_one_execution_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()

    async def broken(*_args: object, **_options: object) -> None:
        raise ZeroDivisionError

    async with working(bench):
        with monkeypatch.context() as patch:
            patch.setattr(bench.worker._engine, "run", broken)
            bench.worker.want(document(1, assignment("a")))
            await settle()
        assert await bench.code("a") == StepCode.AGENT_RESTARTED
        bench.worker.want(document(2, assignment("b")))
        await settle()
        assert await bench.code("b") == StepCode.OK


async def test_a_journal_that_cannot_be_written_ends_the_worker_before_the_phone_is_touched() -> None:
    bench = Bench()

    async def full(*_args: object, **_options: object) -> Event:
        raise ExhaustedError("DISK_FULL", "no space")

    bench.journal.append = full  # type: ignore[method-assign]  # a fault
    bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
    bench.worker.allow_starts(True)
    with pytest.raises(ExceptionGroup):
        await bench.worker.run()
    assert bench.phone.done == []


async def test_a_broken_connection_in_an_action_is_reported_as_unknown_and_not_repeated() -> None:
    bench = Bench()
    bench.phone.fail("tap", Fault.DIES_AFTER)
    async with working(bench):
        bench.worker.want(document(1, assignment("a", task=task_text(TAP_TEA))))
        await settle()
        assert await bench.code() == StepCode.OUTCOME_UNKNOWN
        assert len(bench.phone.done) == 1


async def test_stopping_ends_what_runs_and_begins_nothing_more() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING)), assignment("b")))
        await settle()
        await bench.worker.stop("the agent is stopping.")
        await settle()
        assert await bench.code("a") == StepCode.AGENT_RESTARTED
        assert await bench.kinds("b") == ["ExecutionAccepted"]


async def test_a_cancel_before_the_agent_stops_stays_a_cancel() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        await settle()
        bench.worker.want(document(2, assignment("a", wanted=Wanted.CANCEL)))
        await settle()
        await bench.worker.stop("the agent is stopping.")
        assert await bench.code("a") == StepCode.CANCELLED


async def test_what_is_left_is_gone_on_with_by_the_next_process() -> None:
    first = Bench()
    async with working(first):
        first.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING, TAP_TEA)), assignment("b")))
        await settle()
        await first.worker.leave("the agent is stopping.")
        assert (first.worker.running, await first.kinds("b")) == (ref("a"), ["ExecutionAccepted"])
        [left, _] = await first.journal.attempts()
        assert (left.phase, left.open_step and left.open_step.dispatched) == (Phase.RUNNING, 0)
    async with working(Bench(first.journal)) as second:
        second.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING, TAP_TEA)), assignment("b")))
        await second.clock.move(60)
        [finished] = [event for event in await second.events("a") if isinstance(event, ExecutionFinished)]
        assert (finished.result.agent_restarts, finished.result.failed_step_id) == (1, WAIT_FOR_NOTHING["id"])
        assert await second.code("b") == StepCode.OK


async def test_a_run_survives_more_orderly_ends_than_it_would_crashes() -> None:
    bench = Bench()
    wanted = document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING, TAP_TEA)))
    for _ in range(MAX_CRASHES + 2):
        async with working(bench):
            bench.worker.want(wanted)
            await settle()
            await bench.worker.leave("an upgrade.")
        bench = Bench(bench.journal)
    async with working(bench):
        bench.worker.want(wanted)
        await bench.clock.move(60)
        [finished] = [event for event in await bench.events("a") if isinstance(event, ExecutionFinished)]
    assert (finished.result.agent_restarts, finished.result.failed_step_id) == (MAX_CRASHES + 2, WAIT_FOR_NOTHING["id"])


async def test_a_step_that_acted_goes_on_to_its_end_before_the_run_is_left() -> None:
    after = {"condition": {"visible": {"text": "never"}}, "timeoutMs": 4_000}
    tap: dict[str, object] = {**TAP_TEA, "after": after, "onFailure": "CONTINUE"}
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(tap, SEE_SHOP))))
        await settle()
        async with asyncio.TaskGroup() as group:
            leaving = group.create_task(bench.worker.leave("the agent is stopping."))
            await bench.clock.move(3)
            assert not leaving.done()
            await bench.clock.move(2)
            assert leaving.done()
        assert (await bench.kinds())[-1] == "StepFinished"
        [left] = await bench.journal.attempts()
        assert (left.phase, left.open_step) == (Phase.RUNNING, None)
        assert len(bench.phone.done) == 1


async def test_a_cancel_of_what_was_left_is_answered() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(document(1, assignment("a", task=task_text(WAIT_FOR_NOTHING))))
        await settle()
        await bench.worker.leave("the agent is stopping.")
        bench.worker.want(document(2, assignment("a", wanted=Wanted.CANCEL)))
        await settle()
        assert (await bench.code("a"), bench.worker.running) == (StepCode.CANCELLED, None)


async def test_attempts_are_in_their_phases_while_one_runs() -> None:
    async with working(Bench()) as bench:
        bench.worker.want(
            document(
                1,
                assignment("a", task=task_text(SEE_SHOP)),
                assignment("b", task=task_text(WAIT_FOR_NOTHING)),
                assignment("c"),
            )
        )
        await settle()
        assert [attempt.phase for attempt in await bench.journal.attempts()] == [
            Phase.ENDED,
            Phase.RUNNING,
            Phase.ACCEPTED,
        ]
