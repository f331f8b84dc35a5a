"""Screens that stand for what phones show: real dumps where they are at hand, and those of the shipped scenarios."""

from __future__ import annotations

from collections.abc import Iterator

from droidfleet_agent.virtual_phone.scenario.loader import shipped_scenarios
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Screen
from droidfleet_shared.screen.parse import parse
from droidfleet_shared.screen.touch import touch_point
from support.dumps import DUMPS
from support.screens import screen_of
from unit.virtual_phone.phones import shipped

SETTLED_S = 3.0
"""Until animations and loading of the scenarios are over."""


def dumped_screens() -> dict[str, Screen]:
    """The real dumps by their names; empty where they are not at hand."""
    screens: dict[str, Screen] = {}
    for path in DUMPS:
        hierarchy = parse(path.read_text())
        [root] = hierarchy.roots
        display = Bounds(0, 0, root.bounds.right, root.bounds.bottom)
        screens[path.stem] = Screen(root, root.package, "", display, hierarchy.rotation, None)
    return screens


def scenario_screens() -> dict[str, Screen]:
    """The first screen of each shipped scenario, and those that one tap from there leads to."""
    screens: dict[str, Screen] = {}
    for name in shipped_scenarios():
        first = screen_of(shipped(name).phone.dump())
        screens[name] = first
        for place, tapped in enumerate(_after_one_tap(name, first)):
            screens[f"{name}-{place}"] = tapped
    return screens


def _after_one_tap(name: str, first: Screen) -> Iterator[Screen]:
    matcher = Matcher(first)
    for node in matcher.visible_nodes():
        point = touch_point(matcher, node) if node.clickable else None
        if isinstance(point, tuple):
            hand = shipped(name)
            hand.phone.tap(*point)
            hand.wait(SETTLED_S)
            yield screen_of(hand.phone.dump())


def size_of(where: Screen) -> int:
    """The nodes of the window."""
    return sum(1 for _ in where.root.walk()) if where.root is not None else 0
