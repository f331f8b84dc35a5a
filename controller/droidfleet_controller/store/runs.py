"""Runs: what one RunTask call created, by its request id, so that the same call has the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select

from droidfleet_controller.store.schema import runs


@dataclass(frozen=True, slots=True)
class Run:
    """A call that was carried out. ``digest`` stands for everything that it asked for."""

    run_id: str
    request_id: str
    digest: str
    created_at: datetime


_ADD = insert(runs)
_BY_REQUEST = select(runs).where(runs.c.request_id == bindparam("request_id"))


def add(connection: Connection, run: Run) -> None:
    """Inserts a run."""
    connection.execute(_ADD, {name: getattr(run, name) for name in Run.__slots__})


def by_request(connection: Connection, request_id: str) -> Run | None:
    """The run of a request, if it was carried out."""
    row = connection.execute(_BY_REQUEST, {"request_id": request_id}).first()
    return None if row is None else Run(row.run_id, row.request_id, row.digest, row.created_at)
