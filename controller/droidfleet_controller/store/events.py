"""The fleet's event log: in order, never changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, tuple_

from droidfleet_controller.store.schema import audit, events, microseconds
from droidfleet_controller.store.sql import KeyedRows, ManyRows

EventKey = tuple[str, int, int, str]
"""(execution, attempt, sequence, device): what makes an agent's event unique."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEvent:
    """Something that happened. ``event_id`` is 0 until stored; ``sequence`` is None for what the controller reports."""

    event_id: int = 0
    occurred_at: datetime
    recorded_at: datetime
    kind: str
    device: str = ""
    execution_id: str = ""
    attempt: int = 0
    sequence: int | None = None
    summary: str = ""
    payload: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """Who asked for what."""

    at: datetime
    actor: str
    command: str
    subject: str
    details: str = ""


_KEY = (events.c.execution_id, events.c.attempt, events.c.sequence, events.c.device)
_KNOWN = KeyedRows(select(*_KEY), tuple_(*_KEY))
_FIELDS = tuple(name for name in FleetEvent.__slots__ if name != "event_id")
_ADD = ManyRows(insert(events), _FIELDS)
_ADD_AUDIT = insert(audit)


def add(connection: Connection, new: Sequence[FleetEvent]) -> None:
    """Appends events."""
    _ADD.write(
        connection,
        [
            (
                microseconds(each.occurred_at),
                microseconds(each.recorded_at),
                each.kind,
                each.device,
                each.execution_id,
                each.attempt,
                each.sequence,
                each.summary,
                each.payload,
            )
            for each in new
        ],
    )


def known(connection: Connection, keys: Sequence[EventKey]) -> set[EventKey]:
    """Those of ``keys`` that are stored."""
    return {(row.execution_id, row.attempt, row.sequence, row.device) for row in _KNOWN.read(connection, keys)}


def after(
    connection: Connection, event_id: int, *, device: str = "", execution_id: str = "", limit: int
) -> list[FleetEvent]:
    """Events after ``event_id``, the oldest first."""
    query = select(events).where(events.c.event_id > event_id)
    if device:
        query = query.where(events.c.device == device)
    if execution_id:
        query = query.where(events.c.execution_id == execution_id)
    query = query.order_by(events.c.event_id).limit(limit)
    return [FleetEvent(**row) for row in connection.execute(query).mappings()]


def newest(connection: Connection) -> int:
    """The id of the newest event; 0 when there is none."""
    return connection.execute(select(func.max(events.c.event_id))).scalar() or 0


def add_audit(connection: Connection, line: AuditLine) -> None:
    """Appends an audit line."""
    connection.execute(_ADD_AUDIT, {name: getattr(line, name) for name in AuditLine.__slots__})
