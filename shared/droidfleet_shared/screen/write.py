"""Writes nodes as the phone's XML: the inverse of `parse`, with the dump's own losses (emoji become dots)."""

from __future__ import annotations

from collections.abc import Callable
from xml.sax.saxutils import quoteattr

from droidfleet_shared.protocol.text import dump_form
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.parse import Hierarchy

_WHITE_SPACE = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def text_of(node: Node) -> str:
    """What a node's text is, as it was dumped."""
    return node.text


def write(hierarchy: Hierarchy, *, shown: Callable[[Node], str] = text_of) -> str:
    """The dump of some windows. ``shown`` says what stands for the text of a node."""
    parts = ["<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>", f'<hierarchy rotation="{hierarchy.rotation}">']
    pending: list[Node | None] = list(reversed(hierarchy.roots))
    while pending:
        node = pending.pop()
        if node is None:
            parts.append("</node>")
            continue
        parts.append(f"<node {_attributes(node, shown(node))}>")
        pending.append(None)
        pending.extend(reversed(node.children))
    parts.append("</hierarchy>")
    return "".join(parts)


def node_attributes(node: Node) -> dict[str, str]:
    """The node as the dump's attributes, in its order; texts as they are."""
    return {
        "index": str(node.index),
        "text": node.text,
        "resource-id": node.resource_id,
        "class": node.class_name,
        "package": node.package,
        "content-desc": node.description,
        "checkable": _flag(node.checkable),
        "checked": _flag(node.checked),
        "clickable": _flag(node.clickable),
        "enabled": _flag(node.enabled),
        "focusable": _flag(node.focusable),
        "focused": _flag(node.focused),
        "scrollable": _flag(node.scrollable),
        "long-clickable": _flag(node.long_clickable),
        "password": _flag(node.password),
        "selected": _flag(node.selected),
        "visible-to-user": _flag(node.visible),
        "bounds": _bounds(node.bounds),
        "drawing-order": str(node.drawing_order),
        "hint": node.hint,
    }


def _attributes(node: Node, text: str) -> str:
    attributes = {**node_attributes(node), "text": text}
    return " ".join(f"{name}={quoteattr(dump_form(value), _WHITE_SPACE)}" for name, value in attributes.items())


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _bounds(bounds: Bounds) -> str:
    return f"[{bounds.left},{bounds.top}][{bounds.right},{bounds.bottom}]"
