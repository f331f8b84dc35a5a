"""The steps that hold or choose other steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.names import StepId
from droidfleet_shared.protocol.steps.base import StepBase

if TYPE_CHECKING:
    from droidfleet_shared.protocol.steps import Step

MAX_STEPS = 200
MAX_DEPTH = 5
DEFAULT_ITERATIONS = 10
MAX_ITERATIONS = 1_000

_EXAMPLE = [[{"id": "back", "action": "BACK"}]]


class GroupStep(StepBase):
    """Several steps as one: skipped, failed over or jumped to together."""

    action: Literal["GROUP"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)] = Field(
        description="The steps, in order.", examples=_EXAMPLE
    )


class IfStep(StepBase):
    """One list of steps or another, decided on one look."""

    action: Literal["IF"]
    condition: Condition = Field(description="What decides.", examples=[{"visible": {"text": "Sign in"}}])
    then: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)] = Field(
        description="The steps when it holds.", examples=_EXAMPLE
    )
    otherwise: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)] | None = Field(
        None, alias="else", description="The steps when it does not.", examples=_EXAMPLE
    )


class RepeatStep(StepBase):
    """The same steps again, until a condition holds, a time has passed, or the bound on rounds."""

    action: Literal["REPEAT"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1, max_length=MAX_STEPS, strict=False)] = Field(
        description="The steps of one round.", examples=_EXAMPLE
    )
    max_iterations: Annotated[int, Field(ge=1, le=MAX_ITERATIONS)] = Field(
        DEFAULT_ITERATIONS, description="At most so many rounds.", examples=[20]
    )
    max_duration_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] | None = Field(
        None, description="No round begins after this time.", examples=[60_000]
    )
    until: Condition | None = Field(
        None, description="Checked before each round.", examples=[{"visible": {"text": "No more items"}}]
    )


class BranchStep(StepBase):
    """Go on with a later step of the same list when a condition holds."""

    action: Literal["BRANCH"]
    condition: Condition = Field(description="What decides.", examples=[{"visible": {"text": "Sign in"}}])
    goto: StepId = Field(description="Id of a later step on the same level.", examples=["sign-out"])
