"""The sentences of the loop to the model, from `prompts/told.LANGUAGE.md`. Pure, but for the file."""

from __future__ import annotations

import re
from functools import lru_cache

from droidfleet_designer.prompts.load import prompt

_SECTION = re.compile(r"^# (\w+)\n(.*?)(?=^# |\Z)", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"\{(\w+)\}")


def template(code: str, language: str) -> str:
    """What is said under a code, as it stands in the file."""
    return _sections(language)[code]


def told(code: str, language: str, **values: object) -> str:
    """What is said under a code, with ``{NAME}`` replaced by each value."""
    return _VALUE.sub(lambda found: str(values[found[1]]), template(code, language))


@lru_cache(maxsize=2)
def _sections(language: str) -> dict[str, str]:
    return {code: text.strip() for code, text in _SECTION.findall(prompt("told", language))}
