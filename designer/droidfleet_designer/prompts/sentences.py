"""Sentences by their code, from ``NAME.LANGUAGE.md``: under each heading of one word the sentence of that code."""

from __future__ import annotations

import re
from functools import lru_cache

from droidfleet_designer.prompts.load import prompt

_SECTION = re.compile(r"^# (\w+)\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"\{(\w+)\}")

FILES = 8
"""Files that are kept at hand: a few names in two languages."""


def template(name: str, code: str, language: str) -> str:
    """The sentence as it stands in the file."""
    return _sections(name, language)[code]


def sentence(name: str, code: str, language: str, /, **values: object) -> str:
    """The sentence with ``{NAME}`` replaced by each value."""
    return _VALUE.sub(lambda found: str(values[found[1]]), template(name, code, language))


@lru_cache(maxsize=FILES)
def _sections(name: str, language: str) -> dict[str, str]:
    return {code: text.strip() for code, text in _SECTION.findall(prompt(name, language))}
