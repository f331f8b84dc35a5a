"""Random ids: short, readable aloud, safe in subjects, paths and shells."""

from __future__ import annotations

import base64
import secrets

_READABLE = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")
"""From the alphabet of base 32 to Crockford's, in which no letter looks like a digit."""

_BYTES = 10
"""80 random bits: with a million a day for a century, two are equal with a probability below one in a thousand."""

draw = secrets.token_bytes
"""Where the random bits come from. A simulation, in which the same seed has to give the same ids, puts its own here."""


def new_id(prefix: str) -> str:
    """``prefix`` with a random part, for example ``x-4k2m9q7r0a1b3c5d``."""
    return f"{prefix}-{base64.b32encode(draw(_BYTES)).decode().translate(_READABLE)}"
