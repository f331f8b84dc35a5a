"""The steps that only look or wait."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.names import OutputField, Text
from droidfleet_shared.protocol.selector import ProtocolModel, Selector
from droidfleet_shared.protocol.steps.base import SELECTOR, StepBase

MAX_DELAY_MS = 600_000
DEFAULT_MAX_ITEMS = 100


class WaitStep(StepBase):
    """Wait until exactly one node matches, or until a condition holds. One of the two is given."""

    action: Literal["WAIT"]
    selector: Selector | None = Field(None, description=SELECTOR, examples=[{"text": "Add to cart"}])
    condition: Condition | None = Field(None, description="What must hold.", examples=[{"gone": {"text": "Loading"}}])


class DelayStep(StepBase):
    """Do nothing for a random time between two bounds; not bound by `timeoutMs`."""

    action: Literal["DELAY"]
    min_ms: Annotated[int, Field(ge=0, le=MAX_DELAY_MS)] = Field(description="At least.", examples=[500])
    max_ms: Annotated[int, Field(ge=0, le=MAX_DELAY_MS)] | None = Field(
        None, description="At most; left out: exactly `minMs`.", examples=[1500]
    )


class ExtractTextStep(StepBase):
    """Read the text, else the description, of the one node that matches into an output."""

    action: Literal["EXTRACT_TEXT"]
    selector: Selector = Field(description=SELECTOR, examples=[{"text": "Add to cart"}])
    output_field: OutputField = Field(description="Name of the output.", examples=["total"])
    append: bool = Field(False, description="Make the output a list and add to it.")


class Attribute(StrEnum):
    """What can be read of a node. ``LABEL`` is its text, else its description; booleans read `true` or `false`."""

    LABEL = "label"
    TEXT = "text"
    DESCRIPTION = "description"
    HINT = "hint"
    RESOURCE_ID = "resourceId"
    CLASS_NAME = "className"
    PACKAGE_NAME = "packageName"
    CHECKED = "checked"
    ENABLED = "enabled"
    SELECTED = "selected"
    BOUNDS = "bounds"


class ExtractField(ProtocolModel):
    """One value to read."""

    output_field: OutputField = Field(description="Name of the output.", examples=["price"])
    selector: Selector | None = Field(
        None,
        description="A node inside the step's node; left out: that node itself.",
        examples=[{"resourceId": "price"}],
    )
    attribute: Annotated[Attribute, Field(strict=False)] = Field(
        Attribute.LABEL, description="What is read of it.", examples=["text"]
    )


class ExtractStep(StepBase):
    """Read several values of one node, or of each node that matches, on one look."""

    action: Literal["EXTRACT"]
    selector: Selector = Field(description="The node, or each row with `all`.", examples=[{"resourceId": "row"}])
    fields: Annotated[tuple[ExtractField, ...], Field(min_length=1, max_length=20, strict=False)] = Field(
        description="What to read.", examples=[[{"outputField": "price"}]]
    )
    all: bool = Field(False, description="One row for each match: the outputs are lists of equal length.")
    max_items: Annotated[int, Field(ge=1, le=500)] = Field(
        DEFAULT_MAX_ITEMS, description="With `all`: at most so many rows.", examples=[20]
    )
    append: bool = Field(False, description="Add to the outputs instead of replacing them.")


class ScreenshotStep(StepBase):
    """Keep a picture of the screen with the result."""

    action: Literal["SCREENSHOT"]
    name: Text = Field("screenshot", description="Name of the artifact.", examples=["cart"])


class AssertStep(StepBase):
    """Fail unless a condition holds by the deadline."""

    action: Literal["ASSERT"]
    condition: Condition = Field(description="What must hold.", examples=[{"visible": {"text": "Signed in"}}])
