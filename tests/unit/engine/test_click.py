"""CLICK and BACK."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.runs import run_step, run_steps
from support.screens import HEIGHT, PACKAGE, WIDTH, dump, node, window
from support.shop import button, shop

ADD = {"action": "CLICK", "selector": {"text": "Add to cart"}}


async def test_a_click_taps_the_middle_of_the_visible_part(clock: VirtualClock) -> None:
    page = Page(dump(window(button("Half", 2350))))
    phone = MemoryPhone({"p": page}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Half"}})
    assert result.detail is Detail.DISPATCHED_UNVERIFIED
    assert phone.done[0].point == (240, 2375)


async def test_a_label_that_is_not_clickable_is_tapped_inside_its_row(clock: VirtualClock) -> None:
    row = node("", (0, 300, 1080, 400), node("Wi-Fi", (40, 320, 300, 380)), clickable=True, description="row")
    phone = MemoryPhone(
        {"p": Page(dump(window(row)), taps={"row": "on"}), "on": Page(dump(window()))}, start="p", clock=clock
    )
    assert (await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Wi-Fi"}})).successful
    assert phone.page == "on"


async def test_several_taps_are_dispatched_at_their_interval_on_one_look(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "CLICK", "selector": {"text": "Shop"}, "times": 4, "intervalMs": 250}
    result = await run_step(phone, clock, step)
    assert (result.dispatched, result.looks, len(phone.done)) == (4, 1, 4)
    assert clock.monotonic() == pytest.approx(0.75)


async def test_a_tap_among_several_that_is_denied_ends_the_step(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.NONE, Fault.FALSE)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Shop"}, "times": 3})
    assert result.code is StepCode.ACTION_FAILED
    assert (result.dispatched, len(phone.done)) == (2, 1)


async def test_unless_visible_skips_as_success_on_the_deciding_look(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "CLICK", "selector": {"text": "Nothing of the kind"}, "unlessVisible": {"text": "Delete"}}
    result = await run_step(phone, clock, step)
    assert (result.successful, result.detail, result.looks) == (True, Detail.ALREADY_VISIBLE, 1)
    assert result.target is None
    assert phone.done == []


async def test_unless_visible_is_no_reason_to_stop_between_two_taps(clock: VirtualClock) -> None:
    """What the first tap brought up must not count when the second one is looked for again."""
    phone = shop(clock)
    phone.fail("tap", Fault.NONE, Fault.REFUSED)
    step = {"action": "CLICK", "selector": {"text": "Tea"}, "times": 2, "unlessVisible": {"text": "Green tea"}}
    result = await run_step(phone, clock, {**step, "timeoutMs": 500})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert len(phone.done) == 1


async def test_unless_visible_that_is_absent_changes_nothing(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "CLICK", "selector": {"text": "Tea"}, "unlessVisible": {"text": "Green tea"}}
    result = await run_step(phone, clock, step)
    assert (result.detail, len(phone.done)) == (Detail.DISPATCHED_UNVERIFIED, 1)


async def test_the_keyboard_is_hidden_from_a_button_that_it_covers_and_the_page_stays(clock: VirtualClock) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    result = await run_step(phone, clock, ADD)
    assert result.successful
    assert [(done.call, done.target) for done in phone.done] == [("hide_keyboard", ""), ("tap", "Add to cart")]
    assert phone.page == "cart"
    assert result.dispatched == 2


async def test_the_keyboard_of_a_rotated_phone_covers_its_whole_width(clock: VirtualClock) -> None:
    root = window(button("Pay", 900, left=2000), bounds=(0, 0, HEIGHT, WIDTH))
    phone = MemoryPhone({"p": Page(dump(root, rotation=1))}, start="p", clock=clock)
    phone.keyboard_open = True
    assert (await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}})).successful
    assert [(done.call, done.target) for done in phone.done] == [("hide_keyboard", ""), ("tap", "Pay")]


@pytest.mark.parametrize("rotation", [1, 3])
async def test_a_target_is_clipped_in_the_frame_of_the_rotated_phone(clock: VirtualClock, rotation: int) -> None:
    """Upright, all of it would lie outside the display (field case F15)."""
    whole = (0, 0, HEIGHT, WIDTH)
    pay = node("Pay", (2000, 900, 2600, 1300), clickable=True)
    phone = MemoryPhone({"p": Page(dump(window(pay, bounds=whole), rotation=rotation))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}})
    assert phone.done[0].point == (2200, 990)
    assert result.target is not None
    assert (result.target.bounds.right, result.target.bounds.bottom) == (HEIGHT, WIDTH)


async def test_a_keyboard_beside_the_button_is_left_alone(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.keyboard_open = True
    await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Tea"}})
    assert [done.call for done in phone.done] == ["tap"]
    assert "keyboard_shown" not in phone.calls


async def test_a_keyboard_window_that_the_phone_calls_hidden_is_not_hidden_again(clock: VirtualClock) -> None:
    keys = window(bounds=(0, 1500, 1080, 2400), package="com.android.inputmethod.latin")
    page = Page(dump(window(button("Pay", 2000)), keys))
    phone = MemoryPhone({"p": page}, start="p", clock=clock)
    assert (await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}})).successful
    assert [done.call for done in phone.done] == ["tap"]


async def test_a_keyboard_that_stays_ends_in_a_failure_without_a_tap_on_its_keys(clock: VirtualClock) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    phone.fail("hide_keyboard", Fault.SILENT)
    result = await run_step(phone, clock, ADD)
    assert result.code is StepCode.ACTION_FAILED
    assert "keyboard" in result.message
    assert phone.done == []
    assert phone.calls.count("hide_keyboard") == 1


async def test_a_phone_that_does_not_say_whether_its_keyboard_is_shown_is_asked_again(clock: VirtualClock) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    phone.fail("keyboard_shown", Fault.DIES_BEFORE)
    assert (await run_step(phone, clock, ADD)).successful
    assert phone.page == "cart"


async def test_back_is_pressed_once_without_a_look(clock: VirtualClock) -> None:
    phone = shop(clock, start="cart")
    result = await run_step(phone, clock, {"action": "BACK"})
    assert (result.looks, result.dispatched, result.detail) == (0, 1, Detail.DISPATCHED_UNVERIFIED)
    assert phone.page == "detail"


async def test_back_waits_for_its_app(clock: VirtualClock) -> None:
    phone = shop(clock, start="cart")
    result = await run_step(phone, clock, {"action": "BACK", "packageName": "com.other", "timeoutMs": 500})
    assert result.code is StepCode.PACKAGE_MISMATCH
    assert phone.done == []
    assert (await run_step(phone, clock, {"action": "BACK", "packageName": PACKAGE})).successful


async def test_steps_act_in_the_order_of_the_array(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await run_steps(
        phone,
        clock,
        {"action": "CLICK", "selector": {"text": "Tea"}},
        ADD,
        {"action": "WAIT", "selector": {"text": "In your cart"}},
        {"action": "BACK"},
    )
    assert task.successful
    assert phone.page == "detail"
