"""One thing that is not as it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """``code``: a stable word; ``where``: what it is about (``execution x-1``, ``device phone-01``); ``hint``: what to
    do about it."""

    code: str
    where: str
    message: str
    hint: str
