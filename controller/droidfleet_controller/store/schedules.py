"""Schedules, and what became of their occurrences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection, Row, String, delete, func, insert, literal_column, or_, select, update
from sqlalchemy.engine import RowMapping

from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState, Schedule
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_controller.store.schema import occurrences, rollouts, schedules

_QUEUED = literal_column(f"'{OccurrenceState.QUEUED.value}'", String)
"""Written out, so that SQLite uses the index that holds these alone."""

_OCCURRENCE = tuple(Occurrence.__slots__)


def add(connection: Connection, schedule: Schedule) -> None:
    """Inserts a schedule. Its document holds no secrets."""
    connection.execute(
        insert(schedules).values(
            schedule_id=schedule.schedule_id, created_at=schedule.created_at, **_changing(schedule)
        )
    )


def replace(connection: Connection, schedule: Schedule, *, version: int) -> bool:
    """Writes a changed schedule. False: it is not in this version any more, and nothing is written."""
    query = update(schedules).where(schedules.c.schedule_id == schedule.schedule_id, schedules.c.version == version)
    return connection.execute(query.values(**_changing(schedule))).rowcount == 1


def remove(connection: Connection, schedule_id: str, *, version: int) -> bool:
    """Deletes a schedule; its occurrences stay. False: it is not in this version any more."""
    query = delete(schedules).where(schedules.c.schedule_id == schedule_id, schedules.c.version == version)
    return connection.execute(query).rowcount == 1


def advance(connection: Connection, schedule: Schedule, *, decided_until: datetime) -> bool:
    """Notes that the occurrences up to there are decided. False: somebody else did, or changed the schedule."""
    query = update(schedules).where(
        schedules.c.schedule_id == schedule.schedule_id,
        schedules.c.version == schedule.version,
        schedules.c.decided_until == schedule.decided_until,
    )
    return connection.execute(query.values(decided_until=decided_until)).rowcount == 1


def named(connection: Connection, name: str) -> Schedule | None:
    """A schedule by its name, else by its id."""
    query = select(schedules).where(or_(schedules.c.name == name, schedules.c.schedule_id == name))
    found = [_schedule(row) for row in connection.execute(query)]
    return next((each for each in found if each.spec.name == name), found[0] if found else None)


def get(connection: Connection, schedule_id: str) -> Schedule | None:
    """A schedule by its id."""
    row = connection.execute(select(schedules).where(schedules.c.schedule_id == schedule_id)).first()
    return None if row is None else _schedule(row)


def names(connection: Connection) -> list[str]:
    """The names of all schedules."""
    return list(connection.execute(select(schedules.c.name).order_by(schedules.c.name)).scalars())


def page(connection: Connection, *, after: str, limit: int) -> list[Schedule]:
    """Schedules by name after ``after``."""
    query = select(schedules).where(schedules.c.name > after).order_by(schedules.c.name).limit(limit)
    return [_schedule(row) for row in connection.execute(query)]


def marks(connection: Connection) -> dict[str, tuple[int, datetime]]:
    """Version and decided instant of each schedule that is switched on, by id: what tells whether it changed."""
    query = select(schedules.c.schedule_id, schedules.c.version, schedules.c.decided_until)
    return {
        row.schedule_id: (row.version, row.decided_until)
        for row in connection.execute(query.where(schedules.c.enabled))
    }


def add_occurrences(connection: Connection, new: Sequence[Occurrence]) -> None:
    """Inserts occurrences.

    Raises:
        IntegrityError: one of them is decided already.
    """
    if new:
        connection.execute(insert(occurrences), [_row(each) for each in new])


def settle(connection: Connection, queued: Occurrence) -> bool:
    """Writes what became of a queued occurrence. False: it is queued no more."""
    query = update(occurrences).where(
        occurrences.c.schedule_id == queued.schedule_id,
        occurrences.c.intended_at == queued.intended_at,
        occurrences.c.state == _QUEUED,
    )
    return connection.execute(query.values(**_row(queued))).rowcount == 1


def drop_queued(connection: Connection, schedule_id: str, *, reason: str, now: datetime) -> None:
    """Those that wait will not begin."""
    query = update(occurrences).where(occurrences.c.schedule_id == schedule_id, occurrences.c.state == _QUEUED)
    values = {"state": OccurrenceState.OVERLAPPED, "reason": reason, "stop_at": None, "decided_at": now}
    connection.execute(query.values(**values))


def queued(connection: Connection, schedule_id: str) -> list[Occurrence]:
    """Those that wait, the oldest first."""
    query = select(occurrences).where(occurrences.c.schedule_id == schedule_id, occurrences.c.state == _QUEUED)
    return [_occurrence(row) for row in connection.execute(query.order_by(occurrences.c.intended_at)).mappings()]


def with_queued(connection: Connection) -> set[str]:
    """The schedules of which something waits."""
    query = select(occurrences.c.schedule_id).where(occurrences.c.state == _QUEUED).distinct()
    return set(connection.execute(query).scalars())


def running(connection: Connection, schedule_id: str) -> tuple[str, ...]:
    """The rollouts of its occurrences that go on, the oldest first."""
    # Not by the index of schedules, which holds all that it ever began: those that go on, of all schedules, are fewer.
    query = select(rollouts.c.rollout_id).where(
        rollouts.c.ended_at.is_(None),
        rollouts.c.schedule_id.concat("") == schedule_id,
        rollouts.c.intended_at.is_not(None),
    )
    return tuple(connection.execute(query.order_by(rollouts.c.number)).scalars())


def due_stops(connection: Connection, now: datetime, *, limit: int) -> list[Occurrence]:
    """Occurrences whose window has closed and whose stop was not carried out, the longest due first."""
    query = select(occurrences).where(occurrences.c.stop_at <= now, occurrences.c.state == OccurrenceState.STARTED)
    query = query.order_by(occurrences.c.stop_at).limit(limit)
    return [_occurrence(row) for row in connection.execute(query).mappings()]


def next_stop(connection: Connection) -> datetime | None:
    """When the next window closes of which something may run."""
    query = select(func.min(occurrences.c.stop_at)).where(
        occurrences.c.stop_at.is_not(None), occurrences.c.state == OccurrenceState.STARTED
    )
    return connection.execute(query).scalar()


def stopped(connection: Connection, occurrence: Occurrence) -> None:
    """Notes that its stop was carried out."""
    query = update(occurrences).where(
        occurrences.c.schedule_id == occurrence.schedule_id, occurrences.c.intended_at == occurrence.intended_at
    )
    connection.execute(query.values(stop_at=None))


def history(connection: Connection, schedule_id: str, *, before: datetime | None, limit: int) -> list[Occurrence]:
    """What became of a schedule's occurrences before an instant, newest first."""
    query = select(occurrences).where(occurrences.c.schedule_id == schedule_id)
    if before is not None:
        query = query.where(occurrences.c.intended_at < before)
    query = query.order_by(occurrences.c.intended_at.desc()).limit(limit)
    return [_occurrence(row) for row in connection.execute(query).mappings()]


def _changing(schedule: Schedule) -> Mapping[str, object]:
    return {
        "name": schedule.spec.name,
        "spec": schedule.spec.model_dump_json(by_alias=True, exclude_none=True),
        "enabled": schedule.enabled,
        "version": schedule.version,
        "decided_until": schedule.decided_until,
        "updated_at": schedule.updated_at,
    }


def _schedule(row: Row[tuple[object, ...]]) -> Schedule:
    return Schedule(
        schedule_id=row.schedule_id,
        spec=ScheduleSpec.model_validate_json(row.spec),
        enabled=row.enabled,
        version=row.version,
        decided_until=row.decided_until,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _row(occurrence: Occurrence) -> dict[str, object]:
    return {name: getattr(occurrence, name) for name in _OCCURRENCE}


def _occurrence(row: RowMapping) -> Occurrence:
    return Occurrence(**{**row, "state": OccurrenceState(row["state"])})
