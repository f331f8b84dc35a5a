"""One node of the phone's current view tree. Built afresh after each change of its window; never kept longer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from droidfleet_agent.virtual_phone.scenario.template import Scope
from droidfleet_agent.virtual_phone.scenario.widgets import Base, Canvas
from droidfleet_shared.screen.node import Bounds

if TYPE_CHECKING:
    from droidfleet_agent.virtual_phone.model.spec import Spec


class ViewNode:
    """A view as the accessibility tree shows it.

    ``text`` is what the phone shows: the hint while a field is empty, dots in a password field, emoji as they are.
    ``value`` is the real text of a field (of an icon its name, of an image its seed). ``key`` names the node across
    rebuilds of the same page. ``shown`` is what `isVisibleToUser` answers. Defaults live on the class, so that a node
    stores only what differs.
    """

    text = ""
    value = ""
    description = ""
    resource_id = ""
    hint = ""
    checkable = False
    checked = False
    clickable = False
    long_clickable = False
    enabled = True
    focusable = False
    focused = False
    scrollable = False
    secret = False
    selected = False
    editable = False
    shown = True
    ghost = ""
    index = 0
    drawing_order = 0
    left = top = right = bottom = 0
    seen_left = seen_top = seen_right = seen_bottom = 0
    parent: ViewNode | None = None
    scope: Scope = ()

    # Layout only: the measured size, the length of scrolled content, and rows that are built when they come into sight.
    w = h = 0
    content = 0
    row_count = 0
    make_row: Callable[[int], ViewNode | None] | None = None

    def __init__(self, key: str, class_name: str, package: str, spec: Spec, widget: Base | None) -> None:
        self.key = key
        self.class_name = class_name
        self.package = package
        self.spec = spec
        self.widget = widget
        self.children: list[ViewNode] = []

    @property
    def bounds(self) -> Bounds:
        """The raw rectangle in display pixels."""
        return Bounds(self.left, self.top, self.right, self.bottom)

    @property
    def visible_bounds(self) -> Bounds:
        """The part inside its ancestors and the display; empty when nothing of it can be seen."""
        return Bounds(self.seen_left, self.seen_top, self.seen_right, self.seen_bottom)

    @property
    def has_area(self) -> bool:
        """Whether any pixel of it lies inside its ancestors and the display."""
        return self.seen_right > self.seen_left and self.seen_bottom > self.seen_top

    def contains(self, x: float, y: float) -> bool:
        """Whether the pixel lies in its visible part."""
        return self.seen_left <= x < self.seen_right and self.seen_top <= y < self.seen_bottom

    def add(self, child: ViewNode, *, index: int | None = None) -> ViewNode:
        """Appends a child; ``index`` is its position among all siblings, also those that are gone."""
        child.parent = self
        child.index = len(self.children) if index is None else index
        child.drawing_order = child.index + 1
        self.children.append(child)
        return child

    def told(self) -> list[ViewNode]:
        """The children that accessibility tells of: those that are shown, and none of what is only drawn."""
        return [] if isinstance(self.widget, Canvas) else [child for child in self.children if child.shown]

    def walk(self) -> Iterator[ViewNode]:
        """This node and everything below it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def label(self) -> str:
        """The first text or description in it or below it: what a person would call it."""
        return next((found for node in self.walk() if (found := node.text or node.description)), "")
