"""How texts are compared (protocol section 5): one normal form, and the form in which a phone's dump writes emoji.

Both sides of a comparison pass `normalise`. Nothing here is a pattern or syntax; lengths and rules are the validator's.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = re.compile(
    "["
    "\u00ad"  # soft hyphen: invisible unless a line breaks at it
    "\u061c"  # Arabic letter mark
    "\u180e"  # Mongolian vowel separator
    "\u200b-\u200f"  # zero-width space, joiners, left-to-right and right-to-left marks
    "\u202a-\u202e"  # bidirectional embeddings and overrides
    "\u2060-\u2064"  # word joiner and invisible operators
    "\u2066-\u206f"  # bidirectional isolates and deprecated format characters
    "\ufe00-\ufe0f"  # variation selectors (the emoji style mark, say)
    "\ufeff"  # zero-width no-break space, the byte order mark
    "]+"
)
"""Characters without a width of their own: nobody can read them off a screen."""

_NOT_IN_A_DUMP = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufddf\ufffe\uffff]")
"""What the phone's XML writer replaces, one UTF-16 unit at a time (AOSP `AccessibilityNodeInfoDumper`)."""

_BEYOND_BMP = re.compile("[\U00010000-\U0010ffff]")


def normalise(text: str) -> str:
    """The form in which texts are compared: equal for texts that look equal to a person.

    NFC; zero-width and bidirectional marks removed; every run of white space (no-break spaces too) one space; trimmed.
    Applying it twice changes nothing more.
    """
    return " ".join(without_marks(text).split())


def without_marks(text: str) -> str:
    """The text in NFC and without zero-width and bidirectional marks; white space as it is."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text))


def dump_form(text: str) -> str:
    """The text as a phone's hierarchy dump writes it: ``.`` for each half of an emoji and for each control character.

    Equal to ``text`` where the dump keeps everything. Apply before `normalise`.
    """
    return _NOT_IN_A_DUMP.sub(".", _BEYOND_BMP.sub("..", text))
