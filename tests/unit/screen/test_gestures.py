"""Fingers move inside the area that is meant, and never begin or end where Android takes them for its own gestures."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.screen.gestures import (
    LEAST_LINE,
    Line,
    drag_end,
    inside_rim,
    largest_scrollable,
    swipe_line,
)
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.windows import rotated_display
from support.screens import WHOLE, WIDTH, Rectangle, node, screen

DISPLAY = Bounds(*WHOLE)
LIST = Bounds(0, 400, WIDTH, 2000)

rotations = st.integers(min_value=0, max_value=3)
displays = st.builds(
    rotated_display,
    st.integers(min_value=1, max_value=3000),
    st.integers(min_value=1, max_value=3000),
    rotations,
)
places = st.integers(min_value=-500, max_value=3500)
areas = st.builds(Bounds, places, places, places, places)
"""Any rectangle: beside the display, empty and inverted ones too."""
directions = st.sampled_from(get_args(Direction))
percents = st.integers(min_value=10, max_value=90)


def length(line: Line) -> int:
    (x, y), (to_x, to_y) = line
    return abs(to_x - x) + abs(to_y - y)


def towards(line: Line) -> Direction:
    (x, y), (to_x, to_y) = line
    assert (x == to_x) != (y == to_y), "a line runs along one axis"
    if x == to_x:
        return "DOWN" if to_y > y else "UP"
    return "RIGHT" if to_x > x else "LEFT"


@given(area=areas, display=displays, direction=directions, percent=percents)
def test_a_swipe_lies_inside_its_area_and_off_the_rim(
    area: Bounds, display: Bounds, direction: Direction, percent: int
) -> None:
    line = swipe_line(area, display, towards=direction, percent=percent)
    for point in line or ():
        assert area.contains(*point)
        assert inside_rim(display).contains(*point)
        assert display.contains(*point)


@given(area=areas, display=displays, direction=directions, percent=percents)
def test_a_swipe_moves_where_it_should_and_no_further(
    area: Bounds, display: Bounds, direction: Direction, percent: int
) -> None:
    line = swipe_line(area, display, towards=direction, percent=percent)
    if line is not None:
        extent = area.bottom - area.top if direction in ("UP", "DOWN") else area.right - area.left
        assert towards(line) == direction
        assert LEAST_LINE <= length(line) <= extent * percent / 100


@given(area=areas, display=displays, direction=directions, percent=percents)
def test_there_is_a_swipe_wherever_there_is_room_for_one(
    area: Bounds, display: Bounds, direction: Direction, percent: int
) -> None:
    safe = area.clipped(inside_rim(display))
    vertical = direction in ("UP", "DOWN")
    room = (safe.bottom - safe.top if vertical else safe.right - safe.left) - 1
    wanted = (area.bottom - area.top if vertical else area.right - area.left) * percent / 100
    if safe.area > 0 and min(room, wanted) >= LEAST_LINE + 1:  # half a line is a whole number of pixels
        assert swipe_line(area, display, towards=direction, percent=percent) is not None


@given(
    x=st.integers(min_value=0, max_value=3000),
    y=st.integers(min_value=0, max_value=3000),
    display=displays,
    x_percent=st.integers(min_value=-100, max_value=100),
    y_percent=st.integers(min_value=-100, max_value=100),
)
def test_a_drag_ends_inside_the_display_or_is_none(
    x: int, y: int, display: Bounds, x_percent: int, y_percent: int
) -> None:
    end = drag_end((x, y), display, x_percent=x_percent, y_percent=y_percent)
    if end is not None:
        assert display.contains(*end)
        assert abs((end[0] - x) - display.right * x_percent / 100) <= 0.5
        assert abs((end[1] - y) - display.bottom * y_percent / 100) <= 0.5


@pytest.mark.parametrize(
    ("direction", "line"),
    [
        ("UP", ((540, 1679), (540, 719))),
        ("DOWN", ((540, 719), (540, 1679))),
        ("LEFT", ((863, 1200), (215, 1200))),
        ("RIGHT", ((215, 1200), (863, 1200))),
    ],
)
def test_a_swipe_is_centred_in_its_area(direction: Direction, line: Line) -> None:
    assert swipe_line(LIST, DISPLAY, towards=direction, percent=60) == line


@pytest.mark.parametrize(
    "area",
    [
        (0, 0, WIDTH, 100),  # wholly in the rim
        (0, 500, 50, 1500),
        (500, 500, 500, 900),  # empty
        (500, 900, 700, 500),  # inverted
        (-300, 500, 0, 900),  # beside the display
        (300, 500, 700, 512),  # 60 percent of it are seven pixels
    ],
)
def test_where_there_is_no_room_there_is_no_line(area: Rectangle) -> None:
    assert swipe_line(Bounds(*area), DISPLAY, towards="UP", percent=60) is None


@pytest.mark.parametrize(("height", "fits"), [(13, False), (14, True)])
def test_a_line_shorter_than_the_least_one_is_none(height: int, fits: bool) -> None:
    line = swipe_line(Bounds(300, 500, 700, 500 + height), DISPLAY, towards="UP", percent=60)
    assert (line is not None and length(line) == LEAST_LINE) is fits


@pytest.mark.parametrize(
    ("x_percent", "y_percent", "end"),
    [(0, 10, (540, 1440)), (-25, 0, (270, 1200)), (50, 0, None), (0, -60, None), (0, 0, (540, 1200))],
)
def test_a_drag_is_as_long_as_its_part_of_the_display(
    x_percent: int, y_percent: int, end: tuple[int, int] | None
) -> None:
    assert drag_end((540, 1200), DISPLAY, x_percent=x_percent, y_percent=y_percent) == end


def chosen(*nodes: Node) -> str | None:
    found = largest_scrollable(Matcher(screen(*nodes)))
    return None if found is None else found.description


def test_the_container_is_the_scrollable_node_that_shows_most() -> None:
    tabs = node("", (0, 100, WIDTH, 300), description="tabs", scrollable=True)
    below = node("", (0, 2300, WIDTH, 9000), description="larger, and mostly below the display", scrollable=True)
    rows = node("", (0, 300, WIDTH, 2000), description="rows", scrollable=True)
    assert chosen(tabs, below, rows) == "rows"


def test_a_slider_is_no_container_although_it_calls_itself_scrollable() -> None:
    slider = node("", WHOLE, description="slider", class_name="android.widget.SeekBar", scrollable=True)
    rows = node("", (0, 300, WIDTH, 400), description="rows", scrollable=True)
    assert chosen(slider, rows) == "rows"


def test_what_is_hidden_is_no_container() -> None:
    hidden = node("", WHOLE, description="hidden", scrollable=True, visible=False)
    rows = node("", (0, 300, WIDTH, 400), description="rows", scrollable=True)
    assert chosen(hidden, rows) == "rows"


def test_where_nothing_calls_itself_scrollable_the_window_is_scrolled() -> None:
    shown = screen(node("Text", (0, 0, 100, 100)))
    assert largest_scrollable(Matcher(shown)) is shown.root


def test_without_a_window_there_is_no_container() -> None:
    assert largest_scrollable(Matcher(replace(screen(), root=None))) is None
