"""Texts in quotes are kept whole while a description is taken apart: a mark stands in their place. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from droidfleet_designer.practice.wishes import Name
from droidfleet_shared.protocol.text import normalise

_QUOTED = re.compile(
    r"\"([^\"]+)\"|“([^”]+)”|「([^」]+)」|『([^』]+)』|《([^》]+)》|\u2018([^\u2019]+)\u2019|(?<!\w)'([^']+)'(?!\w)|`([^`]+)`"
)
_OPEN, _CLOSE = "\ue000", "\ue001"
MARK = f"{_OPEN}\\d+{_CLOSE}"
"""A pattern of what stands in a quoted text's place: characters of no script, which descriptions do not hold."""

_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
_BEFORE = re.compile(r"^(?:(?:the|a|an|on|at)\s+)+|^(?:那个|这个)", re.IGNORECASE)
_KIND = re.compile(
    r"\s+(?:button|icon|link|tab|option|entry|item|row|field|switch|box|page|text|message|app)$"
    r"|\s*(?:按钮|按键|图标|链接|标签|选项|条目|输入框|文本框|开关|页面|应用|这一项|一项|字样|字段)$",
    re.IGNORECASE,
)
_KIND_BEFORE = re.compile(
    r"^(?:button|icon|link|tab|option|entry|item|row|field|switch|box|text|word)\s+", re.IGNORECASE
)

_WIDE = str.maketrans("\uff0c\uff1b\uff01\uff1f\uff1a", ",;!?:")
"""Chinese punctuation, read as the other."""

MAX_NAME = 120
"""Characters: a longer name is a sentence that was not understood."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """A description with marks for what was in quotes."""

    text: str
    quoted: tuple[str, ...]

    def shown(self, part: str) -> str:
        """A part of the text as the person wrote it, but with plain quotes."""
        return _MARK.sub(lambda found: f'"{self.quoted[int(found[1])]}"', part).strip()

    def literal(self, part: str) -> str | None:
        """The text that a part stands for: a quoted one, or the words as they are; None: it is some of both."""
        part = part.strip()
        found = _MARK.fullmatch(part)
        if found is not None:
            return self.quoted[int(found[1])]
        return None if _MARK.search(part) else part or None

    def name(self, part: str) -> Name | None:
        """What a part calls a thing; None: it says more than a name does."""
        whole = normalise(part)
        bare = _KIND_BEFORE.sub("", _BEFORE.sub("", _KIND.sub("", whole)))
        found = _MARK.fullmatch(bare)
        if found is not None:
            return Name(normalise(self.quoted[int(found[1])]), quoted=True)
        if not bare or _MARK.search(whole) or len(whole) > MAX_NAME:
            return None
        others = (_BEFORE.sub("", whole), _KIND.sub("", whole), _KIND.sub("", _BEFORE.sub("", whole)))
        return Name(whole, others=tuple(dict.fromkeys(each for each in others if each and each != whole)))


def hidden(text: str) -> Hidden:
    """The text with marks in place of what stands in quotes."""
    quoted: list[str] = []

    def mark(found: re.Match[str]) -> str:
        quoted.append(next(each for each in found.groups() if each is not None))
        return f"{_OPEN}{len(quoted) - 1}{_CLOSE}"

    plain = text.replace(_OPEN, " ").replace(_CLOSE, " ")
    return Hidden(_QUOTED.sub(mark, plain).translate(_WIDE), tuple(quoted))
