"""WAKE: does only what is missing, sees it done, and leaves a lock screen with a secret alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone
from droidfleet_agent.driver.port import ScreenState
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.cancels import cancelled_after
from support.runs import run_step
from support.screens import PACKAGE
from support.shop import pages, shop

WAKE = {"action": "WAKE"}
AWAKE = ScreenState(on=True, locked=False, secure=False)
DARK = ScreenState(on=False, locked=False, secure=False)
LOCKED = ScreenState(on=True, locked=True, secure=False)
DARK_AND_LOCKED = ScreenState(on=False, locked=True, secure=False)


def phone_in(clock: VirtualClock, state: ScreenState) -> MemoryPhone:
    phone = shop(clock)
    phone.screen = state
    return phone


def did(phone: MemoryPhone) -> list[Call]:
    return [done.call for done in phone.done]


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        (AWAKE, []),
        (DARK, ["wake"]),
        (LOCKED, ["dismiss_lock"]),
        (DARK_AND_LOCKED, ["wake", "dismiss_lock"]),
    ],
)
async def test_only_what_is_missing_is_done_and_each_once(
    clock: VirtualClock, state: ScreenState, calls: Sequence[Call]
) -> None:
    phone = phone_in(clock, state)
    result = await run_step(phone, clock, WAKE)
    assert (result.successful, result.detail) == (True, Detail.VERIFIED)
    assert (did(phone), result.dispatched) == (calls, len(calls))
    assert (phone.screen.on, phone.screen.locked) == (True, False)


async def test_it_takes_no_look(clock: VirtualClock) -> None:
    result = await run_step(phone_in(clock, DARK_AND_LOCKED), clock, WAKE)
    assert result.looks == 0


@pytest.mark.parametrize(("on", "calls"), [(True, []), (False, ["wake"])])
async def test_a_lock_screen_with_a_secret_is_not_touched(clock: VirtualClock, on: bool, calls: Sequence[Call]) -> None:
    phone = phone_in(clock, ScreenState(on=on, locked=True, secure=True))
    result = await run_step(phone, clock, WAKE)
    assert result.code is StepCode.ACTION_FAILED
    assert "asks for a secret" in result.message
    assert "Unlock the phone by hand" in result.message
    assert did(phone) == calls
    assert clock.monotonic() == 0


async def test_a_phone_with_a_secret_that_is_not_locked_is_only_woken(clock: VirtualClock) -> None:
    phone = phone_in(clock, ScreenState(on=False, locked=False, secure=True))
    assert (await run_step(phone, clock, WAKE)).detail is Detail.VERIFIED
    assert did(phone) == ["wake"]


@pytest.mark.parametrize(
    ("state", "call", "words"), [(DARK, "wake", "stays dark"), (LOCKED, "dismiss_lock", "dismissed and stays")]
)
async def test_what_has_no_effect_is_a_failure_at_the_deadline_and_not_repeated(
    clock: VirtualClock, state: ScreenState, call: Call, words: str
) -> None:
    phone = phone_in(clock, state)
    phone.fail(call, Fault.SILENT)
    result = await run_step(phone, clock, {**WAKE, "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert words in result.message
    assert result.message.startswith("After 2000 ms: ")
    assert phone.calls.count(call) == 1
    assert clock.monotonic() == pytest.approx(2.0)


@pytest.mark.parametrize(("state", "call"), [(DARK_AND_LOCKED, "wake"), (LOCKED, "dismiss_lock")])
@pytest.mark.parametrize("fault", [Fault.FALSE, Fault.HANG, Fault.DIES_AFTER])
async def test_what_fails_or_of_which_nobody_knows_is_the_last(
    clock: VirtualClock, state: ScreenState, call: Call, fault: Fault
) -> None:
    phone = phone_in(clock, state)
    phone.fail(call, fault)
    result = await run_step(phone, clock, {**WAKE, "timeoutMs": 2000})
    assert result.code is (StepCode.ACTION_FAILED if fault is Fault.FALSE else StepCode.OUTCOME_UNKNOWN)
    assert result.dispatched == 1
    assert did(phone) == ([call] if fault is Fault.DIES_AFTER else [])


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.DIES_BEFORE])
async def test_what_did_not_happen_is_done_again(clock: VirtualClock, fault: Fault) -> None:
    phone = phone_in(clock, DARK_AND_LOCKED)
    phone.fail("wake", fault)
    phone.fail("dismiss_lock", fault)
    assert (await run_step(phone, clock, WAKE)).detail is Detail.VERIFIED
    assert did(phone) == ["wake", "dismiss_lock"]


async def test_the_way_to_the_phone_is_repaired_by_a_look_before_it_is_told_again(clock: VirtualClock) -> None:
    """The state is asked of the phone's shell, which answers also while the server that presses keys is down."""

    class Down(MemoryPhone):
        async def wake(self, *, deadline: Deadline) -> bool:
            if "dump" not in self.calls:
                self.fail("wake", Fault.DIES_BEFORE)
            return await super().wake(deadline=deadline)

    phone = Down(pages(), start="home", clock=clock)
    phone.screen = DARK
    result = await run_step(phone, clock, WAKE)
    assert (result.detail, did(phone), result.looks) == (Detail.VERIFIED, ["wake"], 1)


async def test_a_phone_that_does_not_tell_its_state_for_a_moment_is_asked_again(clock: VirtualClock) -> None:
    phone = phone_in(clock, DARK)
    phone.fail("screen_state", Fault.DIES_BEFORE, Fault.NONE, Fault.DIES_BEFORE)
    result = await run_step(phone, clock, WAKE)
    assert (result.detail, did(phone)) == (Detail.VERIFIED, ["wake"])


@pytest.mark.parametrize("faults", [[Fault.HANG], [Fault.DIES_BEFORE] * 100])
async def test_a_phone_that_never_tells_its_state_is_unavailable_and_not_touched(
    clock: VirtualClock, faults: list[Fault]
) -> None:
    phone = phone_in(clock, DARK)
    phone.fail("screen_state", *faults)
    result = await run_step(phone, clock, {**WAKE, "timeoutMs": 2000})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert "had not answered" in result.message
    assert phone.done == []
    assert clock.monotonic() == pytest.approx(2.0)


async def test_the_app_of_the_step_is_waited_for_after_the_waking(clock: VirtualClock) -> None:
    """On a dark display there is nothing to see, so the wait comes last."""
    phone = phone_in(clock, DARK)
    result = await run_step(phone, clock, {**WAKE, "packageName": PACKAGE})
    assert (result.detail, result.looks, did(phone)) == (Detail.VERIFIED, 1, ["wake"])


async def test_another_app_behind_the_lock_screen_is_a_mismatch(clock: VirtualClock) -> None:
    phone = phone_in(clock, DARK)
    result = await run_step(phone, clock, {**WAKE, "packageName": "com.other", "timeoutMs": 1000})
    assert (result.code, did(phone)) == (StepCode.PACKAGE_MISMATCH, ["wake"])


async def test_a_cancel_while_the_display_stays_dark_ends_the_wait(clock: VirtualClock) -> None:
    phone = phone_in(clock, DARK)
    phone.fail("wake", Fault.SILENT)
    task = await cancelled_after(1.0, phone, clock, WAKE)
    assert (task.code, task.steps[0].code, task.steps[0].dispatched) == (StepCode.CANCELLED, StepCode.CANCELLED, 1)
    assert clock.monotonic() < 1.2
