"""An action is dispatched once, whatever dies where (protocol section 3, rule 5).

Each action of each step is driven into each way of failing; what the phone did and what the result says must agree.
"""

from __future__ import annotations

from collections import Counter

import pytest

from droidfleet_agent.driver.memory import ACTIONS, Call, Fault, MemoryPhone
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.step import ACTION_RESERVE_S
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from support.runs import Recorder, run_step, run_steps
from support.screens import PACKAGE
from support.shop import shop
from support.workbench import ASLEEP, COUNTRY, OTHER, workbench

SEARCH = {"resourceId": "search"}
STEPS: dict[str, dict[str, object]] = {
    "click": {"action": "CLICK", "selector": {"text": "Tea"}},
    "long click": {"action": "LONG_CLICK", "selector": {"text": "Tea"}, "durationMs": 300},
    "back": {"action": "BACK"},
    "back in an app": {"action": "BACK", "packageName": PACKAGE},
    "key": {"action": "KEY", "key": "HOME"},
    "input": {"action": "INPUT", "selector": SEARCH, "value": "green", "submit": True},
    "swipe": {"action": "SWIPE", "direction": "UP", "selector": {"resourceId": "rows"}},
    "scroll": {"action": "SCROLL", "selector": {"resourceId": "rows"}, "maxScrolls": 1},
    "drag": {"action": "DRAG", "selector": {"text": "Handle"}, "to": {"text": "Place"}, "durationMs": 300},
    "select option": {**COUNTRY, "option": {"text": "Sweden"}},
    "open": {"action": "OPEN", "packageName": OTHER},
    "open afresh": {"action": "OPEN", "packageName": OTHER, "stopFirst": True},
    "stop": {"action": "STOP_APP", "packageName": PACKAGE},
    "wake": {"action": "WAKE"},
}
AT_THE_SHOP = {"click", "long click", "back", "back in an app", "key", "input"}
BLIND = {"back", "key", "open", "open afresh", "stop", "wake"}
"""What needs no look at its target before it acts."""

LINES: list[tuple[str, Call]] = [
    ("click", "tap"),
    ("long click", "tap"),
    ("back", "press"),
    ("back in an app", "press"),
    ("key", "press"),
    ("input", "tap"),
    ("input", "set_focused_text"),
    ("input", "press"),
    ("swipe", "swipe"),
    ("scroll", "swipe"),
    ("drag", "drag"),
    ("select option", "tap"),
    ("select option", "swipe"),
    ("open", "start_app"),
    ("open afresh", "stop_app"),
    ("open afresh", "start_app"),
    ("stop", "stop_app"),
    ("wake", "wake"),
    ("wake", "dismiss_lock"),
]
"""Every line of the engine that tells the phone to do something, but hiding the keyboard (below)."""

every_line = pytest.mark.parametrize(("name", "call"), LINES)


def phone_for(name: str, clock: VirtualClock) -> MemoryPhone:
    phone = shop(clock) if name in AT_THE_SHOP else workbench(clock)
    if name == "wake":
        phone.screen = ASLEEP
    return phone


def effects(phone: MemoryPhone) -> Counter[Call]:
    return Counter(done.call for done in phone.done)


WHOLE: dict[str, Counter[Call]] = {
    "click": Counter({"tap": 1}),
    "long click": Counter({"tap": 1}),
    "back": Counter({"press": 1}),
    "back in an app": Counter({"press": 1}),
    "key": Counter({"press": 1}),
    "input": Counter({"tap": 1, "set_focused_text": 1, "press": 1}),
    "swipe": Counter({"swipe": 1}),
    "scroll": Counter({"swipe": 1}),
    "drag": Counter({"drag": 1}),
    "select option": Counter({"tap": 2, "swipe": 1}),
    "open": Counter({"start_app": 1}),
    "open afresh": Counter({"stop_app": 1, "start_app": 1}),
    "stop": Counter({"stop_app": 1}),
    "wake": Counter({"wake": 1, "dismiss_lock": 1}),
}


@every_line
async def test_an_action_that_the_phone_denies_is_not_repeated(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, Fault.FALSE)
    result = await run_step(phone, clock, STEPS[name])
    assert result.code is StepCode.ACTION_FAILED
    assert effects(phone)[call] == 0
    assert phone.calls.count(call) == 1


@every_line
@pytest.mark.parametrize("optional", [False, True])
async def test_a_connection_that_breaks_after_the_effect_is_an_unknown_outcome(
    clock: VirtualClock, name: str, call: Call, optional: bool
) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, Fault.DIES_AFTER)
    task = await run_steps(phone, clock, {**STEPS[name], "optional": optional}, STEPS["back"])
    assert task.code is StepCode.OUTCOME_UNKNOWN
    assert len(task.steps) == 1
    assert effects(phone)[call] == 1
    assert phone.calls.count(call) == 1


@every_line
async def test_a_phone_that_hangs_in_an_action_is_an_unknown_outcome_at_the_deadline(
    clock: VirtualClock, name: str, call: Call
) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, Fault.HANG)
    result = await run_step(phone, clock, {**STEPS[name], "timeoutMs": 2000})
    assert result.code is StepCode.OUTCOME_UNKNOWN
    assert phone.calls.count(call) == 1
    assert clock.monotonic() == pytest.approx(2.0)


@every_line
@pytest.mark.parametrize("fault", [Fault.DIES_BEFORE, Fault.REFUSED])
async def test_an_action_that_certainly_did_not_happen_is_done_on_a_new_look_once(
    clock: VirtualClock, name: str, call: Call, fault: Fault
) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, fault)
    result = await run_step(phone, clock, STEPS[name])
    assert result.successful
    assert effects(phone) == WHOLE[name]
    assert result.looks >= (0 if name in BLIND else WHOLE[name].total()) + (name not in {"open afresh", "wake"})


@every_line
async def test_a_phone_that_is_gone_when_it_must_act_is_unavailable(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, *[Fault.DIES_BEFORE] * 200)
    result = await run_step(phone, clock, {**STEPS[name], "timeoutMs": 2000})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert effects(phone)[call] == 0
    assert 1.0 <= clock.monotonic() <= 2.0  # no try is begun without the time that it takes


@every_line
async def test_a_phone_that_refuses_for_ever_fails_at_the_deadline(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, *[Fault.REFUSED] * 200)
    result = await run_step(phone, clock, {**STEPS[name], "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert effects(phone)[call] == 0
    assert 1.0 <= clock.monotonic() <= 2.0  # no try is begun without the time that it takes
    assert phone.calls.count(call) <= 21


SOMETHING_FOLLOWS = {
    ("input", "set_focused_text"),  # it is read back, and set once more (field case F10)
    ("select option", "swipe"),  # the list seems to have ended, and is scrolled the other way
}


@pytest.mark.parametrize(("name", "call"), [line for line in LINES if line not in SOMETHING_FOLLOWS])
async def test_an_action_that_the_phone_swallows_is_not_repeated(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)
    phone.fail(call, Fault.SILENT)
    await run_step(phone, clock, {**STEPS[name], "timeoutMs": 2000})
    assert phone.calls.count(call) <= WHOLE[name][call]
    assert effects(phone)[call] < WHOLE[name][call]


@every_line
async def test_nothing_is_sent_once_the_run_was_cancelled(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)
    control = RunControl()

    class Cancels(Recorder):
        async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
            control.cancel("enough")

    task = await run_steps(phone, clock, STEPS[name], control=control, observer=Cancels())
    assert task.code is StepCode.CANCELLED
    assert phone.done == []


@every_line
async def test_the_observer_has_written_it_down_before_the_phone_is_told(
    clock: VirtualClock, name: str, call: Call
) -> None:
    phone = phone_for(name, clock)

    class Strict(Recorder):
        async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
            told = sum(each in ACTIONS for each in phone.calls)
            assert told == ordinal - 1
            await super().dispatching(step_id, path, ordinal)

    strict = Strict()
    result = await run_step(phone, clock, STEPS[name], observer=strict)
    ordinals = [ordinal for word, _, ordinal in strict.heard if word == "dispatching"]
    assert ordinals == list(range(1, result.dispatched + 1))
    assert result.dispatched == WHOLE[name].total()


@every_line
async def test_what_cannot_be_written_down_is_not_done(clock: VirtualClock, name: str, call: Call) -> None:
    phone = phone_for(name, clock)

    class DiskFullError(Exception):
        pass

    class Full(RunObserver):
        async def step_started(self, step_id: str, path: str) -> None:
            pass

        async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
            if (phone.calls and call == "tap") or ordinal > list(WHOLE[name]).index(call):
                raise DiskFullError

        async def step_finished(self, ended: Ended) -> None:
            pass

    with pytest.raises(DiskFullError):
        await run_step(phone, clock, STEPS[name], observer=Full())
    assert effects(phone)[call] == 0


async def test_a_refused_dispatch_counts_and_one_that_was_never_sent_does_not(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.REFUSED, Fault.DIES_BEFORE)
    recorder = Recorder()
    result = await run_step(phone, clock, STEPS["click"], observer=recorder)
    assert result.dispatched == 2
    assert [ordinal for word, _, ordinal in recorder.heard if word == "dispatching"] == [1, 2, 3]


async def test_an_action_is_not_begun_without_time_for_its_answer(clock: VirtualClock) -> None:
    phone = shop(clock, latency={"dump": 2.0 - ACTION_RESERVE_S / 2})
    result = await run_step(phone, clock, {**STEPS["click"], "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert "Raise `timeoutMs`" in result.message
    assert phone.done == []


async def test_taps_that_were_done_are_not_done_again_after_a_refusal(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.NONE, Fault.REFUSED)
    step = {"action": "CLICK", "selector": {"text": "Shop"}, "times": 3}
    result = await run_step(phone, clock, step)
    assert result.successful
    assert effects(phone)["tap"] == 3


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.FALSE, StepCode.ACTION_FAILED),
        (Fault.DIES_AFTER, StepCode.OUTCOME_UNKNOWN),
        (Fault.HANG, StepCode.OUTCOME_UNKNOWN),
    ],
)
async def test_a_keyboard_that_cannot_be_hidden_ends_the_step_before_the_tap(
    clock: VirtualClock, fault: Fault, code: StepCode
) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    phone.fail("hide_keyboard", fault)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Add to cart"}})
    assert result.code is code
    assert effects(phone)["tap"] == 0


@pytest.mark.parametrize("fault", [Fault.DIES_BEFORE, Fault.REFUSED])
async def test_hiding_the_keyboard_is_tried_again_when_it_did_not_happen(clock: VirtualClock, fault: Fault) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    phone.fail("hide_keyboard", fault)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Add to cart"}})
    assert result.successful
    assert [done.call for done in phone.done] == ["hide_keyboard", "tap"]
