"""Random ids: short, readable aloud, safe in subjects, paths and shells."""

from __future__ import annotations

import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that looks like a digit."""

_LENGTH = 16
"""80 random bits: with a million a day for a century, two are equal with a probability below one in a thousand."""


def new_id(prefix: str) -> str:
    """``prefix`` with a random part, for example ``x-4k2m9q7r0a1b3c5d``."""
    return f"{prefix}-{''.join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))}"
