"""Which nodes of a screen matter, and which of them are one thing to a person: a row is one with its labels. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node

MAX_LABELS = 8
"""Texts that are told as the words of what holds them. With more it is no row or card but a part of the page, and its
texts are told one by one."""

SHORT = 1
"""Characters. So short a label is an initial in a round picture, or a count: a row is called by the others first."""

FRAME_SHARE = 0.5
"""What can be tapped, says nothing and is filled to this share by one other thing that can be tapped is its frame."""

_FIELDS = ("EditText", "AutoCompleteTextView")
_KINDS = (
    (("Switch", "SwitchCompat", "SwitchMaterial", "ToggleButton"), "switch"),
    (("CheckBox", "CheckedTextView"), "checkbox"),
    (("RadioButton",), "radio"),
    (("SeekBar", "Slider"), "slider"),
    (("Spinner",), "dropdown"),
    (("WebView",), "web"),
)
_PICTURES = ("Image", "ImageView")


@dataclass(slots=True)
class Thing:
    """A node that matters, with what it holds that is no thing of its own.

    ``labels`` have a text or a description, the telling ones first; ``parts`` are all nodes in it that cannot be used
    by themselves, labels too; ``toggle`` is the switch or box that a row turns.
    """

    node: Node
    labels: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    toggle: Node | None = None

    @property
    def kind(self) -> str:
        """What it is, in a word: button, field, text, switch, list, image, ..."""
        return _kind(self.node, self.toggle)

    @property
    def usable(self) -> bool:
        """Whether it can be tapped, typed into, turned or scrolled."""
        return is_usable(self.node)


@dataclass(frozen=True, slots=True)
class Things:
    """All that matters on a screen, in reading order. ``frames``: how many were left out because they only surround
    another thing."""

    all: tuple[Thing, ...]
    frames: int


def is_field(node: Node) -> bool:
    """Whether the node takes text."""
    return node.class_name.endswith(_FIELDS)


def is_usable(node: Node) -> bool:
    """Whether a finger does something on the node."""
    return node.clickable or node.long_clickable or node.checkable or node.scrollable or is_field(node)


def says(node: Node) -> bool:
    """Whether the node has words."""
    return bool(normalise(node.text) or normalise(node.description))


def things_on(matcher: Matcher) -> Things:
    """What matters on a screen: whatever can be used, and whatever says something and is not a label of that."""
    used: dict[int, Thing] = {}
    said: list[Thing] = []
    for node in matcher.visible_nodes():
        holder = _holder(node, used)
        if is_usable(node) and not _is_toggle_of(node, holder):
            used[id(node)] = Thing(node)
        elif holder is not None and _merges(holder.node):
            holder.parts.append(node)
            if node.checkable:
                holder.toggle = node
            if says(node):
                holder.labels.append(node)
        elif says(node):
            said.append(Thing(node))
    frames = _frames(used.values(), matcher)
    for thing in used.values():
        if len(thing.labels) > MAX_LABELS and not is_field(thing.node):
            said += [Thing(label) for label in thing.labels]
            thing.labels = []
        thing.labels.sort(key=lambda label: len(normalise(label.text or label.description)) <= SHORT)
    found = [*(thing for thing in used.values() if id(thing.node) not in frames), *said]
    order = {id(node): place for place, node in enumerate(matcher.visible_nodes())}

    def reading(thing: Thing) -> tuple[int, int, int]:
        bounds = matcher.visible_bounds(thing.node)
        return bounds.top, bounds.left, order[id(thing.node)]

    return Things(tuple(sorted(found, key=reading)), len(frames))


def saying(things: Things, wanted: str) -> Things:
    """Those of the things in whose words the text stands, whatever its case."""
    part = normalise(wanted).casefold()

    def says_it(thing: Thing) -> bool:
        said = (text for node in (thing.node, *thing.parts) for text in (node.text, node.description, node.hint))
        return any(part in normalise(text).casefold() for text in said)

    return Things(tuple(filter(says_it, things.all)), frames=0)


def holder_of(node: Node) -> Node | None:
    """The nearest node around another one that can be used; None: there is none."""
    above = node.parent
    while above is not None and not is_usable(above):
        above = above.parent
    return above


def _holder(node: Node, used: dict[int, Thing]) -> Thing | None:
    above = node.parent
    while above is not None:
        if id(above) in used:
            return used[id(above)]
        above = above.parent
    return None


def _merges(node: Node) -> bool:
    """Whether what a node holds belongs to it: not so with a list or a page."""
    return is_field(node) or not node.scrollable


def _is_toggle_of(node: Node, holder: Thing | None) -> bool:
    """Whether the node is the switch of a row that is tapped in its place."""
    only_checkable = node.checkable and not (node.clickable or node.long_clickable or node.scrollable or is_field(node))
    return only_checkable and holder is not None and holder.node.clickable and holder.toggle is None


def _frames(things: Collection[Thing], matcher: Matcher) -> set[int]:
    """The ids of the nodes that can be tapped, say nothing and are filled by one other thing that can be tapped."""
    inside: dict[int, list[Node]] = {}
    for thing in things:
        holder = holder_of(thing.node)
        if holder is not None:
            inside.setdefault(id(holder), []).append(thing.node)
    frames: set[int] = set()
    for thing in things:
        node = thing.node
        if thing.labels or thing.toggle or says(node) or node.scrollable or node.checkable or is_field(node):
            continue
        inner = inside.get(id(node), [])
        least = FRAME_SHARE * matcher.visible_bounds(node).area
        if len(inner) == 1 and inner[0].clickable and matcher.visible_bounds(inner[0]).area >= least:
            frames.add(id(node))
    return frames


def _kind(node: Node, toggle: Node | None) -> str:
    if is_field(node):
        return "field"
    name = (toggle or node).class_name.rpartition(".")[2]
    for names, kind in _KINDS:
        if name.endswith(names):
            return kind
    if node.checkable or toggle is not None:
        return "checkbox"
    if node.clickable or node.long_clickable:
        return "button"
    if node.scrollable:
        return "list"
    return "image" if name.endswith(_PICTURES) and not node.text.strip() else "text"
