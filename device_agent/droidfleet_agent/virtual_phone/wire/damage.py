"""How a hierarchy dump is damaged by a fault. Pure."""

from __future__ import annotations

import re

_REPEATABLE = re.compile(r' (text="[^"]*")')


def cut(xml: str) -> str:
    """The dump broken off in the middle, inside an attribute when there is one: what a dying server leaves."""
    half = len(xml) // 2
    inside = xml.find('="', half)
    return xml[: inside + 2] if inside >= 0 else xml[:half]


def repeat_attribute(xml: str) -> str:
    """The dump with the first node's ``text`` attribute twice: well meant, and not well-formed."""
    return _REPEATABLE.sub(r" \1 \1", xml, count=1)
