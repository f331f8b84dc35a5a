"""Where a target can be touched: a point of its visible part that nothing else takes the touch from. Pure.

A view that is drawn over the target and can be clicked takes the touch, and so does another window that lies over the
active one; the effect would then be theirs. What is drawn over the target and cannot be clicked lets the touch through.
Whether the keyboard covers the point is not decided here: it can be hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node

MAX_COVERS = 24
"""More are not told apart piece by piece: the work grows with their cube."""

SCRIM_SHARE = 0.5
"""A cover without a label over so much of the window is the dimmed ground of a dialog, not a touch layer."""


LEAST_PIECE = 24
"""Pixels each way that a free piece must have (or the target's own, if it is smaller): thinner ones are where edges do
not quite meet, and at the display's rim the system's gestures wait."""


@dataclass(frozen=True, slots=True)
class Covered:
    """Something else takes every touch on the target. ``by`` is a label of it; empty when it has none."""

    by: str


@dataclass(frozen=True, slots=True)
class _Cover:
    bounds: Bounds
    label: str = ""
    foreign: bool = True


def touch_point(matcher: Matcher, node: Node) -> tuple[int, int] | Covered:
    """The middle of the node's visible part, else the middle of the largest piece of it that is free.

    Where no piece is free, the middle may still be touched when what covers it is of one piece with the target: many
    apps lay a clickable view without a label, or with the same one, over a row whose texts are not clickable.
    """
    target = matcher.visible_bounds(node)
    if not matcher.in_tree(node):
        # Seen on the picture, so nothing is drawn over it; what takes touches there is unknown to any tree.
        return target.center
    covers = [_Cover(bounds) for bounds in matcher.screen.over if bounds.clipped(target).area]
    covers += [_cover(matcher, other, node) for other in views_over(matcher, node)]
    over_middle = [cover for cover in covers if cover.bounds.contains(*target.center)]
    if not over_middle:
        return target.center
    free = largest_free(target, [cover.bounds for cover in covers])
    if free is not None:
        return free.center
    foreign = [cover for cover in over_middle if cover.foreign]
    return Covered(foreign[-1].label) if foreign else target.center


def views_over(matcher: Matcher, node: Node) -> list[Node]:
    """What is drawn over a node in its own window and can be clicked."""
    target = matcher.visible_bounds(node)
    return [
        other
        for other in matcher.visible_nodes()
        if (other.clickable or other.long_clickable)
        and matcher.visible_bounds(other).clipped(target).area
        and _is_over(other, node)
    ]


def _cover(matcher: Matcher, other: Node, target: Node) -> _Cover:
    bounds = matcher.visible_bounds(other)
    label = _label(other)
    window = matcher.screen.root.bounds.clipped(matcher.screen.display).area if matcher.screen.root is not None else 0
    own = _label(target)
    foreign = not (own and own in label) if label else bounds.area >= SCRIM_SHARE * window
    return _Cover(bounds, label, foreign)


def largest_free(target: Bounds, covers: list[Bounds]) -> Bounds | None:
    """The largest cell, of those that the covers' edges cut the target into, that none of them covers.

    None where there is none, and where there are too many covers.
    """
    if len(covers) > MAX_COVERS:
        return None
    columns = sorted({target.left, target.right, *_inside(target.left, target.right, _across(covers))})
    rows = sorted({target.top, target.bottom, *_inside(target.top, target.bottom, _down(covers))})
    least_width = min(LEAST_PIECE, target.right - target.left)
    least_height = min(LEAST_PIECE, target.bottom - target.top)
    free: Bounds | None = None
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            cell = Bounds(left, top, right, bottom)
            if right - left < least_width or bottom - top < least_height:
                continue
            if any(cover.contains(left, top) for cover in covers):
                continue
            if free is None or cell.area > free.area:
                free = cell
    return free


def _across(covers: list[Bounds]) -> list[int]:
    return [edge for cover in covers for edge in (cover.left, cover.right)]


def _down(covers: list[Bounds]) -> list[int]:
    return [edge for cover in covers for edge in (cover.top, cover.bottom)]


def _inside(low: int, high: int, edges: list[int]) -> list[int]:
    return [edge for edge in edges if low < edge < high]


def _is_over(other: Node, node: Node) -> bool:
    """Whether ``other`` is drawn over ``node``: neither is in the other, and its branch is drawn later."""
    mine, theirs = _branch(node), _branch(other)
    for level, (here, there) in enumerate(zip(mine, theirs, strict=False)):
        if here is not there:
            siblings = mine[level - 1].children if level else []
            return _drawn(there, siblings) > _drawn(here, siblings)
    return False


def _branch(node: Node) -> list[Node]:
    """From the window's root down to the node."""
    branch: list[Node] = []
    here: Node | None = node
    while here is not None:
        branch.append(here)
        here = here.parent
    return branch[::-1]


def _drawn(node: Node, siblings: list[Node]) -> tuple[int, int]:
    return node.drawing_order, next(place for place, each in enumerate(siblings) if each is node)


def _label(node: Node) -> str:
    """The first text in it; empty when it has none."""
    return next((label for each in node.walk() if (label := each.text or each.description)), "")
