"""The fields that every step may have (protocol section 2), and the words that steps share."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.names import ActivityName, PackageName, StepId, Text
from droidfleet_shared.protocol.selector import ProtocolModel

DEFAULT_TIMEOUT_MS = 5_000
MIN_TIMEOUT_MS = 100
MAX_TIMEOUT_MS = 30_000

STEP_LISTS = ("steps", "then", "else")
"""The fields that hold lists of steps: of the task and of the containers."""

SELECTOR = "The one node that the step means."

TimeoutMs = Annotated[int, Field(ge=MIN_TIMEOUT_MS, le=MAX_TIMEOUT_MS)]
Direction = Literal["UP", "DOWN", "LEFT", "RIGHT"]
"""Where the content is wanted from: DOWN shows what lies further down (the finger moves up)."""


class After(ProtocolModel):
    """What must hold after the action."""

    condition: Condition = Field(description="Looked for until it holds.", examples=[{"visible": {"text": "Sent"}}])
    timeout_ms: TimeoutMs = Field(
        DEFAULT_TIMEOUT_MS, description="How long it may take, counted from the end of the action.", examples=[8000]
    )


class Goto(ProtocolModel):
    """Go on with a later step of the same list."""

    goto: StepId = Field(description="Id of a later step on the same level.", examples=["sign-out"])


class StepBase(ProtocolModel):
    """Fields that every step may have."""

    touches: ClassVar[bool] = False
    """Whether the action makes the phone do something: dispatched once, its target must be enabled."""

    id: StepId = Field(description="Unique in the task; results refer to it.", examples=["add-to-cart"])
    label: Text | None = Field(None, description="A text for people.", examples=["Put the tea into the cart"])
    package_name: PackageName | None = Field(
        None, description="Wait until the foreground package is exactly this.", examples=["com.android.settings"]
    )
    activity_name: ActivityName | None = Field(
        None,
        description="Wait until the foreground activity is this; needs `packageName` too.",
        examples=[".MainActivity"],
    )
    timeout_ms: TimeoutMs = Field(
        DEFAULT_TIMEOUT_MS, description="The step's own deadline, waiting and acting together.", examples=[8000]
    )
    optional: bool = Field(False, description="A timeout-class failure becomes a skip.")
    when: Condition | None = Field(
        None, description="False at once: the step is skipped as a success.", examples=[{"visible": {"text": "Later"}}]
    )
    after: After | None = Field(
        None,
        description="Must hold after the action.",
        examples=[{"condition": {"visible": {"text": "Sent"}}}],
    )
    redo: bool = Field(False, description="Repeating is harmless: once more when the screen did not change after it.")
    on_failure: Literal["STOP", "CONTINUE"] | Goto = Field(
        "STOP", description="What follows when the step fails.", examples=["CONTINUE"]
    )
    probability: Annotated[int, Field(ge=0, le=100)] = Field(
        100, description="How likely the step is run, in percent.", examples=[30]
    )
