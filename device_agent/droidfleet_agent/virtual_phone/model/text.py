"""How much room a text takes. Estimated without a font, so that a layout is the same on every machine."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

LINE_HEIGHT = 1.33
"""Lines are this many times the font size apart, as Roboto's metrics have it."""

_NARROW = frozenset("iljtfrI.,:;'|!()[] `")
_WIDE = frozenset("mwMW@%")
_NARROW_EM, _WIDE_EM, _CAPITAL_EM, _NORMAL_EM, _FULL_EM = 0.31, 0.86, 0.66, 0.55, 1.0
MAX_LINES = 200
"""Lines that are laid out; more cannot be on any display."""


@lru_cache(maxsize=4096)
def char_width(char: str) -> float:
    """Width of one character in em."""
    if char in _NARROW:
        return _NARROW_EM
    if char in _WIDE:
        return _WIDE_EM
    if char.isascii():
        return _CAPITAL_EM if char.isupper() else _NORMAL_EM
    if unicodedata.combining(char):
        return 0.0
    return _FULL_EM if unicodedata.east_asian_width(char) in "WF" else _NORMAL_EM


def text_width(text: str, size: float) -> float:
    """Pixels of one line of text at a font size in pixels."""
    return sum(map(char_width, text)) * size


@lru_cache(maxsize=4096)
def wrapped(text: str, size: float, max_width: int, max_lines: int = MAX_LINES) -> tuple[str, ...]:
    """The lines that the text breaks into; the last one ends in an ellipsis when lines were left out."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        lines += _wrap_paragraph(paragraph, size, max_width)
        if len(lines) > max_lines:
            break
    if len(lines) > max_lines:
        lines = lines[:max_lines]
        lines[-1] = lines[-1][: max(0, len(lines[-1]) - 1)] + "…"
    return tuple(lines)


def _wrap_paragraph(paragraph: str, size: float, max_width: int) -> list[str]:
    if text_width(paragraph, size) <= max_width:
        return [paragraph]
    lines: list[str] = []
    line = ""
    width = 0.0
    for char in paragraph:
        step = char_width(char) * size
        if line and width + step > max_width:
            cut = line.rfind(" ") + 1
            if cut > len(line) // 2 and char != " ":
                lines.append(line[: cut - 1])
                line = line[cut:]
            else:
                lines.append(line)
                line = ""
            width = text_width(line, size)
            if len(lines) > MAX_LINES:
                return lines
        line += char
        width += step
    return [*lines, line]


@lru_cache(maxsize=4096)
def text_size(text: str, size: float, max_width: int, max_lines: int = MAX_LINES) -> tuple[int, int]:
    """Width and height in pixels of the text laid out in at most ``max_width``."""
    if not text:
        return 0, round(size * LINE_HEIGHT)
    lines = wrapped(text, size, max(1, max_width), max_lines)
    width = max(text_width(line, size) for line in lines)
    return min(max_width, int(width) + 1), round(len(lines) * size * LINE_HEIGHT)
