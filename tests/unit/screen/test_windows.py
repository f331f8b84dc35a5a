"""The active application window is chosen, never guessed."""

from __future__ import annotations

from itertools import permutations

import pytest

from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.windows import SYSTEM_UI, choose, rotated_display
from support.screens import HEIGHT, PACKAGE, WIDTH, node, window

KEYBOARD = "com.google.android.inputmethod.latin"
DISPLAY = Bounds(0, 0, WIDTH, HEIGHT)


def status_bar() -> Node:
    return window(node("12:30", (0, 0, 100, 80)), bounds=(0, 0, WIDTH, 80), package=SYSTEM_UI)


def navigation_bar() -> Node:
    return window(bounds=(0, HEIGHT - 120, WIDTH, HEIGHT), package=SYSTEM_UI)


def edge_panel() -> Node:
    return window(bounds=(WIDTH - 30, 600, WIDTH, 900), package="com.samsung.android.app.cocktailbarservice")


def keyboard() -> Node:
    return window(
        node("a", (0, 1600, 100, 1700), package=KEYBOARD),
        node("Delete", (900, 2300, WIDTH, HEIGHT), package=KEYBOARD),
        package=KEYBOARD,
    )


def app(package: str = PACKAGE) -> Node:
    return window(node("Buy", (0, 100, 100, 200)), package=package)


def test_the_application_is_found_among_system_windows_whatever_the_order() -> None:
    roots = [status_bar(), navigation_bar(), edge_panel(), keyboard(), app()]
    application = roots[-1]
    for order in permutations(roots):
        windows = choose(order, input_methods={KEYBOARD}, display=DISPLAY)
        assert windows.root is application
        assert windows.decided


def test_the_keyboard_covers_what_its_keys_cover_not_its_whole_window() -> None:
    windows = choose([app(), keyboard()], input_methods={KEYBOARD}, display=DISPLAY)
    assert windows.keyboard == Bounds(0, 1600, WIDTH, HEIGHT)


def test_without_a_keyboard_nothing_is_covered() -> None:
    assert choose([app()], input_methods={KEYBOARD}, display=DISPLAY).keyboard is None


def test_two_application_windows_are_not_decided_from_the_dump() -> None:
    windows = choose([app(), app("com.android.permissioncontroller")], input_methods=(), display=DISPLAY)
    assert not windows.decided
    assert windows.root is None


def test_a_system_window_over_the_whole_screen_is_not_taken_for_a_bar() -> None:
    shade = window(node("Clear all", (0, 2000, 200, 2100)), package=SYSTEM_UI)
    assert not choose([app(), shade], input_methods=(), display=DISPLAY).decided


@pytest.mark.parametrize("roots", [[], [status_bar()], [window(package=SYSTEM_UI)], [keyboard()]])
def test_without_an_application_window_nothing_can_match(roots: list[Node]) -> None:
    windows = choose(roots, input_methods={KEYBOARD}, display=DISPLAY)
    assert windows.decided
    assert windows.root is None


@pytest.mark.parametrize(
    ("rotation", "frame"),
    [
        (0, (0, 0, WIDTH, HEIGHT)),
        (1, (0, 0, HEIGHT, WIDTH)),
        (2, (0, 0, WIDTH, HEIGHT)),
        (3, (0, 0, HEIGHT, WIDTH)),
    ],
)
def test_the_frame_turns_with_the_phone(rotation: int, frame: tuple[int, int, int, int]) -> None:
    assert rotated_display(WIDTH, HEIGHT, rotation) == Bounds(*frame)
