"""Words that several rules say."""

from __future__ import annotations


def phones(count: int) -> str:
    """How many, for a sentence."""
    return f"{count} phone{'' if count == 1 else 's'}"
