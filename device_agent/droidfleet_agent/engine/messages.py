"""Words for people about selectors, nodes and screens. Bounded, and never a reason for anything: codes are.

Text from a screen stands in quotes, cut; it is data.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping

from droidfleet_shared.protocol.result import BoundsModel, TargetModel
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.node import Bounds, Node, Screen

MAX_TEXT = 256
"""Characters of a node's text in a result (protocol section 3)."""

ELLIPSIS = "…"
"""Stands where a quoted text goes on."""

MAX_LABEL = 40
MAX_LABELS = 8
MAX_SELECTOR = 300


def target_of(node: Node, bounds: Bounds) -> TargetModel:
    """A node as results show it, with the visible part of its bounds."""
    return TargetModel(
        text=node.text[:MAX_TEXT],
        description=node.description[:MAX_TEXT],
        resource_id=node.resource_id[:MAX_TEXT],
        class_name=node.class_name[:MAX_TEXT],
        bounds=BoundsModel(left=bounds.left, top=bounds.top, right=bounds.right, bottom=bounds.bottom),
    )


def selector_text(selector: Selector) -> str:
    """The selector as the author wrote it, as JSON on one line, cut."""
    return cut(json.dumps(selector.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False), MAX_SELECTOR)


def seen_on(screen: Screen, wanted: Selector | None = None) -> str:
    """A sentence on what the screen shows instead: labels or ids most like the wanted one, else the first labels."""
    if screen.root is None:
        return "No application window is in front."
    nodes = [node for node in screen.root.walk() if node.visible]
    labels = list(dict.fromkeys(label for node in nodes for label in (node.text, node.description) if label))
    near = _near(labels, _texts(wanted) + _descriptions(wanted)) if wanted is not None else []
    if wanted is not None and near:
        texts = {node.text for node in nodes}
        descriptions = {node.description for node in nodes}
        notes = {label: " (a description)" for label in near if _texts(wanted) and label not in texts}
        notes |= {label: " (a text)" for label in near if _descriptions(wanted) and label not in descriptions}
        return f"Alike on the screen: {_listed(near, notes)}."
    if wanted is not None and wanted.resource_id is not None:
        ids = list(dict.fromkeys(_short(node.resource_id) for node in nodes if node.resource_id))
        if near := _near(ids, [_short(wanted.resource_id)]):
            return f"Ids alike on the screen: {_listed(near)}."
    return f"On the screen: {_listed(labels)}." if labels else "The screen shows no text."


def quoted(text: str) -> str:
    """A text from a screen, in quotes, cut."""
    return json.dumps(cut(text, MAX_LABEL), ensure_ascii=False)


def counted(number: int, noun: str) -> str:
    """``1 round``, ``3 rounds``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sentence(text: str) -> str:
    """An error's message as a sentence of its own."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def cut(text: str, length: int) -> str:
    """The text, or its beginning and a mark that it goes on."""
    return text if len(text) <= length else f"{text[: length - 1]}{ELLIPSIS}"


def _texts(wanted: Selector) -> list[str]:
    return [word for word in (wanted.text, wanted.text_contains, wanted.text_starts_with) if word is not None]


def _descriptions(wanted: Selector) -> list[str]:
    words = (wanted.description, wanted.description_contains, wanted.description_starts_with)
    return [word for word in words if word is not None]


def _short(resource_id: str) -> str:
    return resource_id.rpartition("/")[2]


def _near(labels: list[str], words: list[str]) -> list[str]:
    near: list[str] = []
    for word in words:
        near += [label for label in labels if word.casefold() in label.casefold()]
        near += difflib.get_close_matches(word[:MAX_TEXT], [label[:MAX_TEXT] for label in labels], n=3)
    return list(dict.fromkeys(near))


def _listed(labels: list[str], notes: Mapping[str, str] | None = None) -> str:
    shown = ", ".join(f"{quoted(label)}{(notes or {}).get(label, '')}" for label in labels[:MAX_LABELS])
    return shown if len(labels) <= MAX_LABELS else f"{shown} and {len(labels) - MAX_LABELS} more"
