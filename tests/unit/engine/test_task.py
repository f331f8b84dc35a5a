"""A task as a whole: order, skips, bounds, cancel, and what is reported."""

from __future__ import annotations

import asyncio

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone
from droidfleet_agent.engine.control import RunCancelled, RunControl
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.clock import SystemClock, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.runs import Recorder, run_steps
from support.shop import shop

TEA = {"action": "CLICK", "selector": {"text": "Tea"}}
ADD = {"action": "CLICK", "selector": {"text": "Add to cart"}}
NEVER = {"action": "WAIT", "selector": {"text": "Never"}}


async def called(phone: MemoryPhone, call: Call) -> None:
    """Waits until the phone was called so."""
    async with asyncio.timeout(5):
        while call not in phone.calls:  # noqa: ASYNC110 - a phone in memory has no event for it
            await asyncio.sleep(0)


async def test_a_task_that_runs_through_is_reported_step_by_step(clock: VirtualClock) -> None:
    recorder = Recorder()
    start = clock.now()
    task = await run_steps(shop(clock, latency={"tap": 0.03, "dump": 0.12}), clock, TEA, ADD, observer=recorder)
    assert (task.successful, task.code, task.failed_step_id, task.message) == (True, StepCode.OK, None, "")
    assert (task.task_id, task.revision, task.agent_name, task.execution_id) == ("t", 1, "phone-01", "e1")
    assert [(step.id, step.path, step.action) for step in task.steps] == [
        ("s1", "/steps/0", "CLICK"),
        ("s2", "/steps/1", "CLICK"),
    ]
    assert (task.started_at, task.duration_ms) == (start, 300)
    assert [step.duration_ms for step in task.steps] == [150, 150]
    assert tuple(recorder.finished) == task.steps
    assert [word for word, _, _ in recorder.heard] == ["started", "dispatching", "finished"] * 2


async def test_the_first_failing_step_ends_the_task_with_its_code(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await run_steps(phone, clock, {"action": "CLICK", "selector": {"text": "Delete"}}, TEA)
    assert (task.successful, task.code, task.failed_step_id) == (False, StepCode.TARGET_AMBIGUOUS, "s1")
    assert len(task.steps) == 1
    assert task.message.startswith("Step 's1': ")
    assert phone.done == []


@pytest.mark.parametrize(
    "step",
    [
        NEVER,
        {"action": "CLICK", "selector": {"text": "Sold out"}},
        {**TEA, "packageName": "com.other"},
        {**TEA, "packageName": "com.example.shop", "activityName": ".Other"},
    ],
)
async def test_an_optional_step_that_runs_out_of_time_is_skipped(clock: VirtualClock, step: dict[str, object]) -> None:
    task = await run_steps(shop(clock), clock, {**step, "optional": True, "timeoutMs": 1000}, TEA)
    assert task.successful
    assert (task.steps[0].successful, task.steps[0].code) == (True, StepCode.OK)
    assert task.steps[0].detail is Detail.SKIPPED_OPTIONAL
    assert task.steps[0].message.startswith("Skipped, being optional: ")


async def test_an_optional_step_whose_action_is_denied_is_skipped(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.FALSE)
    task = await run_steps(phone, clock, {**TEA, "optional": True}, TEA)
    assert (task.successful, len(phone.done)) == (True, 1)


async def test_a_task_for_another_agent_is_refused_and_the_phone_not_asked(clock: VirtualClock) -> None:
    phone = shop(clock)
    recorder = Recorder()
    task = await run_steps(phone, clock, TEA, agent="Phone-01", observer=recorder)
    assert (task.code, task.successful, task.steps) == (StepCode.AGENT_MISMATCH, False, ())
    assert "Phone-01" in task.message
    assert phone.calls == []
    assert recorder.heard == []


async def test_the_bound_of_the_task_ends_a_step_before_its_own_deadline(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, NEVER, TEA, max_duration_ms=1500)
    assert (task.code, task.failed_step_id) == (StepCode.TASK_TIMEOUT, "s1")
    assert task.steps[0].code is StepCode.TARGET_NOT_FOUND
    assert task.steps[0].message.startswith("After 1500 ms: ")
    assert clock.monotonic() == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("latency", "step_code"),
    [
        ({"dump": 1.4}, StepCode.ACTION_FAILED),  # seen, and no time left to tap
        ({"dump": 9.0}, StepCode.DEVICE_UNAVAILABLE),  # a phone that is only slow
    ],
)
async def test_a_step_that_the_tasks_bound_left_too_little_time_is_the_tasks_timeout(
    clock: VirtualClock, latency: dict[Call, float], step_code: StepCode
) -> None:
    phone = shop(clock, latency=latency)
    task = await run_steps(phone, clock, TEA, max_duration_ms=1500)
    assert (task.code, task.steps[0].code) == (StepCode.TASK_TIMEOUT, step_code)
    assert phone.done == []


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("optional", [False, True])
async def test_a_result_is_successful_exactly_when_its_code_is_ok(
    clock: VirtualClock, fault: Fault, optional: bool
) -> None:
    phone = shop(clock)
    phone.fail("dump", fault)
    phone.fail("tap", fault)
    task = await run_steps(phone, clock, {**TEA, "optional": optional}, ADD)
    assert task.successful == (task.code is StepCode.OK)
    assert all(step.successful == (step.code is StepCode.OK) for step in task.steps)
    assert task.successful == all(step.successful for step in task.steps)


async def test_a_step_that_ends_at_its_own_deadline_keeps_its_code(clock: VirtualClock) -> None:
    assert (await run_steps(shop(clock), clock, NEVER, max_duration_ms=60_000)).code is StepCode.TARGET_NOT_FOUND


async def test_an_action_that_fails_in_time_is_not_the_tasks_timeout(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.FALSE)
    assert (await run_steps(phone, clock, TEA, max_duration_ms=1500)).code is StepCode.ACTION_FAILED


async def test_the_bound_of_the_task_ends_it_between_steps(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await run_steps(phone, clock, {**NEVER, "optional": True}, TEA, max_duration_ms=1500)
    assert (task.code, task.failed_step_id, len(task.steps)) == (StepCode.TASK_TIMEOUT, None, 1)
    assert phone.done == []


async def test_an_unknown_outcome_stays_one_when_the_tasks_time_is_up(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.HANG)
    assert (await run_steps(phone, clock, TEA, max_duration_ms=1500)).code is StepCode.OUTCOME_UNKNOWN


async def test_a_task_that_ends_in_time_is_not_timed_out(clock: VirtualClock) -> None:
    assert (await run_steps(shop(clock), clock, TEA, max_duration_ms=1000)).successful


async def test_a_cancel_is_honoured_before_the_next_step(clock: VirtualClock) -> None:
    control = RunControl()

    class Stops(Recorder):
        async def step_finished(self, ended: Ended) -> None:
            control.cancel("enough")

    phone = shop(clock)
    task = await run_steps(phone, clock, TEA, ADD, control=control, observer=Stops())
    assert (task.code, task.failed_step_id) == (StepCode.CANCELLED, None)
    assert task.message == "Cancelled before step 's2': enough"
    assert len(phone.done) == 1


async def test_a_cancel_while_an_action_is_written_down_keeps_it_from_being_sent(clock: VirtualClock) -> None:
    control = RunControl()

    class Stops(Recorder):
        async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
            control.cancel("enough")

    phone = shop(clock)
    task = await run_steps(phone, clock, TEA, ADD, control=control, observer=Stops())
    assert (task.code, task.failed_step_id) == (StepCode.CANCELLED, "s1")
    assert (phone.done, task.steps[0].dispatched) == ([], 0)


async def test_a_cancel_before_the_start_touches_nothing(clock: VirtualClock) -> None:
    control = RunControl()
    control.cancel("never mind")
    phone = shop(clock)
    assert (await run_steps(phone, clock, TEA, control=control)).code is StepCode.CANCELLED
    assert phone.calls == []


@pytest.mark.parametrize("where", ["in a pause", "in a read"])
async def test_a_cancel_ends_a_wait_at_once(where: str) -> None:
    real = SystemClock()
    phone = shop(real, start="empty", latency={"dump": 20.0} if where == "in a read" else {})
    control = RunControl()
    started = real.monotonic()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            run_steps(phone, real, {**NEVER, "timeoutMs": 30_000, "optional": True}, TEA, control=control)
        )
        await called(phone, "dump")
        control.cancel("the user asked")
    task = running.result()
    assert real.monotonic() - started < 15  # and not 20 or 30
    assert (task.code, task.failed_step_id) == (StepCode.CANCELLED, "s1")
    assert task.steps[0].code is StepCode.CANCELLED
    assert task.message == "Cancelled in step 's1': the user asked"


async def test_a_cancel_never_makes_an_outcome_unknown() -> None:
    real = SystemClock()
    phone = shop(real, latency={"tap": 0.05})
    control = RunControl()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_steps(phone, real, TEA, ADD, control=control))
        await called(phone, "tap")
        control.cancel("the user asked")
    task = running.result()
    assert [step.code for step in task.steps] == [StepCode.OK]
    assert task.code is StepCode.CANCELLED


def test_the_first_reason_of_a_cancel_stands() -> None:
    control = RunControl()
    assert (control.cancelled, control.reason) == (False, "")
    control.cancel("first")
    control.cancel("second")
    assert (control.cancelled, control.reason) == (True, "first")


async def test_a_timeout_of_somebody_else_is_not_a_cancel() -> None:
    control = RunControl()
    with pytest.raises(TimeoutError):
        async with control.interruptible(may_leave=False):
            raise TimeoutError
    control.cancel("now")
    with pytest.raises(RunCancelled):
        async with control.interruptible(may_leave=False):
            pytest.fail("the body must not begin")


async def test_a_defect_of_the_observer_ends_the_run(clock: VirtualClock) -> None:
    class BrokenError(Exception):
        pass

    class Broken(Recorder):
        async def step_started(self, step_id: str, path: str) -> None:
            raise BrokenError

    with pytest.raises(BrokenError):
        await run_steps(shop(clock), clock, TEA, observer=Broken())
