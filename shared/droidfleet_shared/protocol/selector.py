"""The selector model (protocol section 5): which node on the screen a step means.

All given fields must hold on one node. Matching itself is the agent's (`droidfleet_agent.screen.matching`); the rules
that need more than one field (not empty, xpath alone, regex cost) are the validator's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ProtocolModel(BaseModel):
    """Base of every protocol model: camelCase in JSON, unknown fields refused, immutable, no coercion."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )


Text = Annotated[str, Field(min_length=1, max_length=4096)]
"""A label as people read it; literal, never syntax."""

Pattern = Annotated[str, Field(min_length=1, max_length=512)]
"""A full-match regular expression of bounded cost."""


class Selector(ProtocolModel):
    """One node, named by what is seen of it."""

    text: Text | None = Field(None, description="The node's text, equal after normalisation.")
    text_contains: Text | None = Field(None, description="A part of the node's text.")
    text_starts_with: Text | None = Field(None, description="The beginning of the node's text.")
    text_matches: Pattern | None = Field(None, description="A regular expression for the whole text.")
    description: Text | None = Field(None, description="The content description, equal after normalisation.")
    description_contains: Text | None = Field(None, description="A part of the content description.")
    description_starts_with: Text | None = Field(None, description="The beginning of the content description.")
    description_matches: Pattern | None = Field(
        None, description="A regular expression for the whole content description."
    )
    resource_id: Text | None = Field(None, description="The resource id, with its `package:id/` part or without.")
    class_name: Text | None = Field(None, description="The widget class, e.g. `android.widget.Button`.")
    hint: Text | None = Field(None, description="The hint of an empty field, equal after normalisation.")
    package_name: Text | None = Field(None, description="The package that owns the node.")
    enabled: bool | None = Field(None, description="Whether the node is enabled.")
    checked: bool | None = Field(None, description="Whether the node is checked.")
    selected: bool | None = Field(None, description="Whether the node is selected.")
    focused: bool | None = Field(None, description="Whether the node has the input focus.")
    clickable: bool | None = Field(None, description="Whether the node itself is clickable.")
    scrollable: bool | None = Field(None, description="Whether the node scrolls.")
    password: bool | None = Field(None, description="Whether the node is a password field.")
    within: Selector | None = Field(None, description="An ancestor of the node; must itself be unique.")
    has: Selector | None = Field(None, description="A descendant of the node; must itself be unique in it.")
    left_of: Selector | None = Field(None, description="A unique node that lies to the right of this one.")
    right_of: Selector | None = Field(None, description="A unique node that lies to the left of this one.")
    above: Selector | None = Field(None, description="A unique node that lies below this one.")
    below: Selector | None = Field(None, description="A unique node that lies above this one.")
    index: Annotated[int, Field(ge=0, le=9999)] | None = Field(
        None, description="The author's explicit choice among several, counted from 0 in reading order."
    )
    xpath: Annotated[str, Field(min_length=1, max_length=1024)] | None = Field(
        None, description="An XPath 1.0 expression over the window's tree; stands alone."
    )

    def given(self) -> dict[str, object]:
        """The fields that the author gave, by their protocol (camelCase) names, in the order of the model."""
        return {to_camel(name): value for name in type(self).model_fields if (value := getattr(self, name)) is not None}
