"""The window hierarchy as the uiautomator2 server dumps it: attribute order, escapes, gaps and all.

After AOSP's `AccessibilityNodeInfoDumper` and Android's `KXmlSerializer`: an attribute is quoted with ``"`` unless its
value holds one; characters that XML 1.1 restricts, and each half of a surrogate pair, become a dot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Window

_HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
_BREAK = "\r\n"
_DISPLAY_ID = 0

_SPECIAL = re.compile("[&<>\"'\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufddf\ufffe\uffff\U00010000-\U0010ffff]")
_RESTRICTED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufddf\ufffe\uffff]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_NAF_EXCLUDED = ("GridView", "GridLayout", "ListView", "TableLayout")
_WORD = {True: "true", False: "false"}


def hierarchy(windows: Sequence[Window], rotation: int, *, compressed: bool, max_depth: int) -> str:
    """The document that `dumpWindowHierarchy` answers. Levels below ``max_depth`` are cut; windows are the first."""
    if not windows or max_depth < 1:
        return f'{_HEAD}{_BREAK}<hierarchy rotation="{rotation}" />'
    body = "".join(_window(window, compressed=compressed, max_depth=max_depth) for window in windows)
    return f'{_HEAD}{_BREAK}<hierarchy rotation="{rotation}">{body}{_BREAK}</hierarchy>'


def stock_hierarchy(window: Window, rotation: int) -> str:
    """What `uiautomator dump` writes: one window on one line, without the attributes that uiautomator2 adds."""
    out: list[str] = []
    _stock(window.root, 0, out)
    return f'{_HEAD}<hierarchy rotation="{rotation}">{"".join(out)}</hierarchy>'


def dump_bounds(node: ViewNode) -> tuple[int, int, int, int]:
    """The rectangle that a dump shows: the visible part, or the raw one of a node that does not overlap the display."""
    if node.has_area:
        return node.seen_left, node.seen_top, node.seen_right, node.seen_bottom
    return node.left, node.top, node.right, node.bottom


def _window(window: Window, *, compressed: bool, max_depth: int) -> str:
    kept = window.xml.get((compressed, max_depth))
    if kept is None:
        out: list[str] = []
        if compressed:
            _compressed(window.root, 0, 1, max_depth, out)
        else:
            _node(window.root, 1, max_depth, out)
        kept = window.xml[(compressed, max_depth)] = "".join(out)
    return kept


def _node(node: ViewNode, depth: int, max_depth: int, out: list[str]) -> None:
    indent = _BREAK + "  " * depth
    out.append(f"{indent}<node{_attributes(node, node.index)}")
    start = len(out)
    if depth < max_depth:
        for child in node.told():
            _node(child, depth + 1, max_depth, out)
    if len(out) == start:
        out.append(" />")
    else:
        out[start - 1] += ">"
        out.append(f"{indent}</node>")


def _compressed(node: ViewNode, index: int, depth: int, max_depth: int, out: list[str]) -> None:
    indent = _BREAK + "  " * depth
    children = _important(node) if depth < max_depth else []
    out.append(f"{indent}<node{_attributes(node, index)}{'>' if children else ' />'}")
    for at, child in enumerate(children):
        _compressed(child, at, depth + 1, max_depth, out)
    if children:
        out.append(f"{indent}</node>")


def _important(node: ViewNode) -> list[ViewNode]:
    """The children that accessibility finds important; what is below an unimportant one moves up to its place."""
    found: list[ViewNode] = []
    for child in node.told():
        if child.text or child.description or child.clickable or child.scrollable or child.focusable or child.checkable:
            found.append(child)
        else:
            found += _important(child)
    return found


def _attributes(node: ViewNode, index: int) -> str:
    left, top, right, bottom = dump_bounds(node)
    word = _WORD
    return (
        f'{_naf(node)} index="{index}" text={_quoted(node.text)} resource-id={_quoted(node.resource_id)}'
        f" class={_quoted(node.class_name)} package={_quoted(node.package)} content-desc={_quoted(node.description)}"
        f' checkable="{word[node.checkable]}" checked="{word[node.checked]}" clickable="{word[node.clickable]}"'
        f' enabled="{word[node.enabled]}" focusable="{word[node.focusable]}" focused="{word[node.focused]}"'
        f' scrollable="{word[node.scrollable]}" long-clickable="{word[node.long_clickable]}"'
        f' password="{word[node.secret]}" selected="{word[node.selected]}" visible-to-user="{word[node.shown]}"'
        f' bounds="[{left},{top}][{right},{bottom}]" drawing-order="{node.drawing_order}" hint={_quoted(node.hint)}'
        f' display-id="{_DISPLAY_ID}"'
    )


def _stock(node: ViewNode, index: int, out: list[str]) -> None:
    attributes = _attributes(node, index)
    attributes = re.sub(r' visible-to-user="\w+"', "", attributes.partition(" drawing-order=")[0])
    children = node.told()
    out.append(f"<node{attributes}{'>' if children else ' />'}")
    for child in children:
        _stock(child, child.index, out)
    if children:
        out.append("</node>")


def _naf(node: ViewNode) -> str:
    """ "Not accessibility friendly": touchable, and nothing says what it is."""
    if not node.clickable or not node.enabled or node.text or node.description:
        return ""
    if node.class_name.endswith(_NAF_EXCLUDED):
        return ""
    return "" if node.label() else ' NAF="true"'


def _quoted(value: str) -> str:
    if not value:
        return '""'
    if _SPECIAL.search(value) is None:
        return f'"{value}"'
    value = _RESTRICTED.sub(".", _ASTRAL.sub("..", value))
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    value = value.replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")
    if '"' in value:
        return "'" + value.replace("'", "&apos;") + "'"
    return f'"{value}"'
