"""What is asked before a step acts: chance, values, `when`."""

from __future__ import annotations

import pytest

from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from support.flow import AMBIGUOUS, BACK, NOT_SHOWN, SHOWN, Json, back, fails, repeat
from support.runs import AGENT, Recorder, run_steps, task_of
from support.shop import shop


async def test_when_is_decided_by_one_look_and_skips_as_a_success(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await run_steps(phone, clock, {"id": "t", **AMBIGUOUS, "when": NOT_SHOWN})
    assert (task.steps[0].successful, task.steps[0].detail, task.steps[0].looks) == (True, Detail.WHEN_FALSE, 1)


async def test_when_does_not_wait_for_the_app_of_the_step(clock: VirtualClock) -> None:
    step = {"id": "t", **BACK, "packageName": "com.other", "when": {"foreground": "com.other"}}
    task = await run_steps(shop(clock), clock, step)
    assert (task.steps[0].detail, clock.monotonic()) == (Detail.WHEN_FALSE, 0.0)


async def test_a_step_whose_when_holds_takes_one_look_more(clock: VirtualClock) -> None:
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "Tea"}, "when": SHOWN}
    task = await run_steps(shop(clock), clock, tap)
    assert (task.steps[0].detail, task.steps[0].looks) == (Detail.DISPATCHED_UNVERIFIED, 2)


async def test_when_and_the_action_share_the_time_of_the_step(clock: VirtualClock) -> None:
    phone = shop(clock, latency={"dump": 0.6})
    await run_steps(phone, clock, fails("f", when=SHOWN, timeoutMs=1000))
    assert clock.monotonic() == pytest.approx(1.0)


async def test_a_when_of_outputs_takes_no_look(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, back("a", when={"output": "nothing", "equals": ""}))
    assert (task.steps[0].detail, task.steps[0].looks) == (Detail.WHEN_FALSE, 0)


async def test_values_are_put_in_before_when_is_asked(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, back("a", when={"visible": {"text": "${outputs.nothing}"}}))
    assert (task.code, task.steps[0].looks) == (StepCode.VALUE_MISSING, 0)
    assert "${outputs.nothing}" in task.message


async def test_chance_is_asked_before_values_are_put_in(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", probability=0, label="${outputs.nothing}"))
    assert (task.successful, task.steps[0].detail) == (True, Detail.SKIPPED_BY_CHANCE)


async def test_an_output_can_be_used_once_it_was_extracted(clock: VirtualClock) -> None:
    read = {"id": "x", "action": "EXTRACT_TEXT", "selector": {"text": "Tea"}, "outputField": "item"}
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "${outputs.item}"}}
    phone = shop(clock)
    assert (await run_steps(phone, clock, read, tap)).successful
    assert phone.page == "detail"


async def test_a_value_that_does_not_fit_fails_the_step(clock: VirtualClock) -> None:
    read = {"id": "x", "action": "EXTRACT_TEXT", "selector": {"text": "Shop"}, "outputField": "name"}
    step = {"id": "o", "action": "BACK", "packageName": "com.${outputs.name}!"}
    task = await run_steps(shop(clock), clock, read, step)
    assert (task.code, task.failed_step_id) == (StepCode.VALUE_MISSING, "o")
    assert "packageName" in task.message


async def seeded(clock: VirtualClock, *steps: Json, seed: int) -> TaskResult:
    task = task_of(*steps).model_copy(update={"random_seed": seed})
    return await Engine(shop(clock), clock=clock).run(
        task, execution_id="e", agent_name=AGENT, observer=Recorder(), control=RunControl()
    )


async def test_probability_is_about_what_it_says(clock: VirtualClock) -> None:
    task = await seeded(clock, repeat("r", back("a", probability=30), maxIterations=150), seed=1)
    chosen = sum(each.detail is not Detail.SKIPPED_BY_CHANCE for each in task.steps if each.id == "a")
    assert 30 <= chosen <= 60


async def test_a_run_with_a_seed_can_be_replayed(clock: VirtualClock) -> None:
    delay = {"id": "d", "action": "DELAY", "minMs": 0, "maxMs": 1000}
    steps = [repeat("r", back("a", probability=50), delay, maxIterations=20)]
    first = await seeded(clock, *steps, seed=7)
    again = await seeded(clock, *steps, seed=7)
    other = await seeded(clock, *steps, seed=8)
    assert first.random_seed == 7
    assert [each.message for each in again.steps] == [each.message for each in first.steps]
    assert [each.message for each in other.steps] != [each.message for each in first.steps]


async def test_a_seed_is_drawn_and_reported_where_none_is_given(clock: VirtualClock) -> None:
    first, second = [await run_steps(shop(clock), clock, BACK) for _ in range(2)]
    assert first.random_seed is not None
    assert first.random_seed != second.random_seed
