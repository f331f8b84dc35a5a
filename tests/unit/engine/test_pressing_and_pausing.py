"""KEY, LONG_CLICK and DELAY: a key, a finger that stays, and a time in which nothing is done."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import ACTIONS
from droidfleet_agent.driver.port import Key
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps.touching import DEFAULT_HOLD_MS, KeyName
from support.cancels import cancelled_after
from support.runs import run_step, run_steps
from support.screens import PACKAGE
from support.shop import shop
from support.workbench import OTHER, workbench


@pytest.mark.parametrize("name", KeyName)
async def test_every_key_of_the_protocol_is_pressed_once_without_a_look(clock: VirtualClock, name: KeyName) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "KEY", "key": name})
    assert result.detail is Detail.DISPATCHED_UNVERIFIED
    assert [(done.call, done.text) for done in phone.done] == [("press", Key[name])]
    assert phone.calls == ["press"]


async def test_a_key_for_another_app_than_the_one_in_front_is_not_pressed(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "KEY", "key": "ENTER", "packageName": OTHER, "timeoutMs": 500}
    assert (await run_step(phone, clock, step)).code is StepCode.PACKAGE_MISMATCH
    assert phone.done == []


@pytest.mark.parametrize(("given", "held"), [({}, DEFAULT_HOLD_MS), ({"durationMs": 2500}, 2500)])
async def test_a_long_click_holds_its_target_once(clock: VirtualClock, given: dict[str, int], held: int) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {"action": "LONG_CLICK", "selector": {"text": "Hold me"}, **given})
    assert (result.detail, result.looks) == (Detail.DISPATCHED_UNVERIFIED, 1)
    assert [(done.target, done.text) for done in phone.done] == [("Hold me", f"{held} ms")]


async def test_a_long_click_is_not_begun_without_the_time_to_hold(clock: VirtualClock) -> None:
    phone = workbench(clock, latency={"dump": 1.5})
    step = {"action": "LONG_CLICK", "selector": {"text": "Hold me"}, "durationMs": 1000, "timeoutMs": 2000}
    result = await run_step(phone, clock, step)
    assert result.code is StepCode.ACTION_FAILED
    assert "Raise `timeoutMs`" in result.message
    assert phone.done == []


async def test_a_disabled_target_is_not_held(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "LONG_CLICK", "selector": {"text": "Sold out"}, "timeoutMs": 500}
    assert (await run_step(phone, clock, step)).code is StepCode.TARGET_DISABLED
    assert phone.done == []


async def test_a_delay_without_a_longest_time_takes_exactly_the_shortest(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "DELAY", "minMs": 1234})
    assert (result.detail, result.looks) == (Detail.DELAYED, 0)
    assert clock.monotonic() == pytest.approx(1.234)
    assert phone.calls == []


async def test_a_delay_is_not_bound_by_the_time_of_a_step(clock: VirtualClock) -> None:
    assert (await run_step(shop(clock), clock, {"action": "DELAY", "minMs": 600_000, "timeoutMs": 100})).successful
    assert clock.monotonic() == pytest.approx(600.0)


async def test_delays_differ_and_stay_between_their_bounds() -> None:
    taken = []
    for _ in range(30):
        clock = VirtualClock()
        await run_step(shop(clock), clock, {"action": "DELAY", "minMs": 500, "maxMs": 1500})
        taken.append(clock.monotonic())
    assert all(0.5 <= seconds <= 1.5 for seconds in taken)
    assert len(set(taken)) > 10


async def test_the_tasks_bound_ends_a_delay(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, {"action": "DELAY", "minMs": 60_000}, max_duration_ms=2000)
    assert task.code is StepCode.TASK_TIMEOUT
    assert clock.monotonic() == pytest.approx(2.0)


async def test_a_cancel_ends_a_delay_at_once(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await cancelled_after(1.0, phone, clock, {"action": "DELAY", "minMs": 60_000})
    assert task.code is StepCode.CANCELLED
    assert clock.monotonic() == pytest.approx(1.0, abs=0.1)
    assert not ACTIONS & set(phone.calls)


async def test_a_delay_waits_first_for_the_app_that_it_names(clock: VirtualClock) -> None:
    step = {"action": "DELAY", "minMs": 100, "packageName": PACKAGE, "timeoutMs": 500}
    result = await run_step(workbench(clock, start="other"), clock, step)
    assert result.code is StepCode.PACKAGE_MISMATCH
