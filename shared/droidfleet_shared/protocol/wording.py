"""How messages show what was found: short, quoted, on one line, and never able to disturb a terminal or a log."""

from __future__ import annotations

import json
import re

MAX_SHOWN = 60
"""Characters of a document's own text in one message: enough to recognise it."""

_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)


def shown(value: object, *, limit: int = MAX_SHOWN) -> str:
    """A JSON value as in a document, in backquotes, cut to ``limit`` characters, with its kind where it was cut."""
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 200:
        return "a very large number"  # writing it out may take long, or be refused by Python
    if isinstance(value, str) and len(value) > limit:
        return f"{quoted(json.dumps(value[:limit], ensure_ascii=False)[:-1] + '…')} ({len(value):,} characters)"
    return quoted(json.dumps(value, ensure_ascii=False))


def name(text: str) -> str:
    """A field name, id or word in backquotes."""
    return quoted(cut(text))


def cut(text: str, *, limit: int = MAX_SHOWN) -> str:
    """The text, cut with a mark."""
    return text if len(text) <= limit else text[:limit] + "…"


def quoted(text: str) -> str:
    """The text in backquotes, unprintable characters escaped."""
    return f"`{printable(text)}`"


def printable(text: str) -> str:
    """The text with control, invisible and half characters written as JSON escapes."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def listed(words: list[str], last: str = "and") -> str:
    """``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def described(value: object) -> str:
    """A JSON value with what it is, where that is not plain from how it is shown."""
    kinds = {bool: "a truth value", int: "a whole number", float: "a number with a fraction", str: "a text"}
    kind = kinds.get(type(value))
    return f"{shown(value)}, {kind}" if kind else shown(value)
