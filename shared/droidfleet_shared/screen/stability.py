"""Whether what is seen of a node will be the same next time: texts that count, tell the time or name a price, and ids
that a program made up. Pure; a clause for people, or nothing.
"""

from __future__ import annotations

import re

MAX_LABEL = 60
"""Characters. Longer texts are sentences, and sentences are reworded."""

_MONEY = "$€£¥₹"
_OPENING, _CLOSING = r"(\[\uff08", r")\]\uff09"
_AGO = r"(?:s|sec\w*|min\w*|h|hours?|d|days?|weeks?|months?|years?)\s+ago"

_COUNTED = r"(?:items?|messages?|new|notifications?|pieces|results?|unread)"

_CHANGING = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (rf".*[{_MONEY}]\s?\d.*|.*\d\s?[{_MONEY}元].*|.*\b(?:USD|EUR|GBP|CNY)\b.*", "it holds an amount of money"),
        (r".*\b\d{1,2}:\d{2}\b.*", "it holds a time of day"),
        (r".*\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b.*|.*\d+月\d+日.*", "it holds a date"),
        (rf".*\b\d+\s?{_AGO}\b.*|.*\d+\s?(?:秒|分钟|小时|天)前.*", "it says how long ago something was"),
        (rf"\d+\s.*|.*[{_OPENING}]\d+[{_CLOSING}]|.*\b\d+\s{_COUNTED}\b.*|.*\d+\s?[件条个].*", "it counts something"),
        (r".*\d\s?%.*", "it holds a percentage"),
        (r"[\W\d_]*\d[\W\d_]*", "it is a number, and numbers change"),
    )
)
"""The first that fits a whole text, and why it will not stay."""

_MADE_UP = re.compile(r"(?i)(?=.*\d)(?:.*[0-9a-f]{8}.*|.*\d{4}.*)|.*obfuscated.*|:r\w+:")
_PREFIX = re.compile(rf"([^\W\d_][^\d{_MONEY}{_OPENING}]*)[\d{_MONEY}{_OPENING}].*", re.DOTALL)
_LETTERS = re.compile(r"[^\W\d_]")

MIN_PREFIX_LETTERS = 3
"""Fewer letters say too little of what the rest is."""


def changing_text(text: str) -> str:
    """Why a normalised text will not stay the same, as a clause; empty when it looks like a label."""
    if len(text) > MAX_LABEL:
        return f"it is {len(text)} characters long, and long texts are reworded"
    return next((reason for pattern, reason in _CHANGING if pattern.fullmatch(text)), "")


def made_up_id(identity: str) -> str:
    """Why a resource id may be another one next time, as a clause; empty when somebody chose it."""
    return "it looks like an id that a program made up" if _MADE_UP.fullmatch(identity) else ""


def lasting_prefix(text: str) -> str:
    """The words with which a changing text begins and that stay, ``Total:`` of ``Total: $7.90``; empty without any."""
    if len(text) > MAX_LABEL:
        beginning = text[:MAX_LABEL].rpartition(" ")[0]
        return beginning if not changing_text(beginning) else ""
    found = _PREFIX.fullmatch(text)
    prefix = found[1].strip() if found else ""
    return prefix if len(_LETTERS.findall(prefix)) >= MIN_PREFIX_LETTERS else ""
