"""What a failure in the tree of steps does to what follows."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import ON_FAILURE_APPLIES, Detail, StepCode
from support.flow import AMBIGUOUS, FAILS, NOT_SHOWN, SHOWN, Json, back, details, fails, group, if_, ran, repeat
from support.runs import run_steps
from support.screens import PACKAGE
from support.shop import shop


async def test_a_failure_passes_up_with_the_innermost_step_named(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, group("g", if_("i", SHOWN, [fails("f"), back("x")])), back("y"))
    assert (ran(task), task.failed_step_id) == (["f", "i", "g"], "f")
    assert {each.code for each in task.steps} == {task.code} == {StepCode.TARGET_NOT_FOUND}
    assert task.message.startswith("Step 'f': ")
    assert task.steps[-1].message == task.message


@pytest.mark.parametrize(
    ("on_failure", "expected"),
    [("CONTINUE", ["f", "x", "y"]), ({"goto": "y"}, ["f", "y"]), ("STOP", ["f"])],
)
async def test_on_failure_says_what_follows(clock: VirtualClock, on_failure: object, expected: list[str]) -> None:
    task = await run_steps(shop(clock), clock, fails("f", onFailure=on_failure), back("x"), back("y"))
    assert ran(task) == expected
    assert not task.steps[0].successful


async def test_a_task_that_went_on_after_a_failure_says_so(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", onFailure="CONTINUE"), back("x"))
    assert (task.successful, task.code, task.detail) == (True, StepCode.OK, Detail.FAILURES_CONTINUED)
    assert task.failed_step_id is None


async def test_optional_wins_over_on_failure(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", optional=True, onFailure={"goto": "y"}), back("x"), back("y"))
    assert (ran(task), task.steps[0].detail, task.detail) == (["f", "x", "y"], Detail.SKIPPED_OPTIONAL, Detail.NONE)


@pytest.mark.parametrize("on_failure", ["CONTINUE", {"goto": "y"}])
async def test_a_container_is_asked_when_a_step_in_it_failed(clock: VirtualClock, on_failure: object) -> None:
    task = await run_steps(shop(clock), clock, group("g", fails("f"), back("x"), onFailure=on_failure), back("y"))
    assert (ran(task), task.successful) == (["f", "g", "y"], True)


async def test_an_optional_container_skips_what_failed_in_it(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, group("g", fails("f"), back("x"), optional=True), back("y"))
    assert (ran(task), details(task)["g"], task.successful) == (["f", "g", "y"], Detail.SKIPPED_OPTIONAL, True)


async def test_a_failure_ends_the_rounds(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", fails("f")))
    assert (ran(task), task.code) == (["f", "r"], StepCode.TARGET_NOT_FOUND)


async def test_rounds_go_on_after_a_failure_that_is_passed_over(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", fails("f", onFailure="CONTINUE"), maxIterations=2))
    assert (ran(task), task.detail) == (["f", "f", "r"], Detail.FAILURES_CONTINUED)


TAP: Json = {"action": "CLICK", "selector": {"text": "Tea"}, "timeoutMs": 500}
FAILING: dict[StepCode, Json] = {
    StepCode.PACKAGE_MISMATCH: {**TAP, "packageName": "com.other"},
    StepCode.ACTIVITY_MISMATCH: {**TAP, "packageName": PACKAGE, "activityName": ".Other"},
    StepCode.TARGET_NOT_FOUND: FAILS,
    StepCode.TARGET_DISABLED: {**TAP, "selector": {"text": "Sold out"}},
    StepCode.TARGET_AMBIGUOUS: AMBIGUOUS,
    StepCode.CONDITION_NOT_MET: {"action": "ASSERT", "condition": NOT_SHOWN, "timeoutMs": 500},
    StepCode.ACTION_FAILED: TAP,
    StepCode.AFTER_NOT_MET: {**TAP, "after": {"condition": NOT_SHOWN, "timeoutMs": 500}},
    StepCode.OUTCOME_UNKNOWN: TAP,
    StepCode.SCREEN_UNREADABLE: TAP,
    StepCode.DEVICE_UNAVAILABLE: TAP,
    StepCode.VALUE_MISSING: {**TAP, "selector": {"text": "${outputs.nothing}"}},
}
FAULTS: dict[StepCode, tuple[Call, list[Fault]]] = {
    StepCode.ACTION_FAILED: ("tap", [Fault.FALSE]),
    StepCode.OUTCOME_UNKNOWN: ("tap", [Fault.DIES_AFTER]),
    StepCode.SCREEN_UNREADABLE: ("dump", [Fault.CUT, Fault.CUT]),
    StepCode.DEVICE_UNAVAILABLE: ("dump", [Fault.DIES_BEFORE] * 50),
}


def failing_with(code: StepCode, clock: VirtualClock) -> tuple[MemoryPhone, Json]:
    """A phone, and a step that fails on it so."""
    phone = shop(clock)
    if code in FAULTS:
        call, faults = FAULTS[code]
        phone.fail(call, *faults)
    return phone, {"id": "f", **FAILING[code]}


@pytest.mark.parametrize("code", FAILING)
@pytest.mark.parametrize("inside", [False, True], ids=["of the step", "of the container"])
async def test_on_failure_passes_over_exactly_what_is_safe(clock: VirtualClock, code: StepCode, inside: bool) -> None:
    phone, step = failing_with(code, clock)
    failing = group("g", step, onFailure="CONTINUE") if inside else {**step, "onFailure": "CONTINUE"}
    task = await run_steps(phone, clock, failing, {"id": "d", "action": "DELAY", "minMs": 0})
    assert task.steps[0].code is code
    assert ("d" in ran(task)) == (code in ON_FAILURE_APPLIES)
    assert task.code is (StepCode.OK if code in ON_FAILURE_APPLIES else code)


@pytest.mark.parametrize("code", FAILING)
@pytest.mark.parametrize("inside", [False, True], ids=["of the step", "of the container"])
async def test_optional_skips_exactly_what_ran_out_of_time(clock: VirtualClock, code: StepCode, inside: bool) -> None:
    phone, step = failing_with(code, clock)
    task = await run_steps(phone, clock, group("g", step, optional=True) if inside else {**step, "optional": True})
    skipped = code not in {
        StepCode.TARGET_AMBIGUOUS, StepCode.OUTCOME_UNKNOWN, StepCode.DEVICE_UNAVAILABLE, StepCode.VALUE_MISSING,
        StepCode.SCREEN_UNREADABLE,
    }  # fmt: skip
    assert task.steps[-1].detail is (Detail.SKIPPED_OPTIONAL if skipped else Detail.NONE)
    assert task.successful == skipped
