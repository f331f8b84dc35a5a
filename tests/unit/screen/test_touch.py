"""A touch lands on the target, whatever else lies at its middle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.touch import Covered, touch_point
from droidfleet_shared.screen.windows import windows_over
from support.screens import HEIGHT, WIDTH, node, screen, window

ROW = (0, 400, 1000, 500)


def point(*nodes: Node, target: str = "Buy", over: tuple[Bounds, ...] = ()) -> tuple[int, int] | Covered:
    matcher = Matcher(replace(screen(*nodes), over=over))
    (wanted,) = (each for each in matcher.visible_nodes() if each.text == target)
    return touch_point(matcher, wanted)


def test_the_middle_is_touched_where_nothing_lies_over_it() -> None:
    assert point(node("Buy", ROW), node("Sell", (0, 500, 1000, 600), clickable=True)) == (500, 450)


def test_a_row_is_touched_beside_a_floating_button_over_its_middle() -> None:
    add = node("Add", (400, 380, 1000, 520), clickable=True)
    assert point(node("Buy", ROW, clickable=True), add) == (200, 450)


def test_a_target_that_is_wholly_covered_is_not_touched() -> None:
    banner = node("", (0, 0, WIDTH, 900), node("Accept cookies", (0, 0, 500, 100)), clickable=True)
    assert point(node("Buy", ROW, clickable=True), banner) == Covered("Accept cookies")


def test_two_covers_together_may_cover_the_whole_target() -> None:
    left = node("Left", (0, 400, 600, 500), clickable=True)
    right = node("Right", (500, 400, 1000, 500), long_clickable=True)
    assert isinstance(point(node("Buy", ROW), left, right), Covered)


def test_the_ground_of_a_dialog_in_the_same_window_covers_what_is_below() -> None:
    assert point(node("Buy", ROW, clickable=True), node("", (0, 0, WIDTH, HEIGHT), clickable=True)) == Covered("")


def test_what_cannot_be_clicked_lets_the_touch_through() -> None:
    assert point(node("Buy", ROW), node("Loading", (0, 0, WIDTH, HEIGHT))) == (500, 450)


def test_a_clickable_row_does_not_cover_its_own_label() -> None:
    assert point(node("", ROW, node("Buy", (0, 400, 300, 500)), clickable=True)) == (150, 450)


def test_a_target_is_not_covered_by_what_is_in_it() -> None:
    assert point(node("Buy", ROW, node("Now", (400, 400, 600, 500), clickable=True))) == (500, 450)


@pytest.mark.parametrize("label", ["", "Buy", "Buy, button"])
def test_a_touch_layer_of_the_same_row_does_not_stop_the_touch(label: str) -> None:
    layer = node("", ROW, description=label, clickable=True)
    assert point(node("", ROW, node("Buy", (0, 400, 300, 500)), layer)) == (150, 450)


def test_what_is_drawn_earlier_lies_below() -> None:
    below = node("Map", (0, 0, WIDTH, HEIGHT), clickable=True)
    assert point(below, node("Buy", ROW)) == (500, 450)


def test_the_drawing_order_counts_before_the_order_in_the_dump() -> None:
    raised = node("Add", (400, 380, 1000, 520), clickable=True, drawing_order=2)
    assert point(raised, node("Buy", ROW, drawing_order=1)) == (200, 450)
    assert point(node("Buy", ROW, drawing_order=2), node("Map", ROW, clickable=True, drawing_order=1)) == (500, 450)


def test_a_window_over_the_active_one_takes_the_touch() -> None:
    suggestions = Bounds(300, 0, WIDTH, 450)
    assert point(node("Buy", (300, 300, 700, 500)), over=(suggestions,)) == (500, 475)
    assert point(node("Buy", (300, 300, 700, 440)), over=(suggestions,)) == Covered("")


def test_a_smaller_window_lies_over_the_active_one_and_a_larger_one_below() -> None:
    app, popup = window(), window(bounds=(0, 500, WIDTH, 900))
    dialog = window(bounds=(100, 700, 980, 1500))
    assert windows_over(app, [popup, app]) == (popup.bounds,)
    assert windows_over(dialog, [app, dialog]) == ()


def test_a_screen_that_ends_above_the_navigation_bar_lies_below_a_sheet_that_does_not() -> None:
    assert windows_over(window(), [window(bounds=(0, 80, WIDTH, HEIGHT - 120)), window()]) == ()


def test_a_sliver_that_is_free_is_not_aimed_at() -> None:
    almost = node("Other", (0, 400, 990, 500), clickable=True)
    assert point(node("Buy", ROW), almost) == Covered("Other")


def test_a_piece_of_a_thin_target_may_be_as_thin() -> None:
    half = node("Other", (0, 400, 600, 500), clickable=True)
    assert point(node("Buy", (0, 400, 1000, 406)), half) == (800, 403)


rectangles = st.builds(
    lambda left, top, width, height: (left, top, left + width, top + height),
    st.integers(0, 60),
    st.integers(0, 60),
    st.integers(1, 60),
    st.integers(1, 60),
)


@given(rectangles, st.lists(rectangles, max_size=8))
def test_a_touch_is_inside_the_target_and_on_nothing_else(
    target: tuple[int, int, int, int], covers: list[tuple[int, int, int, int]]
) -> None:
    found = point(node("Buy", target), *(node("Other", cover, clickable=True) for cover in covers))
    bounds = [Bounds(*cover) for cover in covers]
    if isinstance(found, Covered):
        assert any(cover.contains(*Bounds(*target).center) for cover in bounds)
    else:
        assert Bounds(*target).contains(*found)
        assert not any(cover.contains(*found) for cover in bounds)
