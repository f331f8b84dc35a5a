"""Reads what was found wrong with a task out of the answer to it, back from `loop.submission`. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

_TEXT = r'"((?:[^"\\]|\\.)*)"'
_ISSUE = re.compile(rf"^- {_TEXT}: (\w+): {_TEXT}(?:\u2026\+\d+)?(?: {_TEXT})?", re.MULTILINE)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Issue:
    """Something wrong. ``path``: in the draft; ``selectors``: of the elements that may have been meant."""

    path: str
    code: str
    selectors: tuple[dict[str, JsonValue], ...]


def issues_in(answer: str) -> Sequence[Issue]:
    """All that an answer tells."""
    return [
        Issue(json.loads(f'"{path}"'), code, tuple(_objects(json.loads(f'"{hint}"'))))
        for path, code, _message, hint in _ISSUE.findall(answer)
    ]


def _objects(text: str) -> Iterator[dict[str, JsonValue]]:
    """The JSON objects that stand in a text."""
    place = text.find("{")
    while place >= 0:
        try:
            found, length = _DECODER.raw_decode(text[place:])
        except json.JSONDecodeError:
            length = 1
        else:
            if isinstance(found, dict):
                yield found
        place = text.find("{", place + length)
