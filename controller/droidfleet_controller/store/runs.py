"""Runs: what one RunTask call created, by its request id, so that the same call has the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select

from droidfleet_controller.store.schema import runs


@dataclass(frozen=True, slots=True)
class Run:
    """A call that was carried out. ``digest`` stands for everything that it asked for."""

    run_id: str
    request_id: str
    digest: str
    created_at: datetime


def add(connection: Connection, run: Run) -> None:
    """Inserts a run."""
    connection.execute(
        insert(runs).values(run_id=run.run_id, request_id=run.request_id, digest=run.digest, created_at=run.created_at)
    )


def by_request(connection: Connection, request_id: str) -> Run | None:
    """The run of a request, if it was carried out."""
    row = connection.execute(select(runs).where(runs.c.request_id == request_id)).first()
    return None if row is None else Run(row.run_id, row.request_id, row.digest, row.created_at)


def exists(connection: Connection, run_id: str) -> bool:
    """Whether there is such a run."""
    return connection.execute(select(runs.c.run_id).where(runs.c.run_id == run_id)).first() is not None
