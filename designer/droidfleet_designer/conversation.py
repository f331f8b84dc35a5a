"""What is said between the designer, the model and the tools, in words of no provider. Values only."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Said(BaseModel):
    """Base of all that is said."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolCall(Said):
    """A call that the model wants made. ``arguments`` is its text as it came: it may be cut, or no JSON at all."""

    id: str = Field(description="The provider's id, which the answer repeats.")
    name: str
    arguments: str


class Instruction(Said):
    """What the model is told before anything else."""

    kind: Literal["instruction"] = "instruction"
    text: str


class Request(Said):
    """What a person, or the loop in a person's place, says."""

    kind: Literal["request"] = "request"
    text: str


class Answer(Said):
    """What the model said, and the calls it wants made."""

    kind: Literal["answer"] = "answer"
    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class ToolAnswer(Said):
    """What came of one call. Each call of an answer has exactly one, before anything else is said."""

    kind: Literal["tool_answer"] = "tool_answer"
    call_id: str
    name: str
    text: str


class Picture(Said):
    """A picture of the screen, said by the loop after all the tool answers of a turn."""

    kind: Literal["picture"] = "picture"
    caption: str
    media_type: str
    data: bytes = Field(repr=False)


Message = Annotated[Instruction | Request | Answer | ToolAnswer | Picture, Field(discriminator="kind")]


class Stop(StrEnum):
    """Why the model stopped."""

    DONE = "done"
    CALLS = "calls"
    LENGTH = "length"
    """Its output was cut: the last call may be half of one."""
    REFUSED = "refused"
    """It, or a filter before it, would not answer."""


class Usage(Said):
    """Tokens of one answer. ``estimated``: the server did not count, so we did."""

    input_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False


class Turn(Said):
    """One answer of the model with what is known about it."""

    answer: Answer
    stop: Stop
    usage: Usage
