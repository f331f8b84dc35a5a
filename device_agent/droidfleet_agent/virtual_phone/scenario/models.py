"""The scenario format."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Scenario(BaseModel):
    """A scenario file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
