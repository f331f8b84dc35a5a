"""The streams and consumers of the bus, as data. The controller makes them; agents only use them."""

from __future__ import annotations

from dataclasses import dataclass

from droidfleet_shared.bus.subjects import (
    DESIRED_ALL,
    DESIRED_STREAM,
    EVENTS_ALL,
    EVENTS_CONSUMER,
    EVENTS_STREAM,
    LIVE_PREFIX,
)

DAY_S = 24 * 3600.0

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A limits-retention stream on disk. None: no limit of that kind."""

    name: str
    subjects: tuple[str, ...]
    description: str
    max_msgs_per_subject: int | None = None
    max_bytes: int | None = None
    max_age_s: float | None = None
    allow_direct: bool = False
    republish_from: str = ""
    republish_to: str = ""


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """A durable pull consumer with explicit acknowledgement and no limit of deliveries."""

    stream: str
    name: str
    description: str
    ack_wait_s: float
    max_ack_pending: int


DESIRED = StreamSpec(
    name=DESIRED_STREAM,
    subjects=(DESIRED_ALL,),
    description="The desired-state document of each agent; the controller's database is the record.",
    # One document an agent: the stream is bounded by the size of the fleet.
    max_msgs_per_subject=1,
    allow_direct=True,
    republish_from=DESIRED_ALL,
    republish_to=f"{LIVE_PREFIX}.{{{{wildcard(1)}}}}",
)

EVENTS = StreamSpec(
    name=EVENTS_STREAM,
    subjects=(EVENTS_ALL,),
    description="Events and results on their way from agents to the controller.",
    # Past these bounds the oldest go; a result that the database lacks is sent again by its agent.
    max_bytes=512 * MIB,
    max_age_s=7 * DAY_S,
)

EVENTS_READER = ConsumerSpec(
    stream=EVENTS_STREAM,
    name=EVENTS_CONSUMER,
    description="The controller's ingest.",
    # Longer than any database commit, short enough that a restarted controller soon gets what its predecessor held.
    ack_wait_s=30.0,
    max_ack_pending=10_000,
)
