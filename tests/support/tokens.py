"""How many tokens a text is to a model, by the vocabularies of two generations. Exact, and without a network."""

from __future__ import annotations

import warnings
from functools import lru_cache

with warnings.catch_warnings():
    # It reads its files in a way that Python has deprecated since.
    warnings.simplefilter("ignore", DeprecationWarning)
    import bpe_openai  # type: ignore[import-untyped]  # it has none

ENCODINGS = ("o200k_base", "cl100k_base")


def tokens(text: str) -> int:
    """By the vocabulary that needs more; what looks like a special token counts as text."""
    return max(len(_encoding(name).encode(text, disallowed_special=())) for name in ENCODINGS)


@lru_cache(maxsize=len(ENCODINGS))
def _encoding(name: str) -> bpe_openai.Encoding:
    return bpe_openai.get_encoding(name)
