"""A phone's screen as the command line shows it: which nodes are worth showing, what they are called, which one is
meant. Pure; text from the screen is passed on as it is, and escaped where it is printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from droidfleet.v1 import device_pb2
from droidfleet_shared.errors import NotFoundError, PreconditionError

if TYPE_CHECKING:
    from droidfleet_controller.cli.documents import Document

MAX_NAMED = 8
"""Nodes that an error spells out."""

_FIELDS = ("EditText", "AutoCompleteTextView")
_TOUCHED = ("clickable", "long_clickable", "checkable")

NOTHING_NAMED = (
    "No node here says anything or takes touches, as in games. Look at the picture (droidfleet device screenshot), and "
    "name what is on it with ocrText or image."
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One node of a look. ``number`` is its place in the tree; ``depth`` counts the ancestors that are shown."""

    number: int
    node: device_pb2.TreeNode

    @property
    def label(self) -> str:
        """What a person reads: its text, else its description, else its hint."""
        return self.node.text or self.node.description or self.node.hint

    @property
    def kind(self) -> str:
        """The class without its package."""
        return self.node.class_name.rpartition(".")[2] or "node"

    @property
    def identity(self) -> str:
        """The resource id without its package."""
        return self.node.resource_id.rpartition("/")[2]

    @property
    def is_field(self) -> bool:
        """Whether it takes text."""
        return self.node.class_name.endswith(_FIELDS)

    @property
    def touched(self) -> bool:
        """Whether it reacts to a touch."""
        return any(flag in self.node.flags for flag in _TOUCHED)

    @property
    def best(self) -> device_pb2.OfferedSelector | None:
        """The first selector that names it."""
        return self.node.offered[0] if self.node.offered else None

    def named(self) -> str:
        """For a message: ``Button "Buy"``."""
        return f"{self.kind} {json.dumps(self.label or self.identity, ensure_ascii=False)}"


class ScreenView:
    """One look, with what follows from it."""

    def __init__(self, tree: device_pb2.GetTreeResponse) -> None:
        self.tree = tree
        self.nodes = [Seen(number, node) for number, node in enumerate(tree.nodes)]
        labelled_below: set[int] = set()
        for seen in reversed(self.nodes):
            if seen.node.parent >= 0 and (seen.number in labelled_below or (seen.label and _visible(seen))):
                labelled_below.add(seen.node.parent)
        self._labelled_below = labelled_below

    def useful(self) -> list[Seen]:
        """The nodes that say something or can be acted on; without the frames around them."""
        return [seen for seen in self.nodes if _visible(seen) and (_says(seen) or "scrollable" in seen.node.flags)]

    def choices(self) -> list[Seen]:
        """What a person would tap, fill in or read. What reacts to touches stands for itself only without a label in
        it: the label can be tapped as well."""
        return [
            seen
            for seen in self.nodes
            if _visible(seen)
            and (seen.label or seen.is_field or (seen.touched and seen.number not in self._labelled_below))
        ]

    def find(self, text: str) -> list[Seen]:
        """The choices whose label, or else id, is this text, or else holds it, upper and lower case alike."""
        wanted = _plain(text)
        named = [(seen, _plain(seen.label), _plain(seen.identity)) for seen in self.choices()] if wanted else []
        return (
            [seen for seen, label, _ in named if label == wanted]
            or [seen for seen, _, identity in named if identity == wanted]
            or [seen for seen, label, _ in named if wanted in label]
            or [seen for seen, _, identity in named if wanted in identity]
        )

    def containing(self, text: str) -> list[Seen]:
        """All choices whose label or id holds the text."""
        wanted = _plain(text)
        return [seen for seen in self.choices() if wanted in _plain(seen.label) or wanted in _plain(seen.identity)]

    def one(self, text: str) -> Seen:
        """The one node that the text means; of several the only one that reacts to touches.

        Raises:
            NotFoundError: ``NODE_NOT_FOUND``.
            PreconditionError: ``NODE_AMBIGUOUS``, with what there is.
        """
        found = self.find(text)
        if not found:
            raise NotFoundError(
                "NODE_NOT_FOUND",
                f"nothing on the screen is called {json.dumps(text, ensure_ascii=False)}.",
                hint=f"There is {_listed(self.choices())}." if self.choices() else NOTHING_NAMED,
            )
        touched = [seen for seen in found if seen.touched or seen.is_field]
        if len(found) > 1 and len(touched) != 1:
            raise PreconditionError(
                "NODE_AMBIGUOUS",
                f"{json.dumps(text, ensure_ascii=False)} may be any of {len(found)} nodes: {_listed(found)}.",
                hint="Choose one by its number, or by its place with --at.",
            )
        return touched[0] if len(found) > 1 else found[0]

    def at(self, x_percent: float, y_percent: float) -> Seen:
        """The smallest node worth showing at a point of the display.

        Raises:
            NotFoundError: ``NODE_NOT_FOUND``.
        """
        display = self.tree.display
        x = display.left + (display.right - display.left) * x_percent / 100
        y = display.top + (display.bottom - display.top) * y_percent / 100
        there = [seen for seen in self.useful() if _contains(seen, x, y)]
        if not there:
            raise NotFoundError("NODE_NOT_FOUND", f"there is nothing at {x_percent:g}%,{y_percent:g}%.")
        return min(there, key=lambda seen: (_area(seen), -seen.number))


def screen_document(device: str, view: ScreenView, shown: Sequence[Seen]) -> Document:
    """The look for programs (docs/cli.md, Screen)."""
    tree = view.tree
    return {
        "device": device,
        "packageName": tree.package_name or None,
        "activityName": tree.activity_name or None,
        "display": _bounds_document(tree.display),
        "rotation": tree.rotation,
        "keyboard": _bounds_document(tree.keyboard) if tree.HasField("keyboard") else None,
        "nodes": [node_document(seen) for seen in shown],
        "omitted": tree.omitted,
    }


def node_document(seen: Seen) -> Document:
    """A node for programs (docs/cli.md, Node)."""
    node = seen.node
    return {
        "number": seen.number,
        "parent": node.parent if node.parent >= 0 else None,
        "text": node.text,
        "description": node.description,
        "hint": node.hint,
        "resourceId": node.resource_id,
        "className": node.class_name,
        "packageName": node.package_name,
        "bounds": _bounds_document(node.bounds),
        "flags": list(node.flags),
        "selectors": [
            {"selector": selector_of(each.selector_json), "note": each.note or None} for each in node.offered
        ],
        "rejected": [{"selector": selector_of(each.selector_json), "why": each.why} for each in node.rejected],
    }


def selector_of(text: str) -> Mapping[str, object]:
    """A selector as an object."""
    found: Mapping[str, object] = json.loads(text)
    return found


def escaped(text: str) -> str:
    """The text as a document writes it, where ``${`` begins a reference."""
    return text.replace("${", "$${")


def _visible(seen: Seen) -> bool:
    return "visible" in seen.node.flags


def _says(seen: Seen) -> bool:
    return bool(seen.label) or seen.is_field or seen.touched


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _listed(nodes: Sequence[Seen]) -> str:
    named = ", ".join(seen.named() for seen in nodes[:MAX_NAMED])
    return f"{named} and {len(nodes) - MAX_NAMED} more" if len(nodes) > MAX_NAMED else named


def _contains(seen: Seen, x: float, y: float) -> bool:
    bounds = seen.node.bounds
    return bounds.left <= x < bounds.right and bounds.top <= y < bounds.bottom


def _area(seen: Seen) -> int:
    bounds = seen.node.bounds
    return (bounds.right - bounds.left) * (bounds.bottom - bounds.top)


def _bounds_document(bounds: object) -> Document:
    return {side: getattr(bounds, side) for side in ("left", "top", "right", "bottom")}
