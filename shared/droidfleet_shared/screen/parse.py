"""Reads the phone's XML into nodes. Owns every tolerance for what phones really write; decides nothing.

The format is uiautomator2's ``dumpWindowHierarchy`` (AOSP ``AccessibilityNodeInfoDumper``): ``<hierarchy rotation>``
holds one root node for each window, in no order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from xml.parsers import expat

from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.screen.node import Bounds, Node

MAX_NODES = 20_000
"""Far above any real screen (a few thousand at most); a dump beyond it is a defect of the app or of the phone."""

MAX_DEPTH = 200
"""The phone's own server cuts at 50 by default; deeper trees would only cost time."""

_NO_BOUNDS = Bounds(0, 0, 0, 0)
_BOUNDS = re.compile(r"\[(-?\d{1,9}),(-?\d{1,9})\]\[(-?\d{1,9}),(-?\d{1,9})\]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,10}));")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_TOLERATED = frozenset(
    {
        expat.errors.codes[expat.errors.XML_ERROR_BAD_CHAR_REF],
        expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN],
    }
)


class ScreenUnreadableError(DroidfleetError):
    """The phone's answer is not a window hierarchy. ``raw`` is what it sent."""

    def __init__(self, reason: str, raw: str) -> None:
        super().__init__(
            "SCREEN_UNREADABLE",
            f"the phone's screen dump cannot be read: {reason}.",
            hint="Look at the raw dump that is kept with the result.",
        )
        self.raw = raw


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One dump: a root for each window, and the display's rotation (0 to 3, quarter turns)."""

    roots: tuple[Node, ...]
    rotation: int


def parse(xml: str) -> Hierarchy:
    """Reads a dump.

    Control characters, raw or as references, become ``.`` as they do in the phone's own dump; a missing or malformed
    attribute takes its neutral value (a node without legal bounds has no area, so it is never a target).

    Raises:
        ScreenUnreadableError: cut, not well-formed, not a hierarchy, or larger than any real screen.
    """
    try:
        return _Reader().read(xml)
    except expat.ExpatError as error:
        if error.code not in _TOLERATED:
            raise ScreenUnreadableError(_reason(error), xml) from error
    except _NotAHierarchyError as error:
        raise ScreenUnreadableError(str(error), xml) from error
    try:
        return _Reader().read(_ILLEGAL.sub(".", _REFERENCE.sub(_legal_reference, xml)))
    except expat.ExpatError as error:
        raise ScreenUnreadableError(_reason(error), xml) from error
    except _NotAHierarchyError as error:
        raise ScreenUnreadableError(str(error), xml) from error


@lru_cache(maxsize=8_192)
def parse_bounds(text: str) -> Bounds:
    """``[l,t][r,b]`` as a rectangle; anything else is one without area."""
    found = _BOUNDS.fullmatch(text)
    return Bounds(*map(int, found.groups())) if found else _NO_BOUNDS


class _NotAHierarchyError(Exception):
    """Well-formed so far, and not what a phone dumps."""


class _Reader:
    """One pass of expat over one dump; the open nodes are a stack, so depth costs no recursion."""

    def __init__(self) -> None:
        self._roots: list[Node] = []
        self._open: list[Node] = []
        self._rotation = 0
        self._count = 0
        self._seen_hierarchy = False

    def read(self, xml: str) -> Hierarchy:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.StartDoctypeDeclHandler = self._doctype
        try:
            data = xml.encode()
        except UnicodeEncodeError:
            data = _ILLEGAL.sub(".", xml).encode()
        parser.Parse(data, True)
        return Hierarchy(tuple(self._roots), self._rotation)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._seen_hierarchy:
            if tag != "hierarchy":
                raise _NotAHierarchyError(f"it begins with <{tag[:40]}>, not with <hierarchy>")
            self._seen_hierarchy = True
            rotation = attributes.get("rotation", "0")
            self._rotation = int(rotation) % 4 if rotation.isdecimal() and len(rotation) < 9 else 0
            return
        self._count += 1
        if self._count > MAX_NODES or len(self._open) >= MAX_DEPTH:
            raise _NotAHierarchyError(f"it holds more than {MAX_NODES} nodes or is nested deeper than {MAX_DEPTH}")
        parent = self._open[-1] if self._open else None
        node = _node(attributes, parent)
        (self._roots if parent is None else parent.children).append(node)
        self._open.append(node)

    def _end(self, tag: str) -> None:
        if self._open:
            self._open.pop()

    def _doctype(self, *_declaration: object) -> None:
        raise _NotAHierarchyError("it declares a document type, which no phone does")


def _node(attributes: dict[str, str], parent: Node | None) -> Node:
    get = attributes.get
    index = get("index", "0")
    order = get("drawing-order", "0")
    # By position: with twenty names a look at a large screen takes a fifth longer.
    return Node(
        get("text", ""),
        get("content-desc", ""),
        get("resource-id", ""),
        get("class", ""),
        get("package", ""),
        get("hint", ""),
        parse_bounds(get("bounds", "")),
        int(index) if index.isdecimal() and len(index) < 9 else 0,
        get("checkable") == "true",
        get("checked") == "true",
        get("clickable") == "true",
        get("enabled") != "false",
        get("focusable") == "true",
        get("focused") == "true",
        get("scrollable") == "true",
        get("long-clickable") == "true",
        get("password") == "true",
        get("selected") == "true",
        get("visible-to-user") != "false",
        int(order) if order.isdecimal() and len(order) < 9 else 0,
        parent,
    )


def _legal_reference(found: re.Match[str]) -> str:
    code = int(found[1], 16) if found[1] else int(found[2])
    legal = code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
    return found[0] if legal else "."


def _reason(error: expat.ExpatError) -> str:
    return f"{expat.errors.messages[error.code]} at line {error.lineno}, column {error.offset}"
