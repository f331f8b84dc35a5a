"""The condition model (protocol section 6): what must hold on one look, or of an output.

Evaluation is the agent's (`droidfleet_agent.engine.conditions`). That exactly one kind is given, and that there are at
most `MAX_LEAVES` leaves, are the validator's rules: they need more than one field.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from droidfleet_shared.protocol.names import ActivityName, OutputField, PackageName, Pattern, Text
from droidfleet_shared.protocol.selector import ProtocolModel, Selector

MAX_LEAVES = 20
"""Conditions that are not `all`, `any` or `not`: each is decided on every look."""

MAX_CONDITION_DEPTH = 5
"""Conditions within each other, the outermost counted."""

KINDS = ("visible", "gone", "foreground", "activity", "output", "all", "any", "not")
"""The fields of a condition of which exactly one is given."""

COMPARISONS = ("equals", "contains", "matches")
"""The fields beside `output` of which exactly one is given."""


class Condition(ProtocolModel):
    """Exactly one of `KINDS`; beside `output` exactly one of `COMPARISONS`."""

    visible: Selector | None = Field(None, description="At least one node matches.", examples=[{"text": "Done"}])
    gone: Selector | None = Field(None, description="No node matches.", examples=[{"text": "Loading"}])
    foreground: PackageName | None = Field(
        None, description="The package in front is exactly this.", examples=["com.android.settings"]
    )
    activity: ActivityName | None = Field(
        None, description="The activity in front is exactly this.", examples=["com.shop.CartActivity"]
    )
    output: OutputField | None = Field(
        None, description="An output, compared by one of the next three fields.", examples=["total"]
    )
    equals: Annotated[str, Field(max_length=4096)] | None = Field(
        None, description="The output is this text, after normalisation.", examples=["19.90"]
    )
    contains: Text | None = Field(
        None, description="The output holds this text; a list: one of its values is it.", examples=["in stock"]
    )
    matches: Pattern | None = Field(
        None, description="A regular expression for the whole output.", examples=["\\d+\\.\\d\\d"]
    )
    all: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=MAX_LEAVES, strict=False)] | None = Field(
        None, description="Each of them holds.", examples=[[{"visible": {"text": "Done"}}]]
    )
    any: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=MAX_LEAVES, strict=False)] | None = Field(
        None, description="At least one of them holds.", examples=[[{"visible": {"text": "Done"}}]]
    )
    not_: Condition | None = Field(
        None, alias="not", description="It does not hold.", examples=[{"visible": {"text": "Done"}}]
    )
