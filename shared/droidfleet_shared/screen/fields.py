"""What a text field holds, as far as a dump can tell, and which node it is on a later look. Pure."""

from __future__ import annotations

from droidfleet_shared.protocol.text import dump_form
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node


def held_text(node: Node) -> str:
    """The node's own text. An empty field shows its hint as its text, and then holds nothing."""
    return "" if node.hint and node.text == node.hint else node.text


def shows(node: Node, expected: str) -> bool:
    """Whether the field's text is ``expected``, character for character, as the dump would write it."""
    return node.text == dump_form(expected) or held_text(node) == dump_form(expected)


def may_hide_emoji(text: str) -> bool:
    """Whether a dumped text may stand for another one: two dots in a row can be an emoji."""
    return ".." in text


def focused_field(node: Node) -> Node | None:
    """The node itself or the one node below it that has the input focus."""
    focused = [each for each in node.walk() if each.focused]
    return focused[0] if len(focused) == 1 else None


def same_node(matcher: Matcher, earlier: Node) -> Node | None:
    """The node of this look that ``earlier`` was on a former look of the same window, or None when it cannot be told.

    Its text may have changed, and the keyboard may have moved it, so it is known by class, package and resource id,
    and where several are alike by its place in the tree.
    """
    alike = [
        node
        for node in matcher.visible_nodes()
        if node.class_name == earlier.class_name
        and node.resource_id == earlier.resource_id
        and node.package == earlier.package
    ]
    if len(alike) == 1:
        return alike[0]
    place = place_in_window(earlier)
    return next((node for node in alike if place_in_window(node) == place), None)


def place_in_window(node: Node) -> tuple[int, ...]:
    """Positions among the siblings, from the node up to the window's root; gaps of hidden siblings are counted."""
    place: list[int] = []
    here: Node | None = node
    while here is not None and here.parent is not None:
        place.append(here.index)
        here = here.parent
    return tuple(place)
