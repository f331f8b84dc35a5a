"""What was seen on the picture of a screen, and which of it a visual selector means. Pure.

A text is the one that a line of the picture reads as, white space apart: reading often loses or adds a blank. As with
nodes, only what lies in the active application window counts, and neither the keyboard nor what lies over the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from droidfleet_shared.protocol.selector import ImageSelector, PointSelector, Selector
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.node import Bounds, Node, Screen

READ, FOUND, POINT = "ocrText", "image", "point"
"""What stands as the class of a node that no tree holds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something seen in a picture. ``bounds`` in pixels, ``score`` from 0 to 1; ``text`` as it was read, empty for a
    picture that was found."""

    bounds: Bounds
    score: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Sights:
    """Everything that was looked for in one picture, in display pixels."""

    texts: tuple[Sighting, ...] = ()
    images: Mapping[ImageSelector, tuple[Sighting, ...]] = field(default_factory=dict)


NOTHING_SEEN = Sights()


def is_visual(selector: Selector) -> bool:
    """Whether the selector looks at the picture, or at a point, instead of the tree."""
    return selector.ocr_text is not None or selector.image is not None or selector.point is not None


def seen_nodes(selector: Selector, screen: Screen, sights: Sights) -> list[Node]:
    """What a visual selector means on one look, in reading order, as nodes that stand in no tree."""
    if screen.root is None:
        return []
    if selector.point is not None:
        return [_node(_at(selector.point, screen.display), screen, kind=POINT)]
    if selector.image is not None:
        found, kind = sights.images.get(selector.image, ()), FOUND
    else:
        wanted = _letters(selector.ocr_text or "")
        found, kind = tuple(each for each in sights.texts if _letters(each.text) == wanted), READ
    area = screen.root.bounds.clipped(screen.display)
    lies_over = screen.over if screen.keyboard is None else (*screen.over, screen.keyboard)
    inside = [
        each
        for each in found
        if area.contains(*each.bounds.center) and not any(over.contains(*each.bounds.center) for over in lies_over)
    ]
    inside.sort(key=lambda each: (each.bounds.top, each.bounds.left))
    return [_node(each.bounds, screen, kind=kind, text=each.text) for each in inside]


def _letters(text: str) -> str:
    return normalise(text).replace(" ", "")


def _at(point: PointSelector, display: Bounds) -> Bounds:
    width, height = display.right - display.left, display.bottom - display.top
    x = min(display.right - 1, display.left + width * point.x_percent // 100)
    y = min(display.bottom - 1, display.top + height * point.y_percent // 100)
    return Bounds(x, y, x + 1, y + 1)


def _node(bounds: Bounds, screen: Screen, *, kind: str, text: str = "") -> Node:
    return Node(
        text=text,
        description="",
        resource_id="",
        class_name=kind,
        package=screen.package,
        hint="",
        bounds=bounds,
        index=0,
    )
