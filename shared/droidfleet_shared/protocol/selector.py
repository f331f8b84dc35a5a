"""The selector model (protocol section 5): which node on the screen a step means.

All given fields must hold on one node. Matching itself is the agent's (`droidfleet_shared.screen.matching`); the rules
that need more than one field (not empty, xpath alone, regex cost) are the validator's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from droidfleet_shared.protocol.names import MAX_NAME_LENGTH, PackageName, Pattern, Text


class ProtocolModel(BaseModel):
    """Base of every protocol model: camelCase in JSON, unknown fields refused, immutable, no coercion."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )


MAX_XPATH_LENGTH = 1_024

MAX_INDEX = 9_999

MAX_SELECTOR_DEPTH = 5
"""Selectors within each other, the outermost counted."""

MAX_SELECTORS = 20
"""Selectors in one, all levels counted: each is looked for on the whole screen, at every look."""

RELATIONS = ("within", "has", "leftOf", "rightOf", "above", "below")
"""The fields of a selector that hold another selector."""

TEXT_FIELDS = (
    "text",
    "textContains",
    "textStartsWith",
    "description",
    "descriptionContains",
    "descriptionStartsWith",
    "hint",
)
"""The fields that are compared in the normal form of `text.normalise`."""

PATTERN_FIELDS = ("textMatches", "descriptionMatches")
"""The fields that hold a regular expression."""


VISUAL_FIELDS = ("ocrText", "image", "point")
"""The fields that look at the picture of the screen instead of its tree. One stands alone, beside `index` at most."""

DEFAULT_THRESHOLD_PERCENT = 90


class ImageSelector(ProtocolModel):
    """A part of the screen that looks like a picture of the task's `artifacts`."""

    artifact: Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)] = Field(
        description="Name of the picture in the task's `artifacts`.", examples=["cart_icon"]
    )
    threshold: Annotated[int, Field(ge=50, le=100)] = Field(
        DEFAULT_THRESHOLD_PERCENT, description="How alike, in percent, it must look.", examples=[90]
    )


class PointSelector(ProtocolModel):
    """A point of the display, in percent of its width and height as it is turned."""

    x_percent: Annotated[int, Field(ge=0, le=100)] = Field(description="From the left edge.", examples=[50])
    y_percent: Annotated[int, Field(ge=0, le=100)] = Field(description="From the upper edge.", examples=[90])


class Selector(ProtocolModel):
    """One node, named by what is seen of it."""

    text: Text | None = Field(None, description="The node's text, equal after normalisation.", examples=["Add to cart"])
    text_contains: Text | None = Field(None, description="A part of the node's text.", examples=["in stock"])
    text_starts_with: Text | None = Field(None, description="The beginning of the node's text.", examples=["Total:"])
    text_matches: Pattern | None = Field(
        None, description="A regular expression for the whole text.", examples=["Order #\\d+"]
    )
    description: Text | None = Field(
        None, description="The content description, equal after normalisation.", examples=["Navigate up"]
    )
    description_contains: Text | None = Field(
        None, description="A part of the content description.", examples=["unread"]
    )
    description_starts_with: Text | None = Field(
        None, description="The beginning of the content description.", examples=["Photo of"]
    )
    description_matches: Pattern | None = Field(
        None, description="A regular expression for the whole content description.", examples=["\\d+ stars?"]
    )
    resource_id: Text | None = Field(
        None, description="The resource id, with its `package:id/` part or without.", examples=["buy_button"]
    )
    class_name: Text | None = Field(None, description="The widget class.", examples=["android.widget.Button"])
    hint: Text | None = Field(
        None, description="The hint of an empty field, equal after normalisation.", examples=["Search"]
    )
    package_name: PackageName | None = Field(
        None, description="The package that owns the node.", examples=["com.android.settings"]
    )
    enabled: bool | None = Field(None, description="Whether the node is enabled.")
    checked: bool | None = Field(None, description="Whether the node is checked.")
    selected: bool | None = Field(None, description="Whether the node is selected.")
    focused: bool | None = Field(None, description="Whether the node has the input focus.")
    clickable: bool | None = Field(None, description="Whether the node itself is clickable.")
    scrollable: bool | None = Field(None, description="Whether the node scrolls.")
    password: bool | None = Field(None, description="Whether the node is a password field.")
    within: Selector | None = Field(
        None, description="An ancestor of the node; must itself be unique.", examples=[{"resourceId": "product_list"}]
    )
    has: Selector | None = Field(
        None, description="A descendant of the node; must itself be unique in it.", examples=[{"text": "Green tea"}]
    )
    left_of: Selector | None = Field(
        None, description="A unique node that lies to the right of this one.", examples=[{"text": "Wi-Fi"}]
    )
    right_of: Selector | None = Field(
        None, description="A unique node that lies to the left of this one.", examples=[{"text": "Wi-Fi"}]
    )
    above: Selector | None = Field(
        None, description="A unique node that lies below this one.", examples=[{"text": "Total"}]
    )
    below: Selector | None = Field(
        None, description="A unique node that lies above this one.", examples=[{"text": "Total"}]
    )
    index: Annotated[int, Field(ge=0, le=MAX_INDEX)] | None = Field(
        None, description="The author's explicit choice among several, counted from 0 in reading order.", examples=[0]
    )
    xpath: Annotated[str, Field(min_length=1, max_length=MAX_XPATH_LENGTH)] | None = Field(
        None,
        description="An XPath 1.0 expression over the window's tree; stands alone.",
        examples=["//android.widget.Button[@text='OK']"],
    )

    ocr_text: Text | None = Field(
        None, description="A text that is read in the picture of the screen; stands alone.", examples=["Start game"]
    )
    image: ImageSelector | None = Field(
        None,
        description="A part of the screen that looks like a picture; stands alone.",
        examples=[{"artifact": "cart_icon"}],
    )
    point: PointSelector | None = Field(
        None,
        description="A point, whatever is there; needs `allowPoint`.",
        examples=[{"xPercent": 50, "yPercent": 90}],
    )
    allow_point: bool | None = Field(None, description="The author accepts that a point is touched unseen.")

    def given(self) -> dict[str, object]:
        """The fields that the author gave, by their protocol (camelCase) names, in the order of the model."""
        return {to_camel(name): value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
