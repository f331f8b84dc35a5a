"""Writes into the effect log what reaches the phone from outside. Knows which texts must not be written."""

from __future__ import annotations

from collections.abc import Mapping

from droidfleet_agent.virtual_phone.effects import EffectLog, Target
from droidfleet_agent.virtual_phone.model.keys import is_control
from droidfleet_agent.virtual_phone.model.texts import Texts
from droidfleet_agent.virtual_phone.model.touch import Hit
from droidfleet_agent.virtual_phone.model.view import ViewNode
from droidfleet_agent.virtual_phone.model.windows import Windows

_PLACE = ("x", "y")


class Recorder:
    """One phone's pen. Records before the phone acts, so that what an app makes of it comes after."""

    def __init__(self, effects: EffectLog, windows: Windows, texts: Texts) -> None:
        self._effects = effects
        self._windows = windows
        self._texts = texts

    def note(self, kind: str, *, package: str | None = None, **details: object) -> None:
        """An effect without a target; its package is the active window's unless one is given."""
        self._note(kind, details, package)

    def _note(self, kind: str, details: Mapping[str, object], package: str | None = None) -> None:
        front = self._windows.active().root.package if package is None else package
        self._effects.record(kind, package=front, details=details)

    def hit(self, kind: str, hit: Hit | None, **details: object) -> None:
        """An effect on what lies under a point. A key of the keyboard is not told while it types a password."""
        if hit is None:
            self._note(kind, details)
            return
        node = hit.taker or hit.deepest
        if hit.window.name == "keyboard" and self._secret():
            told: Mapping[str, object] = {key: value for key, value in details.items() if key not in _PLACE}
            target = Target("", "", "", node.class_name, (0, 0, 0, 0))
        else:
            told, target = details, _target(node)
        self._effects.record(kind, package=node.package, target=target, details=told)

    def on(self, kind: str, node: ViewNode, **details: object) -> None:
        """An effect on a node that was named, not touched."""
        self._effects.record(kind, package=node.package, target=_target(node), details=details)

    def text(self, kind: str, node: ViewNode | None, text: str) -> None:
        """Text on its way into a field; of a password only the length."""
        details: dict[str, object] = {"length": len(text)}
        if node is None or not node.secret:
            details["text"] = text
        if node is None:
            self._note(kind, details)
        else:
            self.on(kind, node, **details)

    def key(self, code: int, meta: int) -> None:
        """A key by its code; none is told while it types a password."""
        hidden = not is_control(code) and self._secret()
        self.note("key", code=None if hidden else code, meta=meta)

    def _secret(self) -> bool:
        focused = self._texts.focused()
        return focused is not None and focused.secret


def _target(node: ViewNode) -> Target:
    bounds = node.visible_bounds
    return Target(
        text=node.text or ("" if node.description else node.label()),
        description=node.description,
        resource_id=node.resource_id,
        class_name=node.class_name,
        bounds=(bounds.left, bounds.top, bounds.right, bounds.bottom),
    )
