"""From records of schedules to protobuf messages; the one place that knows both."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from droidfleet.v1 import schedule_pb2
from droidfleet_controller.api.convert import issues_to_pb, timestamp
from droidfleet_controller.api.convert_rollout import spec_json
from droidfleet_controller.schedules import zones
from droidfleet_controller.schedules.preview import local_text
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Planned
from droidfleet_controller.schedules.views import SavedSchedule, SchedulePreview, ScheduleView
from droidfleet_controller.schedules.zones import UnknownZoneError


def occurrence_state(state: OccurrenceState) -> schedule_pb2.OccurrenceState.ValueType:
    """A state as the API spells it."""
    return schedule_pb2.OccurrenceState.Value(f"OCCURRENCE_STATE_{state.value}")


def schedule_to_pb(view: ScheduleView) -> schedule_pb2.Schedule:
    """A schedule as it stands."""
    schedule = view.schedule
    return schedule_pb2.Schedule(
        schedule_id=schedule.schedule_id,
        name=schedule.spec.name,
        spec_json=spec_json(schedule.spec),
        enabled=schedule.enabled,
        version=schedule.version,
        created_at=timestamp(schedule.created_at),
        updated_at=timestamp(schedule.updated_at),
        when=view.when,
        next=None if view.next is None else planned_to_pb(view.next, schedule.spec.time_zone),
        last=None if view.last is None else occurrence_to_pb(view.last),
    )


def saved_to_pb(saved: SavedSchedule) -> schedule_pb2.UpdateScheduleResponse:
    """A schedule that was stored."""
    return schedule_pb2.UpdateScheduleResponse(
        schedule=schedule_to_pb(saved.view), warnings=issues_to_pb(saved.warnings)
    )


def preview_to_pb(preview: SchedulePreview) -> schedule_pb2.PreviewScheduleResponse:
    """What is to come."""
    return schedule_pb2.PreviewScheduleResponse(
        valid=preview.valid,
        errors=issues_to_pb(preview.errors),
        warnings=issues_to_pb(preview.warnings),
        occurrences=[planned_to_pb(each, preview.time_zone) for each in preview.occurrences],
    )


def planned_to_pb(planned: Planned, time_zone: str) -> schedule_pb2.PlannedOccurrence:
    """An occurrence to come, also on the clocks of a zone."""
    return schedule_pb2.PlannedOccurrence(
        at=timestamp(planned.at),
        local=local_text(planned.at, _zone(time_zone)),
        stop_at=None if planned.stop_at is None else timestamp(planned.stop_at),
        note=planned.note,
    )


def _zone(name: str) -> ZoneInfo:
    """The zone; UTC for one that another tz database had when the schedule was stored."""
    try:
        return zones.zone(name)
    except UnknownZoneError:
        return ZoneInfo("UTC")


def occurrence_to_pb(occurrence: Occurrence) -> schedule_pb2.Occurrence:
    """What became of an occurrence."""
    return schedule_pb2.Occurrence(
        schedule_id=occurrence.schedule_id,
        intended_at=timestamp(occurrence.intended_at),
        state=occurrence_state(occurrence.state),
        reason=occurrence.reason,
        rollout_id=occurrence.rollout_id,
        stop_at=None if occurrence.stop_at is None else timestamp(occurrence.stop_at),
        decided_at=timestamp(occurrence.decided_at),
    )
