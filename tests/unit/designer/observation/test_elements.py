"""Which nodes become things: nothing that can be used gets lost."""

from __future__ import annotations

from hypothesis import given, settings

from droidfleet_designer.observation.elements import is_usable, says, things_on
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Screen
from unit.screen.test_matching_properties import screens

examples = settings(max_examples=100)


@given(screens)
@examples
def test_whatever_can_be_used_is_a_thing_or_a_rows_switch_or_a_counted_frame(where: Screen) -> None:
    matcher = Matcher(where)
    found = things_on(matcher)
    held = {id(thing.node) for thing in found.all} | {id(part) for thing in found.all for part in thing.parts}
    lost = [node for node in matcher.visible_nodes() if is_usable(node) and id(node) not in held]

    assert len(lost) == found.frames


@given(screens)
@examples
def test_whatever_says_something_is_a_thing_or_part_of_one(where: Screen) -> None:
    matcher = Matcher(where)
    found = things_on(matcher)
    told = {id(thing.node) for thing in found.all} | {id(label) for thing in found.all for label in thing.labels}

    assert all(id(node) in told for node in matcher.visible_nodes() if says(node))


@given(screens)
@examples
def test_no_node_is_two_things(where: Screen) -> None:
    found = things_on(Matcher(where))
    nodes = [id(thing.node) for thing in found.all] + [id(label) for thing in found.all for label in thing.labels]

    assert len(nodes) == len(set(nodes))
