"""The draft, and the settings that a person gives before it. Values only."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic.alias_generators import to_camel

MAX_TEXT = 4_000
MAX_NOTES = 100
MAX_NAME = 128


class DraftModel(BaseModel):
    """Base: camelCase, unknown fields refused, immutable."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class DraftTarget(DraftModel):
    """Which phones: exactly one of the three."""

    device: str | None = Field(None, description="One device by name.")
    group: str | None = Field(None, description="Those of a group.")
    all: bool = Field(False, description="Every phone of the fleet.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.device is not None) + (self.group is not None) + self.all != 1:
            raise ValueError("exactly one of device, group and all")
        return self


class DraftWindow(DraftModel):
    """From start to stop, again and again: two cron expressions; or once: two local times."""

    start: Annotated[str, Field(max_length=100, examples=["0 22 * * *"])]
    stop: Annotated[str, Field(max_length=100, examples=["0 6 * * *"])]


class DraftSchedule(DraftModel):
    """When: exactly one of ``once``, ``cron`` and ``window``. Words and rules are those of a schedule document."""

    once: Annotated[str, Field(max_length=40)] | None = Field(
        None, description='A local time, 2027-03-28T02:30; or "now": when a person starts it.'
    )
    cron: Annotated[str, Field(max_length=100)] | None = Field(None, description="Five fields, or @daily and the like.")
    window: DraftWindow | None = None
    time_zone: Annotated[str, Field(max_length=64)] = Field("UTC", description="A name of the tz database.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(each is not None for each in (self.once, self.cron, self.window)) != 1:
            raise ValueError("exactly one of once, cron and window")
        return self


class DraftRetry(DraftModel):
    """How often a phone tries, as in a rollout document."""

    max_attempts: Annotated[int, Field(ge=1, le=10)] = 1
    delay: Annotated[str, Field(max_length=20)] = Field("30s", description='As "90s", "10m".')


class Evidence(DraftModel):
    """Where a selector of the task was seen to name one element."""

    path: str = Field(description="JSON Pointer of the selector in the task, such as /steps/0/selector.")
    selector: dict[str, JsonValue]
    snapshot: str = Field(description="The snapshot on which it was matched: s1, s2, ...")
    screen: str = Field(description="What that screen is, in words: its package and activity, its title.")
    element: str = Field(description="What was matched, in words.")
    bounds: tuple[int, int, int, int] | None = Field(None, description="Where it was: left, top, right, bottom.")


class Mark(DraftModel):
    """A step whose effect cannot be undone."""

    step_id: str
    path: str = Field(description="JSON Pointer of the step in the task.")
    why: str = Field(description="The word that says so, and where it stands.")
    lowered: bool = Field(True, description="Its `probability` is lowered until a person sets it back.")
    probability: int = Field(100, description="What the model had written.")


class Draft(DraftModel):
    """What a person reviews, edits, tries and accepts."""

    summary: Annotated[str, Field(max_length=MAX_TEXT)]
    task: dict[str, JsonValue] = Field(description="A task template of protocol v1.")
    target: DraftTarget
    schedule: DraftSchedule = Field(default_factory=lambda: DraftSchedule(once="now"))
    retry: DraftRetry = Field(default_factory=DraftRetry)
    notes: Annotated[tuple[str, ...], Field(max_length=MAX_NOTES)] = Field(
        (), description="What the person should know: what was filled in, what could not be reached, what to review."
    )
    marks: tuple[Mark, ...] = ()
    evidence: tuple[Evidence, ...] = ()


class DraftSettings(DraftModel):
    """What a person set beforehand. What is set beats what the model proposes."""

    name: Annotated[str, Field(max_length=MAX_NAME)] | None = Field(None, description="The task's id.")
    target: DraftTarget | None = None
    schedule: DraftSchedule | None = None
    retry: DraftRetry | None = None
    max_duration_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] | None = Field(
        None, description="The task's `maxDurationMs`."
    )
    language: Annotated[str, Field(pattern="^(en|zh)$")] = Field("en", description="Of prompts, notes and summary.")
    allow_points: bool = Field(False, description="Whether selectors by coordinates may be proposed.")
    max_tokens: Annotated[int, Field(ge=1_000)] | None = Field(None, description="Token budget; None: the server's.")


class Brief(DraftModel):
    """What a person asks for."""

    description: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    device: Annotated[str, Field(min_length=1)] = Field(description="The phone to explore.")
    settings: DraftSettings = Field(default_factory=DraftSettings)
