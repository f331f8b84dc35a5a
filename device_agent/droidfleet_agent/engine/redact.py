"""Keeps secrets out of results. The one place through which every result leaves the engine.

A secret of some length is replaced wherever it stands, also where a long text was cut within it. A shorter one would be
found in every other word, so it is only looked for in the results of steps that type it; and of what such a step quotes
from the screen nothing is shown, because a field that lost a character shows the rest of the secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TypeVar
from xml.sax.saxutils import escape

from droidfleet_agent.engine.ending import CUT_MARK
from droidfleet_agent.engine.messages import ELLIPSIS, MAX_TEXT
from droidfleet_shared.protocol.result import ResultModel, StepResult
from droidfleet_shared.protocol.text import dump_form
from droidfleet_shared.secrets import HIDDEN, SHORTEST, without

ResultT = TypeVar("ResultT", bound=ResultModel)

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
"""Texts from a screen stand in messages as JSON strings (`engine.messages.quoted`)."""

_NAMES = frozenset(
    {
        "id",
        "failedStepId",
        "action",
        "path",
        "code",
        "detail",
        "sha256",
        "mediaType",
        "taskId",
        "executionId",
        "agentName",
    }
)
"""Fields of results that name something of the task or the protocol, and hold nothing that was read or typed."""

_IN_ATTRIBUTES = {'"': "&quot;", "\n": "&#10;"}
"""What the XML of a dump escapes besides the usual."""

_OUTPUTS = "outputs"
"""Its keys are the author's words, and no fields of a result."""


def redacted(result: ResultT, secrets: Sequence[str]) -> ResultT:
    """The result without the secrets that are long enough to be told from other text."""
    forms = [form for secret in secrets for form in _forms(secret)]
    if not forms:
        return result
    return type(result).model_validate(_clean(result.model_dump(by_alias=True), "", forms))


def redacted_typing(result: StepResult, secrets: Sequence[str], *, written: str) -> StepResult:
    """The result of a step that typed one of the secrets, however short, without anything that the screen showed.

    ``written``: the step as its author wrote it, as JSON; its words may be quoted.
    """
    message = _QUOTED.sub(lambda found: found[0] if found[0] in written else f'"{HIDDEN}"', result.message)
    for secret in secrets:
        message = message.replace(secret, HIDDEN)
    target = result.target and result.target.model_copy(update={"text": HIDDEN})
    candidates = tuple(each.model_copy(update={"text": HIDDEN}) for each in result.candidates)
    artifacts = tuple(each.model_copy(update={"inline": None}) for each in result.artifacts)
    return result.model_copy(
        update={"message": message, "target": target, "candidates": candidates, "artifacts": artifacts}
    )


def _forms(secret: str) -> set[str]:
    """How it may stand in a result: as it was typed or as a dump shows it, plain, in a quotation, or in raw XML."""
    plain = {secret, dump_form(secret)}
    return {
        form
        for text in plain
        if text.strip(".")  # nothing but dots is no secret any more, and stands everywhere
        for form in (text, json.dumps(text, ensure_ascii=False)[1:-1], escape(text, _IN_ATTRIBUTES))
    }


def _clean(value: object, field: str, forms: Sequence[str]) -> object:
    if isinstance(value, dict):
        return {name: _clean(each, _OUTPUTS if field == _OUTPUTS else name, forms) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, field, forms) for each in value]
    if type(value) is str and field not in _NAMES:
        return _without_beginnings(without(value, forms), forms, is_cut=len(value) == MAX_TEXT)
    return value


def _without_beginnings(text: str, forms: Sequence[str], *, is_cut: bool) -> str:
    """The text without what is left of a secret where it was cut. ``is_cut``: its own end is such a place."""
    ends = [found.start() for found in re.finditer(f"{ELLIPSIS}|{re.escape(CUT_MARK)}", text)]
    for end in reversed([*ends, *([len(text)] if is_cut else [])]):
        before = text[:end]
        lengths = (
            length
            for form in forms
            for length in range(len(form) - 1, SHORTEST - 1, -1)
            if before.endswith(form[:length])
        )
        length = max(lengths, default=0)
        if length:
            text = f"{before[:-length]}{HIDDEN}{text[end:]}"
    return text
