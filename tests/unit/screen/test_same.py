"""Two looks are the same only when nothing at all differs: what `redo` and the end of a list rest on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.same import same_screen, same_tree
from support.screens import dump, node, screen, screen_of, window

KEYBOARD = Bounds(0, 1500, 1080, 2400)


def page(**changed: object) -> Screen:
    row = node("Tea", (0, 100, 500, 200), description="a drink", resource_id="row", class_name="Row")
    wanted = replace(row, **changed)  # type: ignore[arg-type]  # each case names a field and a value of its type
    return screen(wanted, node("Coffee", (0, 200, 500, 300)))


def root(shown: Screen) -> Node:
    assert shown.root is not None
    return shown.root


def test_two_looks_at_one_screen_are_the_same() -> None:
    assert same_screen(page(), page())


@pytest.mark.parametrize(
    "changed",
    [
        {"text": "Tea!"},
        {"description": "a hot drink"},
        {"resource_id": "line"},
        {"class_name": "Line"},
        {"bounds": Bounds(0, 101, 500, 200)},
        {"checked": True},
        {"enabled": False},
        {"focused": True},
        {"selected": True},
        {"visible": False},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_anything_that_a_person_could_see_makes_a_look_another_one(changed: dict[str, object]) -> None:
    assert not same_screen(page(), page(**changed))
    assert not same_screen(page(**changed), page())


def test_a_node_more_makes_a_tree_another_one_from_both_sides() -> None:
    fewer, more = page(), screen(*root(page()).children, node("Cocoa", (0, 300, 500, 400)))
    assert not same_tree(root(fewer), root(more))
    assert not same_tree(root(more), root(fewer))


def test_the_same_nodes_nested_otherwise_are_another_tree() -> None:
    inner, outer = (0, 0, 10, 10), (0, 0, 20, 20)
    nested = window(node("A", outer, node("B", inner, node("C", inner))))
    beside = window(node("A", outer, node("B", inner), node("C", inner)))
    assert not same_tree(nested, beside)


@pytest.mark.parametrize(
    "other",
    [
        replace(page(), package="com.other"),
        replace(page(), rotation=1),
        replace(page(), keyboard=KEYBOARD),
    ],
    ids=["app", "rotation", "keyboard"],
)
def test_another_app_or_rotation_or_a_keyboard_is_another_screen(other: Screen) -> None:
    assert not same_screen(page(), other)


def test_a_keyboard_that_only_grew_is_no_change() -> None:
    small, large = replace(page(), keyboard=KEYBOARD), replace(page(), keyboard=Bounds(0, 1300, 1080, 2400))
    assert same_screen(small, large)


def test_looks_without_a_window_are_like_no_other_not_even_each_other() -> None:
    nothing = replace(page(), root=None)
    assert not same_screen(nothing, nothing)
    assert not same_screen(page(), nothing)
    assert not same_screen(nothing, page())


def test_what_other_windows_show_is_no_change() -> None:
    bar = window(node("12:01", (0, 0, 100, 50)), bounds=(0, 0, 1080, 80), package="com.android.systemui")
    assert same_screen(page(), screen_of(dump(root(page()), bar)))
