"""SWIPE and DRAG: one gesture each, between two points that one look decided."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import Call, Fault, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.screen.gestures import LEAST_LINE, inside_rim
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.windows import rotated_display
from support.cancels import cancelled_after
from support.fingers import Fingers
from support.runs import run_step
from support.screens import HEIGHT, PACKAGE, WIDTH, dump, node, window

CARD = Bounds(40, 1000, 1040, 1600)
SWIPE = {"action": "SWIPE", "direction": "LEFT"}
OVER_CARD: dict[str, object] = {**SWIPE, "selector": {"resourceId": "card"}}
HANDLE = {"text": "Handle"}
ONTO: dict[str, object] = {"action": "DRAG", "selector": HANDLE, "to": {"text": "Place"}}
DOWN_BY: dict[str, object] = {"action": "DRAG", "selector": HANDLE, "byPercent": {"y": 25}}


def phone_with(clock: VirtualClock, *, editing: bool = True) -> Fingers:
    """A page with a card to swipe away and a handle to move."""
    nodes = [
        node("", (40, 1000, 1040, 1600), node("Card", (60, 1020, 300, 1080)), resource_id=f"{PACKAGE}:id/card"),
        node("Handle", (100, 300, 300, 400), clickable=True),
        node("Place", (500, 700, 900, 900)),
    ]
    if editing:
        nodes.append(node("Edit order", (40, 100, 400, 180)))
    pages = {
        "page": Page(dump(window(*nodes)), swipes={"LEFT": "gone"}, drags={"Handle": "moved"}),
        "gone": Page(dump(window(node("No card", (40, 100, 400, 180))))),
        "moved": Page(dump(window(node("Moved", (40, 100, 400, 180))))),
    }
    return Fingers(pages, start="page", clock=clock)


async def test_a_swipe_is_dispatched_once_on_one_look(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, SWIPE)
    assert (result.successful, result.detail) == (True, Detail.DISPATCHED_UNVERIFIED)
    assert (result.looks, result.dispatched, len(phone.moved)) == (1, 1, 1)
    assert phone.page == "gone"


@pytest.mark.parametrize(
    ("direction", "across", "down"), [("LEFT", -1, 0), ("RIGHT", 1, 0), ("UP", 0, -1), ("DOWN", 0, 1)]
)
async def test_a_swipe_moves_the_finger_where_it_says(
    clock: VirtualClock, direction: str, across: int, down: int
) -> None:
    phone = phone_with(clock)
    await run_step(phone, clock, {**OVER_CARD, "direction": direction, "distancePercent": 50})
    ((x, y), (to_x, to_y)) = phone.moved[0]
    assert to_x - x == pytest.approx(500 * across, abs=1)
    assert to_y - y == pytest.approx(300 * down, abs=1)
    assert CARD.contains(x, y)
    assert CARD.contains(to_x, to_y)


async def test_a_swipe_takes_as_long_as_it_says(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    await run_step(phone, clock, {**SWIPE, "durationMs": 750})
    assert phone.times == [(750, 0)]


async def test_the_result_names_the_area_that_was_swiped(clock: VirtualClock) -> None:
    result = await run_step(phone_with(clock), clock, OVER_CARD)
    assert result.target is not None
    assert result.target.resource_id == f"{PACKAGE}:id/card"


async def test_an_area_that_is_not_there_is_not_found_at_the_deadline(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, {**SWIPE, "selector": {"resourceId": "map"}, "timeoutMs": 1500})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert '"map"' in result.message
    assert phone.moved == []
    assert clock.monotonic() == pytest.approx(1.5)


async def test_an_area_that_shows_too_little_is_not_swiped_over(clock: VirtualClock) -> None:
    phone = Fingers({"p": Page(dump(window(node("Thin", (500, 1000, 510, 1600)))))}, start="p", clock=clock)
    result = await run_step(phone, clock, {**SWIPE, "selector": {"text": "Thin"}})
    assert result.code is StepCode.ACTION_FAILED
    assert "shows too little to swipe over" in result.message
    assert (phone.moved, clock.monotonic()) == ([], 0)


async def test_two_areas_that_match_are_ambiguous(clock: VirtualClock) -> None:
    twice = window(node("A", (0, 200, 500, 700)), node("A", (0, 800, 500, 1300)))
    phone = Fingers({"p": Page(dump(twice))}, start="p", clock=clock)
    result = await run_step(phone, clock, {**SWIPE, "selector": {"text": "A"}})
    assert (result.code, len(result.candidates), phone.moved) == (StepCode.TARGET_AMBIGUOUS, 2, [])


async def test_without_a_window_nothing_is_swiped(clock: VirtualClock) -> None:
    bar = window(node("12:00", (0, 0, 100, 50)), bounds=(0, 0, WIDTH, 80), package="com.android.systemui")
    phone = Fingers({"p": Page(dump(bar))}, start="p", clock=clock)
    result = await run_step(phone, clock, {**SWIPE, "timeoutMs": 1000})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "No application window is in front." in result.message


@settings(max_examples=60, deadline=None)
@given(
    rotation=st.integers(min_value=0, max_value=3),
    direction=st.sampled_from(get_args(Direction)),
    percent=st.integers(min_value=10, max_value=90),
)
def test_a_swipe_over_the_whole_window_stays_off_the_rim(rotation: int, direction: Direction, percent: int) -> None:
    display = rotated_display(WIDTH, HEIGHT, rotation)
    whole = window(node("A", (0, 0, 100, 100)), bounds=(0, 0, display.right, display.bottom))
    clock = VirtualClock()
    phone = Fingers({"p": Page(dump(whole, rotation=rotation))}, start="p", clock=clock)
    step = {**SWIPE, "direction": direction, "distancePercent": percent}
    assert asyncio.run(run_step(phone, clock, step)).successful
    assert all(inside_rim(display).contains(*point) for point in phone.moved[0])


async def test_a_drag_is_dispatched_once_from_one_node_to_the_middle_of_the_other(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, ONTO)
    assert (result.detail, result.looks, result.dispatched) == (Detail.DISPATCHED_UNVERIFIED, 1, 1)
    assert phone.moved == [((200, 350), (700, 800))]
    assert phone.page == "moved"


async def test_the_result_of_a_drag_names_what_was_held(clock: VirtualClock) -> None:
    result = await run_step(phone_with(clock), clock, ONTO)
    assert result.target is not None
    assert result.target.text == "Handle"


async def test_a_drag_by_percent_moves_that_part_of_the_display(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    await run_step(phone, clock, {**DOWN_BY, "byPercent": {"x": 10, "y": 25}, "durationMs": 1500})
    assert phone.moved == [((200, 350), (308, 950))]
    assert phone.times == [(1500, 0)]


@pytest.mark.parametrize("by", [{"x": -20}, {"y": -15}, {"x": 90}, {"y": 90}])
async def test_a_drag_out_of_the_display_is_refused_before_anything_is_sent(
    clock: VirtualClock, by: dict[str, int]
) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, {**DOWN_BY, "byPercent": by})
    assert result.code is StepCode.ACTION_FAILED
    assert "out of the display" in result.message
    assert (result.dispatched, phone.moved, clock.monotonic()) == (0, [], 0)


@pytest.mark.parametrize(("height", "sent"), [(2 * LEAST_LINE - 2, 0), (2 * LEAST_LINE, 1)])
async def test_a_drag_to_where_the_handle_is_already_is_not_sent(clock: VirtualClock, height: int, sent: int) -> None:
    row = node("Row", (0, 300, 200, 400 + height), node("Handle", (0, 300, 200, 400)))
    phone = Fingers({"p": Page(dump(window(row)))}, start="p", clock=clock)
    result = await run_step(phone, clock, {**ONTO, "to": {"text": "Row"}})
    assert len(phone.moved) == result.dispatched == sent
    assert result.successful is (sent == 1)
    assert sent or "is at (100, 350) already" in result.message


@pytest.mark.parametrize(
    ("missing", "words"),
    [({"selector": {"text": "Grip"}}, '"Grip"'), ({"to": {"text": "Nowhere"}}, '"Nowhere"')],
)
async def test_a_drag_waits_for_both_ends(clock: VirtualClock, missing: dict[str, object], words: str) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, {**ONTO, **missing, "timeoutMs": 1500})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert words in result.message
    assert phone.moved == []
    assert clock.monotonic() == pytest.approx(1.5)


async def test_a_handle_that_is_disabled_is_not_held(clock: VirtualClock) -> None:
    pages = {"p": Page(dump(window(node("Handle", (0, 300, 200, 400), enabled=False))))}
    phone = Fingers(pages, start="p", clock=clock)
    result = await run_step(phone, clock, {**DOWN_BY, "timeoutMs": 1000})
    assert (result.code, phone.moved) == (StepCode.TARGET_DISABLED, [])


@pytest.mark.parametrize("twice", ["Handle", "Place"])
async def test_an_end_that_is_not_the_only_one_is_ambiguous(clock: VirtualClock, twice: str) -> None:
    nodes = [node("Handle", (0, 300, 200, 400)), node("Place", (0, 500, 200, 600)), node(twice, (0, 800, 200, 900))]
    phone = Fingers({"p": Page(dump(window(*nodes)))}, start="p", clock=clock)
    result = await run_step(phone, clock, ONTO)
    assert (result.code, phone.moved) == (StepCode.TARGET_AMBIGUOUS, [])


@pytest.mark.parametrize("editing", [True, False])
async def test_what_must_be_visible_decides_on_the_same_look(clock: VirtualClock, editing: bool) -> None:
    phone = phone_with(clock, editing=editing)
    step = {**ONTO, "requireVisible": {"text": "Edit order"}}
    result = await run_step(phone, clock, step)
    assert len(phone.moved) == int(editing)
    assert result.code is (StepCode.OK if editing else StepCode.TARGET_NOT_FOUND)
    assert editing or "must be visible and is not" in result.message


GESTURES: list[tuple[dict[str, object], Call]] = [(OVER_CARD, "swipe"), (ONTO, "drag"), (DOWN_BY, "drag")]
each_gesture = pytest.mark.parametrize(("step", "call"), GESTURES)


@each_gesture
async def test_a_gesture_without_an_effect_is_not_repeated(
    clock: VirtualClock, step: dict[str, object], call: Call
) -> None:
    phone = phone_with(clock)
    phone.fail(call, Fault.SILENT)
    result = await run_step(phone, clock, step)
    assert (result.detail, result.dispatched) == (Detail.DISPATCHED_UNVERIFIED, 1)
    assert len(phone.moved) == 1


@each_gesture
async def test_a_gesture_that_did_not_happen_is_decided_on_a_new_look(
    clock: VirtualClock, step: dict[str, object], call: Call
) -> None:
    phone = phone_with(clock)
    phone.fail(call, Fault.REFUSED, Fault.DIES_BEFORE)
    result = await run_step(phone, clock, step)
    looks = 3 if call == "swipe" else 5  # what is held must be at rest: two looks alike, but for the step's first
    assert (result.successful, result.looks, len(phone.done)) == (True, looks, 1)


@each_gesture
async def test_a_gesture_is_not_begun_without_the_time_that_it_takes(
    clock: VirtualClock, step: dict[str, object], call: Call
) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, {**step, "durationMs": 3000, "timeoutMs": 3000})
    assert result.code is StepCode.ACTION_FAILED
    assert "Raise `timeoutMs`" in result.message
    assert call not in phone.calls


@each_gesture
async def test_a_cancel_while_its_target_is_waited_for_sends_nothing(
    clock: VirtualClock, step: dict[str, object], call: Call
) -> None:
    phone = phone_with(clock)
    phone.show("gone")
    task = await cancelled_after(1.0, phone, clock, step)
    assert (task.code, task.steps[0].code) == (StepCode.CANCELLED, StepCode.CANCELLED)
    assert call not in phone.calls
    assert clock.monotonic() < 1.3
