"""What is told of one thing of a screen: its words, what it holds, its state, its name, and what it warns of. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from droidfleet_designer.observation.elements import Thing, is_field
from droidfleet_designer.observation.naming import Namer, danger_on
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.fields import held_text
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.stability import made_up_id
from droidfleet_shared.screen.suggest import Suggestion
from droidfleet_shared.screen.touch import Covered, touch_point

_ID = re.compile(r"[A-Za-z0-9_.\-]{1,40}")


@dataclass(frozen=True, slots=True)
class Words:
    """Words of one node: its text or its description, normalised, and its id where it should last."""

    text: str
    described: bool
    id: str


@dataclass(frozen=True, slots=True)
class Seen:
    """A thing as it is told. ``holds``: what a field contains; never that of a password."""

    thing: Thing
    words: tuple[Words, ...]
    holds: str
    states: tuple[str, ...]
    name: Suggestion | None
    danger: str


def see(thing: Thing, matcher: Matcher, namer: Namer, words: EffectWords) -> Seen:
    """What is told of a thing."""
    node = thing.node
    return Seen(
        thing=thing,
        words=_words(thing),
        holds=normalise(held_text(node)) if is_field(node) and not node.password else "",
        states=tuple(_states(thing, matcher)),
        name=namer.name(thing),
        danger=danger_on(thing, words),
    )


def _words(thing: Thing) -> tuple[Words, ...]:
    """What a thing is called, without repetitions: its own words, then its labels'. Not the text of a field."""
    node = thing.node
    asked = [Words(normalise(node.hint), described=False, id=lasting_id(node))] if is_field(node) else []
    own = [] if is_field(node) else [Words(normalise(node.text), described=False, id=lasting_id(node))]
    own.append(Words(normalise(node.description), described=True, id=lasting_id(node)))
    inner = [] if node.password else [said for label in thing.labels for said in _said(label)]
    distinct: dict[str, Words] = {}
    for each in [*asked, *own, *inner]:
        if each.text:
            distinct.setdefault(each.text, each)
    return tuple(distinct.values())


def _said(node: Node) -> Iterator[Words]:
    yield Words(normalise(node.text), described=False, id=lasting_id(node))
    yield Words(normalise(node.description), described=True, id=lasting_id(node))


def _states(thing: Thing, matcher: Matcher) -> Iterator[str]:
    node, turned = thing.node, thing.toggle or thing.node
    if not node.enabled:
        yield "disabled"
    if turned.checkable:
        yield "checked" if turned.checked else "unchecked"
    if node.selected:
        yield "selected"
    if node.focused or any(part.focused for part in thing.parts):
        yield "focused"
    if node.password:
        yield "password"
    if node.scrollable and thing.kind != "list":
        yield "scrollable"
    if node.long_clickable and not node.clickable:
        yield "long press"
    if not thing.usable:
        return
    keyboard = matcher.screen.keyboard
    if keyboard is not None and keyboard.contains(*matcher.visible_bounds(node).center):
        yield "under the keyboard"
    elif isinstance(touch_point(matcher, node), Covered):
        yield "covered"


def lasting_id(node: Node) -> str:
    """The part of the node's resource id that a person would write, where somebody chose it; else empty."""
    short = node.resource_id.rpartition(":id/")[2]
    return short if _ID.fullmatch(short) and not made_up_id(short) else ""
