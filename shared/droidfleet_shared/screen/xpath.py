"""XPath 1.0 over the active window's tree. Owns the translation of nodes to elements and back.

The tree is the one that uiautomator2's users know: ``<hierarchy>`` at the top, each element named by its node's class
(``$ @ # &`` become dots, blank becomes ``node``) with the dump's attributes. Unlike there, ``class`` stays an attribute
too, and a class that cannot be an element's name gives ``node`` instead of breaking the screen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.write import node_attributes

if TYPE_CHECKING:
    from lxml.etree import _Element

_DOTS = str.maketrans("$@#&", "....")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


class WindowTree:
    """One screen as an element tree."""

    def __init__(self, screen: Screen) -> None:
        # Costs 10 MB and 20 ms at import: only tasks that use xpath pay for it.
        from lxml import etree  # noqa: PLC0415

        self._failures = (etree.XPathError, ValueError)  # ValueError: not XML text
        self._nodes: dict[_Element, Node] = {}
        self._top = etree.Element("hierarchy", rotation=str(screen.rotation))
        pending = [(self._top, screen.root)] if screen.root is not None else []
        while pending:
            above, node = pending.pop()
            element = etree.SubElement(above, element_name(node.class_name), _attributes(node))
            self._nodes[element] = node
            pending.extend((element, child) for child in reversed(node.children))

    def find(self, expression: str) -> list[Node]:
        """The nodes that the expression selects, in document order; none when it selects something else.

        An expression that cannot be evaluated selects nothing: the validator has refused what is not XPath.
        """
        try:
            found = self._top.xpath(expression)
        except self._failures:
            return []
        if not isinstance(found, list):
            return []
        return [self._nodes[each] for each in found if not isinstance(each, str | tuple) and each in self._nodes]


def element_name(class_name: str) -> str:
    """The element's name for a class, always a legal one."""
    name = class_name.translate(_DOTS).strip()
    return name if _NAME.fullmatch(name) else "node"


def _attributes(node: Node) -> dict[str, str]:
    return {name: _NOT_XML.sub(".", text) for name, text in node_attributes(node).items()}
