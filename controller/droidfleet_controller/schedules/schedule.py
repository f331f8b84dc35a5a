"""The records of a schedule and of its occurrences. Immutable."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from droidfleet_controller.schedules.spec import ScheduleSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A stored schedule. ``decided_until``: what becomes of the occurrences up to here is on record."""

    schedule_id: str
    spec: ScheduleSpec
    enabled: bool
    version: int
    decided_until: datetime
    created_at: datetime
    updated_at: datetime


class OccurrenceState(StrEnum):
    """What became of an occurrence."""

    STARTED = "STARTED"
    QUEUED = "QUEUED"
    OVERLAPPED = "OVERLAPPED"
    MISSED = "MISSED"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One occurrence: identified by schedule and intended time, UTC."""

    schedule_id: str
    intended_at: datetime
    state: OccurrenceState
    reason: str = ""
    rollout_id: str = ""
    stop_at: datetime | None = None
    decided_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An occurrence to come. ``begin_at``: ``at`` plus its jitter; ``note``: what is special, for people."""

    at: datetime
    begin_at: datetime
    stop_at: datetime | None = None
    note: str = ""
