"""The JSON-RPC methods that are about an object: found by a selector, or by the handle of an object found before."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.phone import Point, VirtualPhone
from droidfleet_agent.virtual_phone.selectors import uses_ui_selector
from droidfleet_agent.virtual_phone.wire.rpc import (
    INVALID_PARAMS,
    Params,
    RpcError,
    Selector,
    Target,
    object_not_found,
    stale_object,
    until,
)

HANDLE_LIFE_S = 60.0
"""Seconds after which the real server forgets a handle."""

MAX_HANDLES = 256
"""Handles of one phone; the oldest is forgotten."""

DEFAULT_WAIT_MS = 20_000
MAX_SWIPES = 500
"""Swipes of one search; the client's own default."""

LONG_PRESS_MS = 1_000
"""UiObject.longClick holds twice the system's long-press time."""

_EDGE_PX = 5
"""UiObject swipes keep this far from the object's edges."""

_DIRECTIONS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


@dataclass(frozen=True, slots=True)
class _Handle:
    node: ViewNode
    until: float


class Objects:
    """Objects of one phone, and the handles given out for them."""

    def __init__(self, phone: VirtualPhone) -> None:
        self.phone = phone
        self._handles: dict[str, _Handle] = {}

    def find(self, target: Target) -> list[ViewNode]:
        """Everything that a target means now. A handle means one node, or none once it has gone."""
        if not isinstance(target, str):
            return self.phone.find(target)
        handle = self._handles.get(target)
        if handle is None or handle.until < self.phone.clock.monotonic():
            self._handles.pop(target, None)
            raise object_not_found(f"handle {target}")
        node = self.phone.current(handle.node)
        return [] if node is None else [node]

    def one(self, target: Target) -> ViewNode:
        """The first node that a target means. Raises `RpcError`: not found, or stale for a handle."""
        nodes = self.find(target)
        if nodes:
            return nodes[0]
        raise stale_object() if isinstance(target, str) else object_not_found(target)

    def exists(self, target: Target) -> bool:
        """Whether a target means anything now."""
        return bool(self.find(target)) if isinstance(target, str) else self.phone.exists(target)

    def within(self, target: Target, pattern: Selector) -> list[ViewNode]:
        """The nodes below a target's node that match ``pattern``."""
        parent = self.one(target)
        inside = set(map(id, parent.walk())) - {id(parent)}
        return [node for node in self.phone.find(pattern) if id(node) in inside]

    def keep(self, node: ViewNode) -> str:
        """A handle for a node."""
        while len(self._handles) >= MAX_HANDLES:
            del self._handles[next(iter(self._handles))]
        handle = str(uuid.uuid4())
        self._handles[handle] = _Handle(node, self.phone.clock.monotonic() + HANDLE_LIFE_S)
        return handle


def _center(node: ViewNode) -> Point:
    return node.visible_bounds.center


def _info(objects: Objects, params: Params) -> object:
    target = params.target(0)
    node = objects.one(target)
    return objects.phone.info(node, None if isinstance(target, str) else target)


def _all_infos(objects: Objects, params: Params) -> object:
    target = params.target(0)
    selector = None if isinstance(target, str) else target
    return [objects.phone.info(node, selector) for node in objects.find(target)]


def _wait_for_exists(objects: Objects, params: Params) -> object:
    target = params.target(0)
    return until(lambda: objects.exists(target), params.seconds(1, DEFAULT_WAIT_MS))


def _wait_until_gone(objects: Objects, params: Params) -> object:
    target = params.target(0)
    return until(lambda: not objects.exists(target), params.seconds(1, DEFAULT_WAIT_MS))


def _click(objects: Objects, params: Params) -> object:
    return objects.phone.tap(*_center(objects.one(params.target(0))))


def _long_click(objects: Objects, params: Params) -> object:
    return objects.phone.tap(*_center(objects.one(params.target(0))), duration_ms=LONG_PRESS_MS)


def _drag_to(objects: Objects, params: Params) -> object:
    start = _center(objects.one(params.target(0)))
    if isinstance(params.value(1), dict | str):
        return objects.phone.drag(start, _center(objects.one(params.target(1))), params.integer(2, 100))
    return objects.phone.drag(start, (params.number(1), params.number(2)), params.integer(3, 100))


def _swipe(objects: Objects, params: Params) -> object:
    """[S, direction, percent, steps] or [S, direction, steps]: along the middle, from the far edge on."""
    direction = _DIRECTIONS.get(params.text(1))
    if direction is None:
        raise RpcError(INVALID_PARAMS, "method parameters invalid", f"a direction is one of {', '.join(_DIRECTIONS)}")
    bounds = objects.one(params.target(0)).visible_bounds
    percent, steps = (params.number(2), params.integer(3)) if len(params) >= 4 else (1.0, params.integer(2))
    x, y = bounds.center
    half_width = direction[0] * max(0.0, (bounds.right - bounds.left) / 2 - _EDGE_PX)
    half_height = direction[1] * max(0.0, (bounds.bottom - bounds.top) / 2 - _EDGE_PX)
    start = (x - half_width, y - half_height)
    end = (start[0] + 2 * half_width * percent, start[1] + 2 * half_height * percent)
    return objects.phone.swipe([start, end], steps)


def _set_text(objects: Objects, params: Params) -> object:
    target, text = params.target(0), params.text(1, "")
    if not isinstance(target, str) and not uses_ui_selector(target) and objects.find(target):
        # The real server's newer path: it taps the object, and then looks for it again.
        objects.phone.tap(*_center(objects.one(target)))
    return objects.phone.set_text(objects.one(target), text)


def _clear_text_field(objects: Objects, params: Params) -> object:
    objects.phone.clear_text(objects.one(params.target(0)))
    return None


def _two_fingers(kind: str) -> Callable[[Objects, Params], object]:
    def gesture(objects: Objects, params: Params) -> object:
        node = objects.one(params.target(0))
        # No app of a scenario reacts to two fingers; that they touched is worth a line in the log.
        objects.phone.effects.record(kind, package=node.package)
        return True

    return gesture


def _scroll(*, forward: bool) -> Callable[[Objects, Params], object]:
    def scroll(objects: Objects, params: Params) -> object:
        return objects.phone.scroll(objects.one(params.target(0)), forward=forward, vertical=params.boolean(1, True))

    return scroll


def _scroll_to_end(*, forward: bool) -> Callable[[Objects, Params], object]:
    def scroll_to_end(objects: Objects, params: Params) -> object:
        target, vertical = params.target(0), params.boolean(1, True)
        for _ in range(min(params.integer(2, MAX_SWIPES), MAX_SWIPES)):
            if not objects.phone.scroll(objects.one(target), forward=forward, vertical=vertical):
                break
        return True

    return scroll_to_end


def _search(objects: Objects, target: Target, vertical: bool, found: Callable[[], ViewNode | None]) -> ViewNode | None:
    """Looks, then from the beginning of the scrollable object to its end, for something."""
    node = found()
    if node is not None:
        return node
    for forward in (False, True):
        for _ in range(MAX_SWIPES):
            if not objects.phone.scroll(objects.one(target), forward=forward, vertical=vertical):
                break
            if (node := found()) is not None:
                return node
    return found()


def _scroll_to(objects: Objects, params: Params) -> object:
    target, wanted = params.target(0), params.target(1)

    def found() -> ViewNode | None:
        return next(iter(objects.find(wanted)), None)

    return _search(objects, target, params.boolean(2, True), found) is not None


def _child_with(holds: Callable[[ViewNode, str], bool]) -> Callable[[Objects, Params], object]:
    def child(objects: Objects, params: Params) -> object:
        target, pattern, wanted = params.target(0), params.selector(1), params.text(2)

        def found() -> ViewNode | None:
            rows = objects.within(target, pattern)
            return next((row for row in rows if any(holds(node, wanted) for node in row.walk())), None)

        node = _search(objects, target, True, found) if params.boolean(3, False) else found()
        if node is None:
            raise object_not_found(f"{wanted!r} within {target!r}")
        return objects.keep(node)

    return child


def _child_by_instance(objects: Objects, params: Params) -> object:
    rows = objects.within(params.target(0), params.selector(1))
    instance = params.integer(2)
    if not 0 <= instance < len(rows):
        raise object_not_found(f"instance {instance} of {len(rows)}")
    return objects.keep(rows[instance])


def _get_child(objects: Objects, params: Params) -> object:
    rows = objects.within(params.target(0), params.selector(1))
    if not rows:
        raise object_not_found(params.selector(1))
    return objects.keep(rows[0])


def _get_from_parent(objects: Objects, params: Params) -> object:
    parent = objects.one(params.target(0)).parent
    siblings = set(map(id, parent.children)) if parent is not None else set()
    found = next((node for node in objects.phone.find(params.selector(1)) if id(node) in siblings), None)
    if found is None:
        raise object_not_found(params.selector(1))
    return objects.keep(found)


OBJECT_METHODS: Mapping[str, Callable[[Objects, Params], object]] = MappingProxyType(
    {
        "exist": lambda objects, params: objects.exists(params.target(0)),
        "count": lambda objects, params: len(objects.find(params.target(0))),
        "objInfo": _info,
        "objInfoOfAllInstances": _all_infos,
        "waitForExists": _wait_for_exists,
        "waitUntilGone": _wait_until_gone,
        "getText": lambda objects, params: objects.one(params.target(0)).text,
        "setText": _set_text,
        "clearTextField": _clear_text_field,
        "click": _click,
        "longClick": _long_click,
        "dragTo": _drag_to,
        "swipe": _swipe,
        "gesture": _two_fingers("gesture"),
        "pinchIn": _two_fingers("pinch_in"),
        "pinchOut": _two_fingers("pinch_out"),
        "flingForward": _scroll(forward=True),
        "flingBackward": _scroll(forward=False),
        "flingToBeginning": _scroll_to_end(forward=False),
        "flingToEnd": _scroll_to_end(forward=True),
        "scrollForward": _scroll(forward=True),
        "scrollBackward": _scroll(forward=False),
        "scrollToBeginning": _scroll_to_end(forward=False),
        "scrollToEnd": _scroll_to_end(forward=True),
        "scrollTo": _scroll_to,
        "childByText": _child_with(lambda node, text: node.text == text),
        "childByDescription": _child_with(lambda node, text: node.description == text),
        "childByInstance": _child_by_instance,
        "getUiObject": lambda objects, params: objects.keep(objects.one(params.target(0))),
        "getChild": _get_child,
        "getFromParent": _get_from_parent,
    }
)
"""Methods whose first parameter is a selector or a handle."""
