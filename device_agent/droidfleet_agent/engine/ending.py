"""How an executor ends: with a `StepDone`, or by raising `StepFailed`. Nothing else leaves a step but defects."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import ArtifactModel, TargetModel

MAX_CANDIDATES = 5
"""Protocol section 3, rule 3."""

MAX_INLINE_CHARACTERS = 16_384
"""Enough of a broken dump to see where it broke; a result with several of them still fits one bus message."""

CUT_MARK = "\n[cut here: "
"""What follows a text that was cut."""


@dataclass(frozen=True, slots=True)
class StepDone:
    """The step succeeded; ``message`` is a sentence for people, or empty where the detail says it all."""

    detail: Detail
    message: str = ""


class StepFailed(Exception):  # noqa: N818 - an outcome of the step, not a defect
    """The step failed with ``code``; ``message`` says what was looked for, what was seen, and what to do next."""

    def __init__(
        self,
        code: StepCode,
        message: str,
        *,
        candidates: Sequence[TargetModel] = (),
        artifacts: Sequence[ArtifactModel] = (),
        out_of_time: bool = False,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.candidates = tuple(candidates[:MAX_CANDIDATES])
        self.artifacts = tuple(artifacts)
        self.out_of_time = out_of_time
        """Whether the step ended only because no time was left."""


def text_artifact(name: str, media_type: str, text: str) -> ArtifactModel:
    """A text that is kept in the result itself, cut with a marker; digest and size are those of the whole."""
    data = text.encode(errors="replace")
    inline = text
    if len(text) > MAX_INLINE_CHARACTERS:
        inline = f"{text[:MAX_INLINE_CHARACTERS]}{CUT_MARK}{len(text) - MAX_INLINE_CHARACTERS} characters more]"
    return ArtifactModel(
        name=name,
        media_type=media_type,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        inline=inline,
    )
