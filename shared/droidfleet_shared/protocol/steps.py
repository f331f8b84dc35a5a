"""The step models (protocol sections 2 and 4). One class an action; `Step` is their union, told apart by ``action``.

To add an action: a class here, a member of the union, an executor in the agent, virtual-phone behaviour, tests, a page
in ``docs/protocol/actions`` (`docs/checklists/add-an-action.md`). Containers nest ``tuple[Step, ...]`` the same way.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from droidfleet_shared.protocol.selector import PackageName, ProtocolModel, Selector, Text

DEFAULT_TIMEOUT_MS = 5_000
MIN_TIMEOUT_MS = 100
MAX_TIMEOUT_MS = 30_000
MAX_TIMES = 10
DEFAULT_INTERVAL_MS = 100

STEP_LISTS = ("steps", "then", "else")
"""The fields that hold lists of steps: of the task, and of the containers once they are there."""

SELECTOR = "The one node that the step means."

NAME_PATTERN = r"^[^\x00-\x20\x7f]([^\x00-\x1f\x7f]*[^\x00-\x20\x7f])?$"
"""Ids and names are printed, logged and compared exactly: no control characters, no white space around them."""

ACTIVITY_PATTERN = r"^\.?[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)*$"
OUTPUT_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

StepId = Annotated[str, Field(min_length=1, max_length=128, pattern=NAME_PATTERN)]
ActivityName = Annotated[str, Field(min_length=1, max_length=255, pattern=ACTIVITY_PATTERN)]
OutputField = Annotated[str, Field(min_length=1, max_length=128, pattern=OUTPUT_PATTERN)]


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
    timeout_ms: Annotated[int, Field(ge=MIN_TIMEOUT_MS, le=MAX_TIMEOUT_MS)] = Field(
        DEFAULT_TIMEOUT_MS, description="The step's own deadline, waiting and acting together.", examples=[8000]
    )
    optional: bool = Field(False, description="A timeout-class failure becomes a skip.")


class ClickStep(StepBase):
    """Tap the one node that matches."""

    touches: ClassVar[bool] = True

    action: Literal["CLICK"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    times: Annotated[int, Field(ge=1, le=MAX_TIMES)] = Field(1, description="How many taps.", examples=[2])
    interval_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        DEFAULT_INTERVAL_MS, description="Pause between the taps.", examples=[300]
    )
    unless_visible: Selector | None = Field(
        None,
        description="Matches on the deciding look: the step is skipped as a success.",
        examples=[{"text": "In cart"}],
    )


class InputStep(StepBase):
    """Type into the one field that matches, and read it back."""

    touches: ClassVar[bool] = True

    action: Literal["INPUT"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    value: Annotated[str, Field(max_length=16_384)] = Field(
        description="The text, byte for byte.", examples=["green tea"]
    )
    clear: bool = Field(True, description="Replace what the field holds; false: append to it.")
    submit: bool = Field(False, description="Press Enter after the text was verified.")


class BackStep(StepBase):
    """Press the Back key once."""

    touches: ClassVar[bool] = True

    action: Literal["BACK"]


class WaitStep(StepBase):
    """Wait until exactly one node matches. (`condition` instead of a selector comes with conditions.)"""

    action: Literal["WAIT"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])


class ExtractTextStep(StepBase):
    """Read the text, else the description, of the one node that matches into an output."""

    action: Literal["EXTRACT_TEXT"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    output_field: OutputField = Field(description="Name of the output.", examples=["total"])
    append: bool = Field(False, description="Make the output a list and add to it.")


Step = Annotated[
    ClickStep | InputStep | BackStep | WaitStep | ExtractTextStep,
    Field(discriminator="action"),
]

IMPLEMENTED_ACTIONS: dict[str, type[StepBase]] = {
    "CLICK": ClickStep,
    "INPUT": InputStep,
    "BACK": BackStep,
    "WAIT": WaitStep,
    "EXTRACT_TEXT": ExtractTextStep,
}
"""What the validator accepts. An action that the design names and this lacks is *proposed*."""
