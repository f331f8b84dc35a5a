"""Where fingers move: lines inside an area, away from the display's rim. Pure.

Android takes what begins at the rim as its own gesture (back, home, the shade), and what ends outside an area reaches
something else. So a line lies inside both, in the middle across its direction.
"""

from __future__ import annotations

from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.touch import largest_free, views_over

Point = tuple[int, int]
Line = tuple[Point, Point]

RIM_SHARE = 0.06
"""Part of the display's width and height at each edge in which no line begins or ends: system gestures take 24 to 40 dp
of the some 400 and 900 that a display has."""

SCROLL_PERCENT = 60
"""Part of a container that one scroll moves: what was at its far end is still to be seen after it."""

LEAST_LINE = 8
"""Pixels. A shorter line is a tap to Android."""

LEAST_SHARE = 0.25
"""Part of a node that must be free of other views. With less the line would be too short to move anything, and what
covers nearly all of a list mostly lets gestures through."""

_NOTHING = Bounds(0, 0, 0, 0)
_OPPOSITE: dict[Direction, Direction] = {"UP": "DOWN", "DOWN": "UP", "LEFT": "RIGHT", "RIGHT": "LEFT"}


def inside_rim(display: Bounds) -> Bounds:
    """The display without its rim."""
    across = round((display.right - display.left) * RIM_SHARE)
    down = round((display.bottom - display.top) * RIM_SHARE)
    return Bounds(display.left + across, display.top + down, display.right - across, display.bottom - down)


def swipe_line(area: Bounds, display: Bounds, *, towards: Direction, percent: int) -> Line | None:
    """A line of ``percent`` of the area's length, to where the finger moves; None where there is no room for one."""
    safe = area.clipped(inside_rim(display))
    if safe.area == 0:
        return None
    x, y = safe.center
    vertical = towards in ("UP", "DOWN")
    low, high = (safe.top, safe.bottom - 1) if vertical else (safe.left, safe.right - 1)
    extent = (area.bottom - area.top) if vertical else (area.right - area.left)
    half = min(extent * percent // 200, (high - low) // 2)
    if 2 * half < LEAST_LINE:
        return None
    middle = (low + high) // 2
    first, last = middle - half, middle + half
    if towards in ("UP", "LEFT"):
        first, last = last, first
    return ((x, first), (x, last)) if vertical else ((first, y), (last, y))


def scroll_line(matcher: Matcher, container: Node, *, direction: Direction) -> Line | None:
    """The line that shows what lies further in a direction: the finger moves the other way."""
    towards = _OPPOSITE[direction]
    area = free_part(matcher, container, towards=towards)
    return swipe_line(area, matcher.screen.display, towards=towards, percent=SCROLL_PERCENT)


def drag_end(start: Point, display: Bounds, *, x_percent: int, y_percent: int) -> Point | None:
    """The point so far from another, in percent of the display; None outside the display."""
    x = start[0] + round((display.right - display.left) * x_percent / 100)
    y = start[1] + round((display.bottom - display.top) * y_percent / 100)
    return (x, y) if display.contains(x, y) else None


def free_part(matcher: Matcher, node: Node, *, towards: Direction) -> Bounds:
    """The largest piece of a node's visible part where a finger that moves ``towards`` moves that node alone.

    Never under the keyboard or another window. Neither under views that are drawn over it and take touches, nor on a
    slider along the way, unless these leave too little. Without area when nothing is free.
    """
    whole = matcher.visible_bounds(node)
    keyboard = matcher.screen.keyboard
    windows = [*matcher.screen.over, *([keyboard] if keyboard is not None else [])]
    views = [*views_over(matcher, node), *_sliders_along(node, towards)] if matcher.in_tree(node) else []
    free = largest_free(whole, [*windows, *(matcher.visible_bounds(view) for view in views)])
    if free is None or free.area < LEAST_SHARE * whole.area:
        free = largest_free(whole, windows)
    return free or _NOTHING


def largest_scrollable(matcher: Matcher) -> Node | None:
    """The scrollable node that shows most, else the window's root; None without a window."""
    scrollable = [node for node in matcher.visible_nodes() if node.scrollable and not _is_slider(node)]
    if not scrollable:
        return matcher.screen.root
    return max(scrollable, key=lambda node: matcher.visible_bounds(node).area)


def _is_slider(node: Node) -> bool:
    """Sliders call themselves scrollable."""
    return node.class_name.endswith("SeekBar")


def _sliders_along(node: Node, towards: Direction) -> list[Node]:
    """Sliders inside a node whose length lies along the way: a finger that moves along them sets their value."""
    upright = towards in ("UP", "DOWN")
    return [
        inner
        for inner in node.walk()
        if inner is not node
        and _is_slider(inner)
        and (inner.bounds.bottom - inner.bounds.top > inner.bounds.right - inner.bounds.left) is upright
    ]
