"""Small screens for tests, written as nodes: ``dump(window(node("Buy", (0, 0, 100, 50), clickable=True)))``."""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict, Unpack

from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.parse import Hierarchy, parse
from droidfleet_shared.screen.windows import choose, rotated_display
from droidfleet_shared.screen.write import write

PACKAGE = "com.example.shop"
WIDTH, HEIGHT = 1080, 2400
WHOLE = (0, 0, WIDTH, HEIGHT)
Rectangle = tuple[int, int, int, int]


class Flags(TypedDict, total=False):
    """What else a node may have; `Node` says what each is."""

    description: str
    resource_id: str
    class_name: str
    package: str
    hint: str
    index: int
    checkable: bool
    checked: bool
    clickable: bool
    enabled: bool
    focusable: bool
    focused: bool
    scrollable: bool
    password: bool
    selected: bool
    visible: bool
    long_clickable: bool
    drawing_order: int


def node(text: str, bounds: Rectangle, *children: Node, **flags: Unpack[Flags]) -> Node:
    """One node and what is in it."""
    base = Node(text, "", "", "android.widget.TextView", PACKAGE, "", Bounds(*bounds), 0)
    made = replace(base, **flags)
    made.children = list(children)
    for place, child in enumerate(children):
        child.parent = made
        child.index = place
    return made


def window(*children: Node, bounds: Rectangle = WHOLE, package: str = PACKAGE) -> Node:
    """The root of a window."""
    return node("", bounds, *children, class_name="android.widget.FrameLayout", package=package)


def field(bounds: Rectangle, **flags: Unpack[Flags]) -> Node:
    """An empty text field."""
    return node(flags.get("hint", ""), bounds, **{"class_name": "android.widget.EditText", "clickable": True} | flags)


def dump(*roots: Node, rotation: int = 0) -> str:
    """The windows as the phone would dump them."""
    return write(Hierarchy(roots, rotation))


def screen_of(xml: str, *, width: int = WIDTH, height: int = HEIGHT) -> Screen:
    """The screen that a dump with one application window shows."""
    hierarchy = parse(xml)
    display = rotated_display(width, height, hierarchy.rotation)
    windows = choose(hierarchy.roots, input_methods={"com.android.inputmethod.latin"}, display=display)
    root = windows.root
    return Screen(
        root=root,
        package=root.package if root is not None else "",
        activity="",
        display=display,
        rotation=hierarchy.rotation,
        keyboard=windows.keyboard,
    )


def screen(*children: Node) -> Screen:
    """The screen of one window with these nodes."""
    return screen_of(dump(window(*children)))
