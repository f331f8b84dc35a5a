"""One look as a message: the nodes of the active window with their selectors, cut to fit. Pure; call it in a thread.

What a password field holds is left out.
"""

from __future__ import annotations

import json

from droidfleet_shared.bus.session import MAX_TEXT, OfferedSelector, RejectedSelector, SeenNode, SeenTree
from droidfleet_shared.protocol.result import BoundsModel
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.suggest import Suggester, Suggestions

FLAGS = (
    "checkable",
    "checked",
    "clickable",
    "enabled",
    "focused",
    "long_clickable",
    "password",
    "scrollable",
    "selected",
)
"""The fields of a node that a tree lists by their names, where they are true. `visible` is decided by the matcher."""


def seen_tree(matcher: Matcher, *, max_bytes: int, xml: str = "") -> SeenTree:
    """The look as a message of at most ``max_bytes``.

    Where it does not fit: first only the best selector of each node, then a shorter ``xml``, then fewer nodes.
    """
    screen = matcher.screen
    nodes = _nodes(matcher)
    keyboard = screen.keyboard
    whole = SeenTree(
        package_name=screen.package,
        activity_name=screen.activity,
        display=_bounds(screen.display),
        keyboard=_bounds(keyboard) if keyboard is not None else None,
        rotation=screen.rotation,
        nodes=nodes,
        xml=xml,
    )
    size = len(whole.encode())
    if size <= max_bytes:
        return whole
    nodes = tuple(node.model_copy(update={"offered": node.offered[:1], "rejected": ()}) for node in nodes)
    fewer = whole.model_copy(update={"nodes": nodes, "fewer_selectors": True})
    over = len(fewer.encode()) - max_bytes
    if over > 0 and xml:
        fewer = fewer.model_copy(update={"xml": _cut_xml(xml, over)})
        over = len(fewer.encode()) - max_bytes
    while over > 0 and nodes:
        # Parents stand before their children, so that the beginning of the list is a tree of its own.
        kept = max(0, len(nodes) * 9 // 10 - 1)
        nodes = nodes[:kept]
        fewer = fewer.model_copy(update={"nodes": nodes, "omitted": len(whole.nodes) - kept})
        over = len(fewer.encode()) - max_bytes
    return fewer


def _nodes(matcher: Matcher) -> tuple[SeenNode, ...]:
    root = matcher.screen.root
    found = list(root.walk()) if root is not None else []
    places = {id(node): place for place, node in enumerate(found)}
    visible = {id(node) for node in matcher.visible_nodes()}
    suggester = Suggester(matcher)
    return tuple(
        _node(
            node,
            parent=places[id(node.parent)] if node.parent is not None else -1,
            bounds=matcher.visible_bounds(node) if id(node) in visible else node.bounds,
            visible=id(node) in visible,
            suggestions=suggester.suggest(node),
        )
        for node in found
    )


def _node(node: Node, *, parent: int, bounds: Bounds, visible: bool, suggestions: Suggestions) -> SeenNode:
    flags = [name for name in FLAGS if getattr(node, name)]
    return SeenNode(
        parent=parent,
        text="" if node.password and node.text != node.hint else node.text[:MAX_TEXT],
        description=node.description[:MAX_TEXT],
        hint=node.hint[:MAX_TEXT],
        resource_id=node.resource_id[:MAX_TEXT],
        class_name=node.class_name[:MAX_TEXT],
        package_name=node.package[:MAX_TEXT],
        bounds=_bounds(bounds),
        flags=tuple([*flags, "visible"] if visible else flags),
        offered=tuple(OfferedSelector(selector=_json(each.selector), note=each.note) for each in suggestions.offered),
        rejected=tuple(RejectedSelector(selector=_json(each.selector), why=each.why) for each in suggestions.rejected),
    )


def _json(selector: Selector) -> str:
    return json.dumps(selector.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False)


def _bounds(bounds: Bounds) -> BoundsModel:
    return BoundsModel(left=bounds.left, top=bounds.top, right=bounds.right, bottom=bounds.bottom)


def _cut_xml(xml: str, over: int) -> str:
    """At least ``over`` bytes less, in JSON, which writes a character as one byte at least."""
    kept = max(0, len(xml) - over)
    for _ in range(2):
        marker = f"\n<!-- cut here: {len(xml) - kept} characters more -->"
        kept = max(0, len(xml) - over - len(json.dumps(marker)))
    return f"{xml[:kept]}\n<!-- cut here: {len(xml) - kept} characters more -->"
