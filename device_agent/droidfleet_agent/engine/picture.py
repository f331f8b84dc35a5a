"""A picture of the screen, made to fit a message. Pure; takes some hundred milliseconds, so call it in a thread."""

from __future__ import annotations

import io
from dataclasses import dataclass

SCALES_PERCENT = (100, 75, 50, 35, 25)
"""Smaller than a quarter nothing can be read; at a quarter any display fits."""

JPEG_QUALITY = 80

_PNG = b"\x89PNG"


@dataclass(frozen=True, slots=True)
class Picture:
    """``scale_percent`` is below 100 where it had to be made smaller. Width and height, pixels, 0 when unreadable."""

    media_type: str
    data: bytes
    width: int = 0
    height: int = 0
    scale_percent: int = 100


def fitting(data: bytes, *, max_bytes: int) -> Picture | None:
    """The picture, as it is where it fits, else as a JPEG of the largest scale that does; None when none does."""
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - 8 MB that only whoever keeps pictures needs

    media_type = "image/png" if data.startswith(_PNG) else "image/jpeg"
    try:
        with Image.open(io.BytesIO(data)) as picture:
            if len(data) <= max_bytes:
                return Picture(media_type, data, picture.width, picture.height)
            colours = picture.convert("RGB")
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError):
        # Not ours to judge: whoever asked sees what the phone sent.
        return Picture(media_type, data) if len(data) <= max_bytes else None
    for percent in SCALES_PERCENT:
        size = (max(1, colours.width * percent // 100), max(1, colours.height * percent // 100))
        buffer = io.BytesIO()
        colours.resize(size).save(buffer, "JPEG", quality=JPEG_QUALITY)
        if buffer.tell() <= max_bytes:
            return Picture("image/jpeg", buffer.getvalue(), *size, percent)
    return None
