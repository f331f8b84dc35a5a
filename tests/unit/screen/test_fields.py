"""What a field holds, and which node it is on a later look."""

from __future__ import annotations

import pytest

from droidfleet_shared.screen.fields import focused_field, held_text, may_hide_emoji, same_node, shows
from droidfleet_shared.screen.matching import Matcher
from support.screens import field, node, screen


def test_a_hint_that_is_shown_is_not_a_text() -> None:
    assert held_text(field((0, 0, 9, 9), hint="Email")) == ""
    assert held_text(node("a@b.c", (0, 0, 9, 9), hint="Email")) == "a@b.c"
    assert held_text(node("plain", (0, 0, 9, 9))) == "plain"


@pytest.mark.parametrize(
    ("shown", "expected", "equal"),
    [
        ("abc", "abc", True),
        ("Hi ..", "Hi 😀", True),
        ("a\nb", "a\nb", True),
        (" a ", " a ", True),
        (" a", "a", False),
        ("1,234", "1234", False),
        ("", "", True),
        ("ab", "abc", False),
    ],
)
def test_a_text_is_compared_character_for_character_as_a_dump_writes_it(shown: str, expected: str, equal: bool) -> None:
    assert shows(node(shown, (0, 0, 9, 9)), expected) is equal


def test_an_empty_field_shows_an_empty_text() -> None:
    assert shows(field((0, 0, 9, 9), hint="Email"), "")


def test_two_dots_may_hide_an_emoji() -> None:
    assert may_hide_emoji("Wait...")
    assert not may_hide_emoji("a.b.c")


def test_the_focus_may_lie_below_the_node() -> None:
    inner = field((0, 0, 9, 9), focused=True)
    assert focused_field(node("", (0, 0, 9, 9), inner)) is inner
    assert focused_field(field((0, 0, 9, 9))) is None


def test_a_field_is_known_again_though_its_text_and_place_changed() -> None:
    before = Matcher(screen(field((0, 900, 90, 990), resource_id="a:id/email"), field((0, 990, 90, 999))))
    after = Matcher(
        screen(node("x", (0, 100, 90, 190), resource_id="a:id/email", class_name="android.widget.EditText"))
    )
    earlier = next(each for each in before.visible_nodes() if each.resource_id)
    now = same_node(after, earlier)
    assert now is not None
    assert now.text == "x"


def test_of_several_alike_the_one_at_the_same_place_in_the_tree_is_it() -> None:
    before = Matcher(screen(field((0, 0, 90, 40)), field((0, 50, 90, 90))))
    after = Matcher(screen(field((0, 10, 90, 50)), field((0, 60, 90, 99))))
    now = same_node(after, list(before.visible_nodes())[2])
    assert now is not None
    assert now.bounds.top == 60


def test_a_field_that_is_gone_is_not_mistaken_for_another() -> None:
    before = Matcher(screen(field((0, 0, 90, 40), resource_id="a:id/email")))
    after = Matcher(screen(field((0, 0, 90, 40), resource_id="a:id/phone")))
    assert same_node(after, list(before.visible_nodes())[1]) is None
