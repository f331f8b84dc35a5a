"""Where the finger of a scroll goes: inside the container, off the display's rim, and slowly."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import KEYBOARD_SHARE, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.screen.gestures import inside_rim
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.windows import rotated_display
from support.fingers import Fingers
from support.runs import run_step
from support.screens import HEIGHT, WIDTH, Rectangle, dump, node, window

LIST = (0, 400, WIDTH, 2000)
DOWN = {"action": "SCROLL"}
HERE = {**DOWN, "selector": {"resourceId": "here"}}


def phone_with(clock: VirtualClock, *nodes: Node) -> Fingers:
    """A phone whose page stays as it is, whatever finger moves on it."""
    return Fingers({"p": Page(dump(window(*nodes)))}, start="p", clock=clock)


def listed(*children: Node, bounds: Rectangle = LIST) -> Node:
    return node("", bounds, *children, resource_id="here", scrollable=True)


@st.composite
def rectangles(draw: st.DrawFn) -> Rectangle:
    left, top = draw(st.integers(min_value=-200, max_value=2600)), draw(st.integers(min_value=-200, max_value=2600))
    extents = st.integers(min_value=1, max_value=2600)
    return left, top, left + draw(extents), top + draw(extents)


@settings(max_examples=100, deadline=None)
@given(
    area=rectangles(),
    rotation=st.integers(min_value=0, max_value=3),
    direction=st.sampled_from(get_args(Direction)),
    keyboard=st.booleans(),
)
def test_wherever_a_container_lies_its_finger_stays_in_what_shows_of_it_and_off_the_rim(
    area: Rectangle, rotation: int, direction: Direction, keyboard: bool
) -> None:
    display = rotated_display(WIDTH, HEIGHT, rotation)
    whole = window(listed(bounds=area), bounds=(display.left, display.top, display.right, display.bottom))
    clock = VirtualClock()
    phone = Fingers({"p": Page(dump(whole, rotation=rotation))}, start="p", clock=clock)
    phone.keyboard_open = keyboard
    result = asyncio.run(run_step(phone, clock, {**HERE, "direction": direction, "timeoutMs": 2000}))
    assert len(phone.moved) == result.dispatched == (1 if result.successful else 0)
    keys = Bounds(0, round(display.bottom * (1 - KEYBOARD_SHARE)), display.right, display.bottom)
    for (x, y), (to_x, to_y) in phone.moved:
        across, down = to_x - x, to_y - y
        assert {"DOWN": down < 0, "UP": down > 0, "RIGHT": across < 0, "LEFT": across > 0}[direction]
        for point in ((x, y), (to_x, to_y)):
            assert Bounds(*area).contains(*point)
            assert inside_rim(display).contains(*point)
            assert not (keyboard and keys.contains(*point))


async def test_a_finger_rests_before_it_lets_go_so_that_nothing_runs_on(clock: VirtualClock) -> None:
    phone = phone_with(clock, listed())
    await run_step(phone, clock, DOWN)
    ((moves_ms, rests_ms),) = phone.times
    assert moves_ms >= 300
    assert rests_ms >= 100


async def test_a_scroll_moves_less_than_its_container_shows(clock: VirtualClock) -> None:
    phone = phone_with(clock, listed())
    await run_step(phone, clock, DOWN)
    ((_, y), (_, to_y)) = phone.moved[0]
    assert 0.5 < (y - to_y) / (LIST[3] - LIST[1]) < 0.7


async def test_a_finger_stays_off_a_button_that_floats_over_the_list(clock: VirtualClock) -> None:
    add = Bounds(400, 1300, 1000, 1900)
    phone = phone_with(clock, listed(), node("Add", (400, 1300, 1000, 1900), clickable=True))
    assert (await run_step(phone, clock, DOWN)).detail is Detail.END_REACHED
    assert not any(add.contains(*point) for point in phone.moved[0])


@pytest.mark.parametrize(("direction", "over_it"), [("RIGHT", False), ("DOWN", True)])
async def test_a_finger_stays_off_a_slider_only_where_it_would_move_along_it(
    clock: VirtualClock, direction: str, over_it: bool
) -> None:
    slider = node("", (0, 1000, WIDTH, 1300), class_name="android.widget.SeekBar", scrollable=True)
    phone = phone_with(clock, listed(node("Volume", (0, 900, 300, 990)), slider))
    await run_step(phone, clock, {**HERE, "direction": direction})
    ((_, y), (_, to_y)) = phone.moved[0]
    assert (min(y, to_y) < 1300 and max(y, to_y) >= 1000) is over_it


async def test_the_window_is_scrolled_where_nothing_says_that_it_scrolls(clock: VirtualClock) -> None:
    phone = phone_with(clock, node("A map", (0, 0, 400, 100)))
    assert (await run_step(phone, clock, DOWN)).detail is Detail.END_REACHED
    assert len(phone.moved) == 1


async def test_a_container_that_shows_too_little_is_not_scrolled(clock: VirtualClock) -> None:
    phone = phone_with(clock, listed(bounds=(0, 1000, WIDTH, 1010)))
    result = await run_step(phone, clock, HERE)
    assert result.code is StepCode.ACTION_FAILED
    assert "shows too little to be scrolled" in result.message
    assert (result.dispatched, phone.moved) == (0, [])


async def test_of_two_containers_neither_is_guessed(clock: VirtualClock) -> None:
    phone = phone_with(clock, listed(), node("", (0, 100, WIDTH, 300), scrollable=True))
    result = await run_step(phone, clock, {**DOWN, "selector": {"scrollable": True}})
    assert (result.code, len(result.candidates), phone.moved) == (StepCode.TARGET_AMBIGUOUS, 2, [])


async def test_without_a_window_nothing_is_scrolled(clock: VirtualClock) -> None:
    bar = window(node("12:00", (0, 0, 100, 50)), bounds=(0, 0, WIDTH, 80), package="com.android.systemui")
    phone = Fingers({"p": Page(dump(bar))}, start="p", clock=clock)
    result = await run_step(phone, clock, {**DOWN, "timeoutMs": 1000})
    assert (result.code, phone.moved) == (StepCode.TARGET_NOT_FOUND, [])
    assert "Nothing can be scrolled." in result.message
    assert clock.monotonic() == pytest.approx(1.0)
