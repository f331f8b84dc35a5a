"""Text that came from elsewhere (a phone's screen, a task, another program) made safe to print on a terminal.

Such text is data: it must not move the cursor, change the title, reverse the reading direction or be taken for Rich
markup. Owns escaping and the formats of times and durations; never prints.
"""

from __future__ import annotations

import re
from datetime import datetime

from rich.text import Text

# C0 and C1 controls, line and paragraph separators, and the marks that reorder what is read. Zero-width joiners stay:
# scripts and emoji need them, and they cannot hide or move anything.
_BEYOND_C0 = r"\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(rf"[\x00-\x1f{_BEYOND_C0}]")
_UNSAFE_IN_JSON = re.compile(rf"[{_BEYOND_C0}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S


def is_safe(text: str) -> bool:
    """Whether the text can be printed as it is."""
    return _UNSAFE.search(text) is None


def escape(text: str) -> str:
    r"""One printable line: what could act on a terminal becomes an escape (``\e``, ``\n``, ``\x07``, ``\u202e``)."""
    return _UNSAFE.sub(_shown, text)


def escape_json(text: str) -> str:
    """JSON text with the same characters as JSON escapes: its value stays what it was. (JSON itself escapes C0.)"""
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def cell(text: str, style: str = "") -> Text:
    """The text for a table's cell; Rich takes a `Text` literally, never as markup."""
    return Text(escape(text), style=style)


def cut(text: str, length: int) -> str:
    """The text in at most ``length`` characters, with an ellipsis where some are missing."""
    return text if len(text) <= length else text[: length - 1] + "…"


def moment(at: datetime | None) -> str:
    """An instant in the reader's time zone, to the second; empty when there is none."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def age(at: datetime | None, now: datetime) -> str:
    """How long ago it was, in one unit: ``12 s ago``, ``3 min ago``; ``never`` when there is none."""
    return "never" if at is None else f"{duration(max(0.0, (now - at).total_seconds()), fine=False)} ago"


def duration(seconds: float, *, fine: bool = True) -> str:
    """A duration in its largest fitting unit; ``fine`` shows tenths of a second below a minute."""
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s" if fine else f"{seconds:.0f} s"
    if seconds < HOUR_S:
        return f"{seconds / MINUTE_S:.0f} min"
    if seconds < DAY_S:
        return f"{seconds / HOUR_S:.0f} h"
    return f"{seconds / DAY_S:.0f} days"


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
