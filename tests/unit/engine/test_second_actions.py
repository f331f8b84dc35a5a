"""What was done before a fault stays done once, in the steps that tell the phone several things."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.cancels import cancelled_after
from support.runs import run_step
from support.workbench import COUNTRY, workbench

SCROLL: dict[str, object] = {"action": "SCROLL", "selector": {"resourceId": "rows"}, "until": {"text": "Row 6"}}
NORWAY: dict[str, object] = {**COUNTRY, "option": {"text": "Norway"}}
SWEDEN: dict[str, object] = {**COUNTRY, "option": {"text": "Sweden"}}

second_action = pytest.mark.parametrize(
    ("step", "call"), [(SCROLL, "swipe"), (NORWAY, "tap"), (SWEDEN, "tap")], ids=["scroll", "in sight", "scrolled to"]
)


def did(phone: MemoryPhone, call: Call) -> int:
    return sum(done.call == call for done in phone.done)


@second_action
@pytest.mark.parametrize("fault", [Fault.FALSE, Fault.HANG, Fault.DIES_AFTER])
async def test_a_second_action_that_fails_or_of_which_nobody_knows_is_the_last(
    clock: VirtualClock, step: dict[str, object], call: Call, fault: Fault
) -> None:
    phone = workbench(clock)
    phone.fail(call, Fault.NONE, fault)
    result = await run_step(phone, clock, {**step, "timeoutMs": 3000})
    assert result.code is (StepCode.ACTION_FAILED if fault is Fault.FALSE else StepCode.OUTCOME_UNKNOWN)
    assert phone.calls.count(call) == 2
    assert did(phone, call) == (2 if fault is Fault.DIES_AFTER else 1)


@second_action
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.DIES_BEFORE])
async def test_a_second_action_that_did_not_happen_is_done_again_and_the_first_is_not(
    clock: VirtualClock, step: dict[str, object], call: Call, fault: Fault
) -> None:
    phone = workbench(clock)
    phone.fail(call, Fault.NONE, fault, fault)
    result = await run_step(phone, clock, step)
    assert result.successful
    assert did(phone, call) == 2


async def test_a_second_scroll_that_is_swallowed_reads_as_the_end(clock: VirtualClock) -> None:
    phone = workbench(clock)
    phone.fail("swipe", Fault.NONE, Fault.SILENT)
    result = await run_step(phone, clock, SCROLL)
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "the end was reached after 2 scrolls" in result.message
    assert phone.calls.count("swipe") == 2


@pytest.mark.parametrize("step", [NORWAY, SWEDEN])
async def test_a_tap_on_an_option_that_is_swallowed_is_never_called_verified(
    clock: VirtualClock, step: dict[str, object]
) -> None:
    phone = workbench(clock)
    phone.fail("tap", Fault.NONE, Fault.SILENT)
    result = await run_step(phone, clock, {**step, "timeoutMs": 3000})
    assert result.code is StepCode.ACTION_FAILED
    assert "has not closed" in result.message
    assert phone.calls.count("tap") == 2
    assert clock.monotonic() == pytest.approx(3.0)


async def test_the_looks_and_actions_of_an_option_are_counted(clock: VirtualClock) -> None:
    """The opener; the list open; the option in sight, and twice at one place; the opener again."""
    result = await run_step(workbench(clock), clock, NORWAY)
    assert (result.detail, result.looks, result.dispatched) == (Detail.VERIFIED, 6, 2)


@pytest.mark.parametrize(("seconds", "taps"), [(0.1, 0), (0.5, 1), (1.25, 2)])
async def test_a_cancel_ends_a_choice_after_what_was_sent(clock: VirtualClock, seconds: float, taps: int) -> None:
    phone = workbench(clock, latency={"dump": 0.2, "tap": 0.05})
    task = await cancelled_after(seconds, phone, clock, NORWAY)
    assert (task.code, task.steps[0].dispatched, did(phone, "tap")) == (StepCode.CANCELLED, taps, taps)
    assert clock.monotonic() == pytest.approx(seconds, abs=0.1)
