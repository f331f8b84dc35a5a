"""Schedule documents for tests, with everything that a test does not care about filled in."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from droidfleet_controller.schedules.check import check
from droidfleet_controller.schedules.occurrences import Timetable
from droidfleet_controller.schedules.schedule import Schedule
from droidfleet_controller.schedules.spec import ScheduleSpec

NOW = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)


def utc(text: str) -> datetime:
    """An instant."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def document(**fields: object) -> str:
    """A document's text."""
    body: dict[str, object] = {
        "name": "nightly",
        "rollout": {"task": "tea", "target": {"devices": ["phone-01"]}},
        "when": {"cron": "30 2 * * *"},
        "timeZone": "Europe/Berlin",
    }
    return json.dumps(body | fields)


def spec(**fields: object) -> ScheduleSpec:
    """A document that is valid."""
    checked = check(document(**fields), now=NOW)
    assert checked.spec is not None, checked.errors
    return checked.spec


def timetable(**fields: object) -> Timetable:
    """The occurrences of a valid document."""
    return Timetable(spec(**fields), anchor=NOW)


def schedule(**fields: object) -> Schedule:
    """A stored schedule."""
    return Schedule(
        schedule_id="s-1",
        spec=spec(**fields),
        enabled=True,
        version=1,
        decided_until=NOW,
        created_at=NOW,
        updated_at=NOW,
    )
