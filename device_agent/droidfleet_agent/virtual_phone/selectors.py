"""uiautomator2 selectors over the view tree: every mask bit, child and sibling chains, Java's patterns.

A selector is the JSON that the uiautomator2 client sends: ``mask`` says which of the named fields count. ``child``
is any descendant, ``sibling`` any other child of the same parent, ``index`` the position in the parent,
``instance`` the i-th match in document order. Only visible nodes match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from droidfleet_agent.virtual_phone.hierarchy import dump_bounds
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_shared.errors import InvalidInputError

MAX_PATTERN = 2_000
"""Characters of one pattern."""
MAX_CHAIN = 20
"""Child and sibling steps of one selector."""

MASK_INDEX = 0x800000
MASK_INSTANCE = 0x1000000

Predicate = Callable[[ViewNode], bool]


class SelectorError(InvalidInputError):
    """A selector that the phone cannot use (a broken pattern, a wrong type)."""


def _equal(read: Callable[[ViewNode], str], word: str) -> Predicate:
    return lambda node: read(node) == word


def _contains(read: Callable[[ViewNode], str], word: str) -> Predicate:
    return lambda node: word in read(node)


def _starts(read: Callable[[ViewNode], str], word: str) -> Predicate:
    return lambda node: read(node).startswith(word)


def _matches(read: Callable[[ViewNode], str], word: str) -> Predicate:
    pattern = java_pattern(word)
    return lambda node: pattern.fullmatch(read(node)) is not None


_TEXT: Callable[[ViewNode], str] = lambda node: node.text  # noqa: E731  # a column of the table below
_DESCRIPTION: Callable[[ViewNode], str] = lambda node: node.description  # noqa: E731
_CLASS: Callable[[ViewNode], str] = lambda node: node.class_name  # noqa: E731
_PACKAGE: Callable[[ViewNode], str] = lambda node: node.package  # noqa: E731
_ID: Callable[[ViewNode], str] = lambda node: node.resource_id  # noqa: E731

_STRINGS: Mapping[int, tuple[str, Callable[[Callable[[ViewNode], str], str], Predicate], Callable[[ViewNode], str]]] = {
    0x1: ("text", _equal, _TEXT),
    0x2: ("textContains", _contains, _TEXT),
    0x4: ("textMatches", _matches, _TEXT),
    0x8: ("textStartsWith", _starts, _TEXT),
    0x10: ("className", _equal, _CLASS),
    0x20: ("classNameMatches", _matches, _CLASS),
    0x40: ("description", _equal, _DESCRIPTION),
    0x80: ("descriptionContains", _contains, _DESCRIPTION),
    0x100: ("descriptionMatches", _matches, _DESCRIPTION),
    0x200: ("descriptionStartsWith", _starts, _DESCRIPTION),
    0x80000: ("packageName", _equal, _PACKAGE),
    0x100000: ("packageNameMatches", _matches, _PACKAGE),
    0x200000: ("resourceId", _equal, _ID),
    0x400000: ("resourceIdMatches", _matches, _ID),
}
_FLAGS: Mapping[int, tuple[str, Callable[[ViewNode], bool]]] = {
    0x400: ("checkable", lambda node: node.checkable),
    0x800: ("checked", lambda node: node.checked),
    0x1000: ("clickable", lambda node: node.clickable),
    0x2000: ("longClickable", lambda node: node.long_clickable),
    0x4000: ("scrollable", lambda node: node.scrollable),
    0x8000: ("enabled", lambda node: node.enabled),
    0x10000: ("focusable", lambda node: node.focusable),
    0x20000: ("focused", lambda node: node.focused),
    0x40000: ("selected", lambda node: node.selected),
}


def find(roots: Iterable[ViewNode], selector: Mapping[str, object], *, use_instance: bool = True) -> list[ViewNode]:
    """Every match below the roots, in document order; with ``instance`` at most one.

    ``use_instance`` false ignores the instance of the last selector of the chain, as `count` has to.
    """
    chain = _chain(selector)
    found = _select([node for root in roots for node in _visible(root)], selector, use_instance or bool(chain))
    for position, (kind, step) in enumerate(chain):
        near = _below(found) if kind == "child" else _beside(found)
        found = _select(near, step, use_instance or position < len(chain) - 1)
    return found


def uses_ui_selector(selector: Mapping[str, object]) -> bool:
    """Whether the real server takes its older path (UiSelector), which knows index, instance, child and sibling."""
    return bool(_mask(selector) & (MASK_INDEX | MASK_INSTANCE)) or bool(selector.get("childOrSibling"))


def object_info(node: ViewNode, *, with_resource_name: bool) -> dict[str, object]:
    """The ObjInfo that the server answers for a node."""
    left, top, right, bottom = dump_bounds(node)
    seen = node.visible_bounds
    return {
        "bounds": {"left": left, "top": top, "right": right, "bottom": bottom},
        "visibleBounds": {"left": seen.left, "top": seen.top, "right": seen.right, "bottom": seen.bottom},
        "childCount": len(node.told()),
        "className": node.class_name,
        "contentDescription": node.description,
        "packageName": node.package,
        "text": node.text,
        "resourceName": (node.resource_id or None) if with_resource_name else None,
        "checkable": node.checkable,
        "checked": node.checked,
        "clickable": node.clickable,
        "enabled": node.enabled,
        "focusable": node.focusable,
        "focused": node.focused,
        "longClickable": node.long_clickable,
        "scrollable": node.scrollable,
        "selected": node.selected,
    }


def _visible(root: ViewNode) -> Iterable[ViewNode]:
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(node.told()))


def _below(nodes: list[ViewNode]) -> list[ViewNode]:
    found = {id(inner): inner for node in nodes for inner in _visible(node) if inner is not node}
    return list(found.values())


def _beside(nodes: list[ViewNode]) -> list[ViewNode]:
    found = {
        id(other): other
        for node in nodes
        if node.parent is not None
        for other in node.parent.told()
        if other is not node
    }
    return list(found.values())


def _select(nodes: list[ViewNode], selector: Mapping[str, object], use_instance: bool) -> list[ViewNode]:
    predicates = _predicates(selector)
    found = [node for node in nodes if all(predicate(node) for predicate in predicates)]
    if use_instance and _mask(selector) & MASK_INSTANCE:
        instance = _integer(selector, "instance")
        return found[instance : instance + 1] if instance >= 0 else []
    return found


def _predicates(selector: Mapping[str, object]) -> list[Predicate]:
    mask = _mask(selector)
    predicates: list[Predicate] = []
    for bit, (field, make, read) in _STRINGS.items():
        if mask & bit:
            word = selector.get(field)
            if not isinstance(word, str):
                raise SelectorError("BAD_SELECTOR", f"The selector's '{field}' is {word!r} and must be a text.")
            predicates.append(make(read, word))
    for bit, (field, flag) in _FLAGS.items():
        if mask & bit:
            wanted = selector.get(field)
            if not isinstance(wanted, bool):
                raise SelectorError(
                    "BAD_SELECTOR", f"The selector's '{field}' is {wanted!r} and must be true or false."
                )
            predicates.append(_flag(flag, wanted))
    if mask & MASK_INDEX:
        index = _integer(selector, "index")
        predicates.append(lambda node: node.index == index)
    return predicates


def _flag(flag: Callable[[ViewNode], bool], wanted: bool) -> Predicate:
    return lambda node: flag(node) is wanted


def _mask(selector: Mapping[str, object]) -> int:
    return _integer(selector, "mask")


def _integer(selector: Mapping[str, object], field: str) -> int:
    value = selector.get(field, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SelectorError("BAD_SELECTOR", f"The selector's '{field}' is {value!r} and must be a whole number.")
    return value


def _chain(selector: Mapping[str, object]) -> list[tuple[str, Mapping[str, object]]]:
    kinds = selector.get("childOrSibling") or []
    steps = selector.get("childOrSiblingSelector") or []
    if not isinstance(kinds, list) or not isinstance(steps, list) or len(kinds) != len(steps) or len(kinds) > MAX_CHAIN:
        raise SelectorError("BAD_SELECTOR", "The selector's child and sibling lists do not fit together.")
    chain: list[tuple[str, Mapping[str, object]]] = []
    for kind, step in zip(kinds, steps, strict=True):
        if kind not in ("child", "sibling") or not isinstance(step, Mapping):
            raise SelectorError("BAD_SELECTOR", f"The selector has a step of the kind {kind!r}.")
        chain.append((kind, step))
    return chain


_JAVA_CLASSES: Mapping[str, str] = {
    "L": r"[^\W\d_]",
    "IsAlphabetic": r"[^\W\d_]",
    "Alpha": "[A-Za-z]",
    "Lu": "[A-Z]",
    "Upper": "[A-Z]",
    "Ll": "[a-z]",
    "Lower": "[a-z]",
    "N": r"\d",
    "Nd": r"\d",
    "Digit": "[0-9]",
    "Alnum": "[A-Za-z0-9]",
    "Punct": r"[!-/:-@\[-`{-~]",
    "P": r"[^\w\s]",
    "Space": r"\s",
    "IsHan": "[\u3400-\u9fff]",
    "script=Han": "[\u3400-\u9fff]",
}
_JAVA_ESCAPES = {"z": r"\Z", "Z": r"\Z", "h": r"[ \t\xa0\u2000-\u200a\u3000]", "R": r"(?:\r\n|[\n\r])"}
_JAVA_TOKEN = re.compile(
    r"\\Q(.*?)(?:\\E|$)|\\[pP]\{(\w+|script=\w+)\}|\\([zZhR])|\(\?<([a-zA-Z]\w*)>|\\.|.", re.DOTALL
)


@lru_cache(maxsize=256)
def java_pattern(pattern: str) -> re.Pattern[str]:
    r"""A Java pattern as a Python one: ``\Q..\E``, ``\p{..}`` classes, named groups. Raises `SelectorError`."""
    if len(pattern) > MAX_PATTERN:
        raise SelectorError(
            "BAD_PATTERN", f"The pattern has {len(pattern)} characters; at most {MAX_PATTERN} are allowed."
        )

    def translate(match: re.Match[str]) -> str:
        whole = match.group(0)
        quoted, name, escape, group = match.groups()
        if quoted is not None:
            return re.escape(quoted)
        if name is not None:
            if name not in _JAVA_CLASSES:
                raise SelectorError("BAD_PATTERN", f"The pattern class {whole} is not known here.")
            inside = _JAVA_CLASSES[name]
            return inside if whole[1] == "p" else f"(?:(?!{inside})[\\s\\S])"
        if escape is not None:
            return _JAVA_ESCAPES[escape]
        return f"(?P<{group}>" if group is not None else whole

    try:
        return re.compile(_JAVA_TOKEN.sub(translate, pattern))
    except re.error as error:
        raise SelectorError("BAD_PATTERN", f"The pattern '{pattern}' is broken: {error}.") from None
