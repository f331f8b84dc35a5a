"""Keeps secrets out of results. The one place through which every result leaves the engine.

A secret of some length is replaced wherever it stands. A shorter one would be found in every other word, so it is only
looked for in the results of steps that type it; and of what such a step quotes from the screen nothing is shown at all,
because a field that lost a character shows the rest of the secret.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from droidfleet_shared.protocol.result import ResultModel, StepResult
from droidfleet_shared.secrets import HIDDEN, without

ResultT = TypeVar("ResultT", bound=ResultModel)

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
"""Texts from a screen stand in messages as JSON strings (`engine.messages.quoted`)."""

_NAMES = frozenset({"id", "action", "path", "code", "detail", "sha256", "mediaType", "taskId", "executionId"})
"""Fields that name something of the task or the protocol, and hold nothing that was read or typed."""


def redacted(result: ResultT, secrets: Sequence[str]) -> ResultT:
    """The result without the secrets that are long enough to be told from other text."""
    if not secrets:
        return result
    return type(result).model_validate(_clean(result.model_dump(by_alias=True), "", secrets))


def redacted_typing(result: StepResult, secrets: Sequence[str]) -> StepResult:
    """The result of a step that typed one of the secrets, however short, without anything that the screen showed."""
    message = _QUOTED.sub(f'"{HIDDEN}"', result.message)
    for secret in secrets:
        message = message.replace(secret, HIDDEN)
    target = result.target and result.target.model_copy(update={"text": HIDDEN})
    candidates = tuple(each.model_copy(update={"text": HIDDEN}) for each in result.candidates)
    artifacts = tuple(each.model_copy(update={"inline": None}) for each in result.artifacts)
    return result.model_copy(
        update={"message": message, "target": target, "candidates": candidates, "artifacts": artifacts}
    )


def _clean(value: object, field: str, secrets: Sequence[str]) -> object:
    if isinstance(value, dict):
        return {name: _clean(each, name, secrets) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(each, field, secrets) for each in value]
    if type(value) is str and field not in _NAMES:
        return without(value, secrets)
    return value
