"""Letters on pictures: fonts for what is to be written, and lines of text drawn with them."""

from __future__ import annotations

import itertools
from functools import lru_cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from droidfleet_agent.virtual_phone.model.text import LINE_HEIGHT

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Box = tuple[int, int, int, int]

_CJK_FONTS = (
    "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/noto/NotoSansCJK-Regular.ttc",
    "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
    "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",
    "/System/Library/Fonts/PingFang.ttc",
    "C:/Windows/Fonts/msyh.ttc",
)
"""Where fonts with Chinese glyphs usually are; without one such characters are drawn as boxes."""
_LATIN_FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",
    "/System/Library/Fonts/Helvetica.ttc",
    "C:/Windows/Fonts/arial.ttf",
)
"""Where fonts with accented letters and symbols usually are; Pillow's own has few of them."""
_FIRST_WIDE = 0x2E80
"""From here on characters are Chinese, Japanese, Korean or symbols as wide as those."""


def line_width(text: str, size: int) -> float:
    """Pixels that a line of text takes at a font size in pixels."""
    return float(sum(_font_for(part, size).getlength(part) for part in _runs(text)))


def write(
    image: Image.Image,
    at: tuple[float, float],
    text: str,
    size: int,
    color: str,
    *,
    bold: bool = False,
    clip: Box | None = None,
) -> None:
    """Draws one line of text, its line box starting at ``at``; what lies outside ``clip`` is cut off."""
    if clip is not None and (at[1] < clip[1] - 1 or at[1] + size > clip[3] + size // 3):
        layer = image.copy()
        write(layer, at, text, size, color, bold=bold)
        image.paste(layer.crop(clip), (clip[0], clip[1]))
        return
    draw = ImageDraw.Draw(image)
    x, y = at[0], at[1] + size * (LINE_HEIGHT - 1) / 2
    for part in _runs(text):
        font = _font_for(part, size)
        draw.text((x, y), part, fill=color, font=font, stroke_width=int(bold), stroke_fill=color)
        x += font.getlength(part)


@lru_cache(maxsize=64)
def _font(size: int) -> Font:
    return ImageFont.load_default(size)


@lru_cache(maxsize=128)
def _font_of(places: tuple[str, ...], size: int) -> Font | None:
    path = next((path for path in places if Path(path).exists()), None)
    return None if path is None else ImageFont.truetype(path, size)


def _script(char: str) -> tuple[str, ...]:
    """Where a font for the character is looked for; nowhere: Pillow's own has it."""
    if char.isascii():
        return ()
    return _CJK_FONTS if ord(char) >= _FIRST_WIDE else _LATIN_FONTS


def _font_for(text: str, size: int) -> Font:
    places = _script(text[0]) if text else ()
    return (_font_of(places, size) if places else None) or _font(size)


def _runs(text: str) -> list[str]:
    """The text in runs of characters that one font can draw."""
    return ["".join(run) for _, run in itertools.groupby(text, key=_script)]
