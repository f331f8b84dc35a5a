"""The planner's sentences, from `prompts/practice.LANGUAGE.md`."""

from __future__ import annotations

import re
from functools import lru_cache

from droidfleet_designer.prompts.load import prompt

_SECTION = re.compile(r"^# (\w+)\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"\{(\w+)\}")


def said(code: str, language: str, **values: object) -> str:
    """What is said under a code, with ``{NAME}`` replaced by each value."""
    return _VALUE.sub(lambda found: str(values[found[1]]), _sections(language)[code])


@lru_cache(maxsize=2)
def _sections(language: str) -> dict[str, str]:
    return {code: text.strip() for code, text in _SECTION.findall(prompt("practice", language))}
