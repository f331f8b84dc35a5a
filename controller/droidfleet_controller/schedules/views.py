"""What readers of a schedule get. Immutable."""

from __future__ import annotations

from dataclasses import dataclass

from droidfleet_controller.rollouts.issues import SpecIssue
from droidfleet_controller.schedules.schedule import Occurrence, Planned, Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule as it stands. ``when``: for people; ``next``: None when it is switched off, or nothing is to come;
    ``last``: its newest occurrence."""

    schedule: Schedule
    when: str
    next: Planned | None = None
    last: Occurrence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedSchedule:
    """What a call stored."""

    view: ScheduleView
    warnings: tuple[SpecIssue, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePreview:
    """What is to come of a document. ``time_zone``: on whose clocks it is to be shown."""

    errors: tuple[SpecIssue, ...] = ()
    warnings: tuple[SpecIssue, ...] = ()
    occurrences: tuple[Planned, ...] = ()
    time_zone: str = "UTC"

    @property
    def valid(self) -> bool:
        """Whether it could be stored."""
        return not self.errors
