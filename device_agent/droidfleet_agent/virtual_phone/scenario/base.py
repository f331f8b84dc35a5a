"""What every scenario model shares."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from droidfleet_agent.virtual_phone.scenario.template import PATH_PATTERN


class Model(BaseModel):
    """Frozen; unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=80)]
"""A name inside the scenario: of a screen, a dialog, a widget, a variable, a business effect."""

VariablePath = Annotated[str, StringConstraints(pattern=f"^{PATH_PATTERN}$", max_length=200)]
"""Names joined by dots: ``cart.count``, ``item.title``, ``products.0.title``."""

Package = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$", max_length=200)
]

Color = Annotated[
    str,
    StringConstraints(
        pattern=r"^(#[0-9a-fA-F]{6}|primary|accent|surface|raised|muted|text|danger|success|white|black|none)$"
    ),
]
"""``#rrggbb`` or a name that the app's theme resolves."""

Milliseconds = Annotated[int, Field(ge=0, le=3_600_000)]
