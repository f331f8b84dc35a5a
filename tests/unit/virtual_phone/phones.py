"""Virtual phones for tests: a shipped scenario or one small screen, a virtual clock, and hands to touch it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

import yaml
from lxml import etree

from droidfleet_agent.virtual_phone.effects import Effect, EffectLog
from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.phone import VirtualPhone
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario, parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.clock import VirtualClock

APP = "com.example.test"
BITS = {
    "text": 0x1,
    "textContains": 0x2,
    "textMatches": 0x4,
    "textStartsWith": 0x8,
    "className": 0x10,
    "classNameMatches": 0x20,
    "description": 0x40,
    "descriptionContains": 0x80,
    "descriptionMatches": 0x100,
    "descriptionStartsWith": 0x200,
    "checkable": 0x400,
    "checked": 0x800,
    "clickable": 0x1000,
    "longClickable": 0x2000,
    "scrollable": 0x4000,
    "enabled": 0x8000,
    "focusable": 0x10000,
    "focused": 0x20000,
    "selected": 0x40000,
    "packageName": 0x80000,
    "packageNameMatches": 0x100000,
    "resourceId": 0x200000,
    "resourceIdMatches": 0x400000,
    "index": 0x800000,
    "instance": 0x1000000,
}
"""The bits of the selector's mask, as the uiautomator2 client sets them."""


class Fields(TypedDict, total=False):
    """The fields that tests look for most."""

    text: str
    textContains: str
    description: str
    resourceId: str
    className: str


def selector(**fields: object) -> dict[str, object]:
    """A selector as the client sends it."""
    mask = sum(BITS[name] for name in fields)
    return {"mask": mask, "childOrSibling": [], "childOrSiblingSelector": [], **fields}


def chained(outer: Mapping[str, object], *steps: tuple[str, Mapping[str, object]]) -> dict[str, object]:
    """A selector with child and sibling steps."""
    return {
        **outer,
        "childOrSibling": [kind for kind, _ in steps],
        "childOrSiblingSelector": [step for _, step in steps],
    }


class Hand:
    """A phone and what a person does with it."""

    def __init__(self, scenario: Scenario, *, seed: int = 0, identity: PhoneIdentity | None = None) -> None:
        self.clock = VirtualClock()
        self.effects = EffectLog(self.clock, serial="VP1")
        self.phone = VirtualPhone(
            scenario, identity=identity or PhoneIdentity(), effects=self.effects, clock=self.clock, seed=seed
        )

    def nodes(self, **fields: Unpack[Fields]) -> list[ViewNode]:
        """Every visible match."""
        return self.phone.find(selector(**fields))

    def node(self, **fields: Unpack[Fields]) -> ViewNode:
        """The one visible match."""
        found = self.nodes(**fields)
        assert len(found) == 1, f"{fields} matches {len(found)} nodes"
        return found[0]

    def tap(self, **fields: Unpack[Fields]) -> None:
        """Taps the middle of the one match."""
        x, y = self.node(**fields).visible_bounds.center
        assert self.phone.tap(x, y)

    def enter(self, text: str, /, **fields: Unpack[Fields]) -> None:
        """Taps a field and sets its text."""
        self.tap(**fields)
        focused = self.phone.focused_node()
        assert focused is not None
        assert self.phone.set_text(focused, text)

    def wait(self, seconds: float) -> None:
        """Lets time pass; timers run."""
        self.clock.advance(seconds)
        self.phone.tick()

    def texts(self) -> list[str]:
        """The texts of the app's window, as its active dump shows them."""
        return [str(node.get("text")) for node in self.dumped(active_only=True) if node.get("text")]

    def dumped(self, *, active_only: bool = False) -> list[etree._Element]:
        """Every node of a dump."""
        return list(etree.fromstring(self.phone.dump(active_only=active_only).encode()).iter("node"))

    def happened(self, *, origin: str = "app") -> list[Effect]:
        """The effects of one origin."""
        return [effect for effect in self.effects.all() if effect.origin == origin]


def shipped(name: str, variant: str | None = None) -> Hand:
    """A phone with a shipped scenario."""
    return Hand(load_scenario(name, variant=variant))


def screen(
    *widgets: Mapping[str, object],
    variables: Mapping[str, object] | None = None,
    dialogs: Mapping[str, object] | None = None,
    more: Mapping[str, object] | None = None,
    seed: int = 0,
    identity: PhoneIdentity | None = None,
    **page: object,
) -> Hand:
    """A phone with one app of one screen, a column of the widgets. ``page`` holds further fields of the screen."""
    document = document_of(*widgets, variables=variables, dialogs=dialogs, more=more, **page)
    return Hand(parse_scenario(yaml.safe_dump(document)), seed=seed, identity=identity)


def document_of(
    *widgets: Mapping[str, object],
    variables: Mapping[str, object] | None = None,
    dialogs: Mapping[str, object] | None = None,
    more: Mapping[str, object] | None = None,
    **page: object,
) -> dict[str, object]:
    """The scenario document behind `screen`. ``more`` holds further screens."""
    root = {"type": "column", "height": "fill", "children": list(widgets)}
    return {
        "format": 1,
        "name": "test",
        "start": APP,
        "apps": [
            {
                "package": APP,
                "label": "Test",
                "home": "main",
                "variables": dict(variables or {}),
                "screens": {"main": {"activity": ".Main", "root": root, **page}, **(more or {})},
                "dialogs": dict(dialogs or {}),
            }
        ],
    }


def page_of(*widgets: Mapping[str, object], activity: str = ".Other") -> dict[str, object]:
    """A further screen for `screen`'s ``more``."""
    return {"activity": activity, "root": {"type": "column", "height": "fill", "children": list(widgets)}}


def ids(nodes: Sequence[ViewNode]) -> list[str]:
    """The short resource ids."""
    return [node.resource_id.rpartition("/")[2] for node in nodes]
