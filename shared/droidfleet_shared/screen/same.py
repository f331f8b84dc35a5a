"""Whether two looks show the same screen. Pure."""

from __future__ import annotations

from itertools import zip_longest

from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.sights import Sights


def same_screen(one: Screen, other: Screen) -> bool:
    """Whether nothing at all differs in the active window: its app, its tree, its texts, places and states.

    The focus counts and so does the keyboard: what changed them is an effect. A look without a window is like no other:
    nothing was seen on it.
    """
    if one.root is None or other.root is None:
        return False
    if (one.package, one.rotation, one.keyboard is None) != (other.package, other.rotation, other.keyboard is None):
        return False
    return same_tree(one.root, other.root)


def same_picture(one: Sights, other: Sights) -> bool:
    """Whether ``other`` shows all that was seen on ``one``, and no more texts. Nothing seen is like nothing else."""
    if not one.texts and not any(one.images.values()):
        return False
    return one.texts == other.texts and all(other.images.get(image) == seen for image, seen in one.images.items())


def same_tree(one: Node, other: Node) -> bool:
    """Whether two trees are alike, node by node in document order."""
    return all(
        here is not None and there is not None and _traits(here) == _traits(there)
        for here, there in zip_longest(one.walk(), other.walk())
    )


def _traits(node: Node) -> tuple[object, ...]:
    return (
        node.text,
        node.description,
        node.resource_id,
        node.class_name,
        node.bounds,
        len(node.children),
        node.checked,
        node.enabled,
        node.focused,
        node.selected,
        node.visible,
    )
