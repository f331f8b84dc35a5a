"""Which nodes become things: nothing that can be used gets lost."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_designer.observation.elements import things_on
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node, Screen
from support.screens import field, node, screen
from unit.screen.test_matching_properties import screens

CLASSES = ["android.widget.EditText", "android.widget.Switch", "android.widget.ImageView", "android.view.View"]

examples = settings(max_examples=60)


def varied(where: Screen, random: Random) -> Screen:
    """The same screen with boxes, fields and long presses in it."""
    for each in where.root.walk() if where.root is not None else ():
        each.checkable = random.random() < 0.3
        each.long_clickable = random.random() < 0.1
        if random.random() < 0.4:
            each.class_name = random.choice(CLASSES)
    return where


varied_screens = st.builds(varied, screens, st.randoms(use_true_random=False))


def can_be_used(each: Node) -> bool:
    return (
        each.clickable
        or each.long_clickable
        or each.checkable
        or each.scrollable
        or each.class_name == "android.widget.EditText"
    )


@given(varied_screens)
@examples
def test_whatever_can_be_used_is_a_thing_or_a_rows_switch_or_a_counted_frame(where: Screen) -> None:
    matcher = Matcher(where)
    found = things_on(matcher)
    held = {id(thing.node) for thing in found.all} | {id(thing.toggle) for thing in found.all}
    lost = [each for each in matcher.visible_nodes() if can_be_used(each) and id(each) not in held]

    assert len(lost) == found.frames


@given(varied_screens)
@examples
def test_whatever_says_something_is_a_thing_or_part_of_one(where: Screen) -> None:
    matcher = Matcher(where)
    found = things_on(matcher)
    told = {id(thing.node) for thing in found.all} | {
        id(each) for thing in found.all for each in [*thing.labels, thing.toggle]
    }

    assert all(id(each) in told for each in matcher.visible_nodes() if each.text.strip().isalnum())


@given(varied_screens)
@examples
def test_no_node_is_two_things(where: Screen) -> None:
    found = things_on(Matcher(where))
    nodes = [id(thing.node) for thing in found.all] + [id(label) for thing in found.all for label in thing.labels]

    assert len(nodes) == len(set(nodes))


def test_a_box_that_only_a_finger_on_its_row_turns_is_the_rows() -> None:
    box = node("", (900, 0, 1000, 100), class_name="android.widget.CheckBox", checkable=True)
    [row] = things_on(
        Matcher(screen(node("", (0, 0, 1000, 100), node("I agree", (0, 0, 500, 90)), box, clickable=True)))
    ).all

    assert (row.kind, row.toggle is not None, [label.text for label in row.labels]) == ("checkbox", True, ["I agree"])


def test_a_box_that_is_tapped_itself_is_a_thing_beside_its_row() -> None:
    box = node("", (900, 0, 1000, 100), class_name="android.widget.CheckBox", checkable=True, clickable=True)
    row = node("", (0, 0, 1000, 100), node("Read more", (0, 0, 500, 90)), box, clickable=True)

    assert [thing.kind for thing in things_on(Matcher(screen(row))).all] == ["button", "checkbox"]


def test_kinds_are_told_by_what_a_node_is_and_does() -> None:
    def kind(each: Node) -> str:
        [thing] = things_on(Matcher(screen(each))).all
        return thing.kind

    line = (0, 0, 500, 100)
    assert [
        kind(field(line, hint="Name")),
        kind(node("A", line, class_name="android.widget.ToggleButton", checkable=True, clickable=True)),
        kind(node("A", line, class_name="android.widget.RadioButton", checkable=True, clickable=True)),
        kind(node("", line, class_name="android.widget.SeekBar", scrollable=True)),
        kind(node("A", line, class_name="android.widget.Spinner", clickable=True)),
        kind(node("", line, class_name="android.webkit.WebView", scrollable=True)),
        kind(node("", line, class_name="android.view.View", scrollable=True)),
        kind(node("", line, description="Logo", class_name="android.widget.ImageView")),
        kind(node("A", line)),
        kind(node("A", line, long_clickable=True)),
    ] == ["field", "switch", "radio", "slider", "dropdown", "web", "list", "image", "text", "button"]
