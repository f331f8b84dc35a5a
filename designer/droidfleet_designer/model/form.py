"""What a request has that not every server takes, and what is left out or added when one complains. Pure.

The rule: the first request has the form that most servers take. A server that refuses it (400 or 422) and names a field
is asked again without that field, or with the one it misses; nothing was generated yet, so nothing is paid twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

MAX_ADAPTATIONS = 3
"""Of one request: as many as there are fields to differ in."""

_UNKNOWN = re.compile(
    r"un(known|supported|recognized|expected)|not (support|allow|permit|recogni|valid param)|extra", re.IGNORECASE
)
"""A complaint of a field's being there. One of its value is another matter."""

_OLDER, _NEWER = "max_tokens", "max_completion_tokens"
_COUNT = "stream_options"
_THOUGHTS = "reasoning_content"


@dataclass(frozen=True, slots=True)
class Form:
    """``bound``: the field that bounds the output. ``counts``: the count of tokens is asked for. ``thoughts``: each
    answer of the model has the field of its thoughts, which are not kept: DeepSeek's thinking models want it there, be
    it empty."""

    bound: str = _OLDER
    counts: bool = True
    thoughts: bool = False


def first_form(*, counts_thinking: bool) -> Form:
    """The form to begin with. ``counts_thinking``: the server wants the newer name of the bound."""
    return Form(bound=_NEWER if counts_thinking else _OLDER)


def adapted(sent: Form, complaint: str) -> Form | None:
    """The form to ask in after a complaint about ``sent``. None: it is about something else."""
    if not sent.thoughts and _THOUGHTS in complaint:
        return replace(sent, thoughts=True)
    if _UNKNOWN.search(complaint) is None:
        return None
    if sent.counts and _COUNT in complaint:
        return replace(sent, counts=False)
    if re.search(rf"\b{sent.bound}\b", complaint):
        return replace(sent, bound=_NEWER if sent.bound == _OLDER else _OLDER)
    return None
