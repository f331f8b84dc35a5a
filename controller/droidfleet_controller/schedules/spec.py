"""What somebody asks for: the schedule document. JSON in camelCase; `check` reads it and lists all that is wrong."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from droidfleet_controller.rollouts.spec import DurationField, RolloutSpec, SpecModel

MAX_CATCH_UP = 100
MAX_QUEUED = 10
"""Occurrences of one schedule that wait for the one before; more are OVERLAPPED."""

MIN_INTERVAL = timedelta(seconds=10)


class Gap(StrEnum):
    """What becomes of a local time that does not exist, because clocks go forward."""

    SKIP = "SKIP"
    NEXT_VALID = "NEXT_VALID"
    """The first instant after the gap. An occurrence that is there anyway stays one."""


class Fold(StrEnum):
    """Which of the two instants of a local time that exists twice, because clocks go back."""

    FIRST = "FIRST"
    SECOND = "SECOND"
    BOTH = "BOTH"


class Misfire(StrEnum):
    """What becomes of occurrences that passed while no controller ran, or while it could not act."""

    SKIP = "SKIP"
    LAST = "LAST"
    """Only the newest is made up for."""
    ALL = "ALL"
    """All, the newest `catchUpLimit` of them."""


class Overlap(StrEnum):
    """What an occurrence does while the rollout of an earlier one goes on."""

    SKIP = "SKIP"
    QUEUE = "QUEUE"
    CANCEL_RUNNING = "CANCEL_RUNNING"
    ALLOW = "ALLOW"


class When(SpecModel):
    """When: exactly one of the four. Local times are those of the schedule's zone, as 2027-03-28T02:30."""

    once: str | None = Field(None, description="One local time.", examples=["2027-03-28T02:30"])
    cron: str | None = Field(None, description="Cron expression of five fields, or @daily and the like.")
    interval: DurationField | None = Field(
        None, description="Every so much elapsed time, counted from `from`, or from when the schedule was made."
    )
    window: WindowTimes | None = Field(None, description="From `start` to `stop`; what still runs then is cancelled.")


class WindowTimes(SpecModel):
    """A window that opens again and again (two cron expressions), or once (two local times)."""

    start: str = Field(examples=["0 22 * * *"])
    stop: str = Field(examples=["0 6 * * *"])


class ScheduleSpec(SpecModel):
    """A schedule, as asked for."""

    name: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    rollout: RolloutSpec = Field(description="What each occurrence begins.")
    when: When
    time_zone: str = Field("UTC", description="A name of the tz database.", examples=["Europe/Berlin"])
    gap: Gap = Field(Gap.NEXT_VALID, strict=False)
    fold: Fold = Field(Fold.FIRST, strict=False)
    misfire: Misfire = Field(Misfire.LAST, strict=False)
    catch_up_limit: Annotated[int, Field(ge=1, le=MAX_CATCH_UP)] = 10
    overlap: Overlap = Field(Overlap.SKIP, strict=False)
    jitter: DurationField = Field(
        timedelta(0), description="Begins up to so much later, by a stable hash of schedule and occurrence."
    )
    from_: str | None = Field(None, alias="from", description="Local time; no occurrence before it.")
    until: str | None = Field(None, description="Local time; no occurrence after it.")
    enabled: bool = True


When.model_rebuild()
