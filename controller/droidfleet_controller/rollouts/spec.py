"""What somebody asks for: the rollout document. JSON in camelCase; `check` reads it and lists all that is wrong.

Fields here say what they mean; the rules that need more than one field, or the fleet, are `check`'s and `preflight`'s.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, PlainSerializer
from pydantic.alias_generators import to_camel

from droidfleet_controller.dispatch.execution import MAX_PRIORITY, MIN_PRIORITY, NORMAL_PRIORITY
from droidfleet_controller.rollouts.amounts import (
    Amount,
    Count,
    Percent,
    duration_text,
    parse_duration,
    parse_percent,
)
from droidfleet_shared.protocol.task import AgentName, TaskId

MAX_WAVES = 50
MAX_MEMBERS = 10_000
MAX_RATE = 100_000
MAX_TRIES = 10
MAX_TEXT = 200


class SpecModel(BaseModel):
    """Base of the documents of rollouts and schedules: camelCase, unknown fields refused, immutable, no coercion."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        strict=True,
        arbitrary_types_allowed=True,
    )


def _percent(value: object) -> Percent:
    if isinstance(value, Percent):
        return value
    if not isinstance(value, str):
        raise ValueError('expected a percent as a text, for example "90%"')  # pydantic wants it so
    return parse_percent(value)


def _amount(value: object) -> Amount:
    if isinstance(value, Count | Percent):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("expected a count of 0 or more")
        return Count(value)
    if not isinstance(value, str):
        raise ValueError('expected a count as 5, or a percent as "10%"')  # pydantic wants it so
    return parse_percent(value)


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError('expected a duration as a text, for example "90s", "10m" or "24h"')  # pydantic wants it so
    return parse_duration(value)


def _plain_amount(amount: Amount) -> int | str:
    return amount.value if isinstance(amount, Count) else str(amount)


PercentField = Annotated[
    Percent, BeforeValidator(_percent, json_schema_input_type=str), PlainSerializer(str, return_type=str)
]
AmountField = Annotated[
    Count | Percent,
    BeforeValidator(_amount, json_schema_input_type=int | str),
    PlainSerializer(_plain_amount, return_type=int | str),
]
DurationField = Annotated[
    timedelta,
    BeforeValidator(_duration, json_schema_input_type=str),
    PlainSerializer(duration_text, return_type=str),
]


class Membership(StrEnum):
    """Who belongs to a rollout."""

    SNAPSHOT = "SNAPSHOT"
    """Who matches at the start."""
    CONTINUOUS = "CONTINUOUS"
    """Who matches at any time: joiners enter the last open wave, leavers are removed."""


class Order(StrEnum):
    """In which order members are put into waves."""

    HASH = "HASH"
    """By a stable hash of rollout id and device: no phone is always the first to fail."""
    LISTED = "LISTED"
    """As `target.devices` lists them; for a group or a query, by name."""


class Approval(StrEnum):
    """Whether a person has to say that it may go on."""

    AUTO = "AUTO"
    MANUAL = "MANUAL"


class OnExceeded(StrEnum):
    """What exceeding `maxFailures` does, at once."""

    PAUSE = "PAUSE"
    CANCEL = "CANCEL"


class Offline(StrEnum):
    """What to do with a phone that is offline when its turn comes."""

    WAIT = "WAIT"
    """Queue it; it expires `deadlines.startWithin` later."""
    SKIP = "SKIP"
    """Leave it out of the ratio and list it; also one that expires later."""
    FAIL = "FAIL"
    """It counts as a failure at once."""
    SUBSTITUTE = "SUBSTITUTE"
    """It changes places with the next phone of a later wave that is there; without one: WAIT."""


class Target(SpecModel):
    """Which phones: exactly one of the three."""

    devices: Annotated[tuple[AgentName, ...], Field(min_length=1, max_length=MAX_MEMBERS, strict=False)] | None = Field(
        None, description="These phones."
    )
    group: Annotated[str, Field(min_length=1, max_length=128)] | None = Field(None, description="Those of a group.")
    query: Annotated[str, Field(min_length=1, max_length=2_000)] | None = Field(
        None, description="Those whose labels match.", examples=["site=berlin, android>=13, !retired"]
    )


class Gate(SpecModel):
    """What a wave must show before the next one opens."""

    min_success_percent: PercentField = Field(
        Percent(9_000), description="Succeeded of the wave's members, without the removed and the skipped."
    )
    max_failures: AmountField | None = Field(
        None, description="Must be exceeded, by a count or by a percent of the wave's members; left out: no limit."
    )
    on_exceeded: OnExceeded = Field(OnExceeded.PAUSE, strict=False, description="What exceeding it does, in mid-wave.")
    max_failures_by_code: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict,
        max_length=50,
        description="Limits of single failure codes, each to be exceeded.",
        examples=[{"OUTCOME_UNKNOWN": 0}],
    )
    min_sample: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = Field(
        1, description="Fewer counted results than this (or than the wave has members) decide nothing: it pauses."
    )
    soak: DurationField = Field(timedelta(0), description="Time after the last result before the next wave opens.")
    approval: Approval = Field(Approval.AUTO, strict=False, description="MANUAL: a person opens the next wave.")


class Wave(SpecModel):
    """One wave. The last one takes the rest, so it has no size."""

    size: AmountField | None = Field(
        None, description="A count, or a percent of the membership rounded up, at least 1."
    )
    gate: Gate = Field(default_factory=Gate)


class Rate(SpecModel):
    """Executions begun in any 60 seconds: `base`, times `factor` after each `raiseAfter` successes, up to `limit`."""

    base: Annotated[int, Field(ge=1, le=MAX_RATE)]
    factor: Annotated[float, Field(ge=1, le=10)] = 1.0
    raise_after: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] = 1
    limit: Annotated[int, Field(ge=1, le=MAX_RATE)] = MAX_RATE


class Retry(SpecModel):
    """When a failed execution is tried again. Never one that may have acted, unless the task is `repeatable`."""

    max_attempts: Annotated[int, Field(ge=1, le=MAX_TRIES)] = Field(1, description="Tries altogether; 1: no retry.")
    delay: DurationField = Field(timedelta(seconds=30), description="Before the second try.")
    backoff: Annotated[float, Field(ge=1, le=10)] = Field(
        2.0, description="The delay grows by it with each further try."
    )
    jitter: PercentField = Field(Percent(1_000), description="How much of the delay may be added, by a stable hash.")
    only_codes: Annotated[tuple[str, ...], Field(max_length=50, strict=False)] = Field(
        (), description="Only failures with these codes; empty: all that may be retried."
    )
    breaker: Annotated[int, Field(ge=2, le=MAX_MEMBERS)] = Field(
        5, description="The same failure (code, step, screen) on so many phones is not retried any more."
    )


class Deadlines(SpecModel):
    """How long each state may last. Running is bounded by the task itself."""

    start_within: DurationField = Field(
        timedelta(hours=24), description="From its creation to the start of an execution."
    )
    accept_within: DurationField | None = Field(
        None, description="From its assignment until the agent must have it; left out: `startWithin` alone."
    )
    progress: DurationField = Field(
        timedelta(hours=24),
        description="Without any result for so long while something is started, the rollout pauses.",
    )


class Window(SpecModel):
    """When executions may begin; what runs at its end goes on."""

    start: str = Field(description="Cron expression, five fields.", examples=["0 22 * * *"])
    stop: str = Field(description="Cron expression, five fields.", examples=["0 6 * * *"])
    time_zone: str = Field("UTC", examples=["Europe/Berlin"])


class DryRun(SpecModel):
    """One run on one phone, real or virtual, before the first wave; it must succeed and counts nowhere."""

    device: AgentName


class RolloutSpec(SpecModel):
    """A rollout, as asked for."""

    name: Annotated[str, Field(max_length=MAX_TEXT)] = Field("", description="For people.")
    task: TaskId = Field(description="A task of the library.", examples=["buy-tea"])
    revision: Annotated[int, Field(ge=0)] = Field(0, description="0: the newest when the rollout starts.")
    target: Target = Field(description="Which phones.", examples=[{"query": "site=berlin, !retired"}])
    membership: Membership = Field(Membership.SNAPSHOT, strict=False)
    order: Order = Field(Order.HASH, strict=False)
    waves: Annotated[tuple[Wave, ...], Field(min_length=1, max_length=MAX_WAVES, strict=False)] = Field(
        (Wave(),),
        description="One after the other; left out: one wave of all.",
        examples=[[{"size": 1}, {"size": "10%"}, {}]],
    )
    max_concurrent: Annotated[int, Field(ge=1, le=MAX_MEMBERS)] | None = Field(
        None, description="Executions of this rollout at a time; left out: no limit."
    )
    rate_per_minute: Annotated[int, Field(ge=1, le=MAX_RATE)] | Rate | None = Field(
        None, description="Executions begun in any 60 seconds, a number or one that grows; left out: no limit."
    )
    retry: Retry = Field(default_factory=Retry)
    offline: Offline = Field(Offline.WAIT, strict=False)
    deadlines: Deadlines = Field(default_factory=Deadlines)
    window: Window | None = None
    dry_run: DryRun | None = None
    approval: Approval = Field(Approval.AUTO, strict=False, description="MANUAL: a person opens the first wave.")
    priority: Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)] = Field(
        NORMAL_PRIORITY, description="On a phone, the higher one runs first, then the older one."
    )
    inputs: dict[str, JsonValue] = Field(
        default_factory=dict, description="Values for the task's inputs, for all phones."
    )
    device_inputs: dict[AgentName, dict[str, JsonValue]] = Field(
        default_factory=dict, max_length=MAX_MEMBERS, description="Values for single phones; they go over `inputs`."
    )
    random_seed: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = Field(
        None, description="For all phones; left out: each draws its own."
    )
