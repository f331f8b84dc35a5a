"""The data of one look: nodes, windows, and the screen that decisions are made on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bounds:
    """A rectangle in display pixels of the current rotation; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def area(self) -> int:
        """Pixels; 0 for empty and inverted rectangles."""
        return max(0, self.right - self.left) * max(0, self.bottom - self.top)

    @property
    def center(self) -> tuple[int, int]:
        """The middle pixel."""
        return (self.left + self.right) // 2, (self.top + self.bottom) // 2

    def clipped(self, other: Bounds) -> Bounds:
        """The part inside ``other``; may be empty or inverted, then its area is 0."""
        return Bounds(
            max(self.left, other.left),
            max(self.top, other.top),
            min(self.right, other.right),
            min(self.bottom, other.bottom),
        )

    def contains(self, x: int, y: int) -> bool:
        """Whether the pixel lies inside."""
        return self.left <= x < self.right and self.top <= y < self.bottom


@dataclass(slots=True, eq=False)
class Node:
    """One node of the hierarchy, as the phone dumped it. Texts are raw; matching normalises."""

    text: str
    description: str
    resource_id: str
    class_name: str
    package: str
    hint: str
    bounds: Bounds
    index: int
    checkable: bool = False
    checked: bool = False
    clickable: bool = False
    enabled: bool = True
    focusable: bool = False
    focused: bool = False
    scrollable: bool = False
    long_clickable: bool = False
    password: bool = False
    selected: bool = False
    visible: bool = True
    drawing_order: int = 0
    """Among its siblings, as far as the phone tells: the higher is drawn later, over the others; 0 when unknown."""
    parent: Node | None = field(default=None, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


@dataclass(frozen=True, slots=True)
class Screen:
    """One look, decided: the active application window and what lies over it.

    ``root`` is the active application window, or None when there is none (then nothing can match). ``keyboard`` is the
    on-screen keyboard's rectangle when it is shown. ``display`` is the rotated display. ``over`` are the rectangles of
    other windows that lie over the active one and take the touches there, such as a list of suggestions.
    """

    root: Node | None
    package: str
    activity: str
    display: Bounds
    rotation: int
    keyboard: Bounds | None
    over: tuple[Bounds, ...] = ()
