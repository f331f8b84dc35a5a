"""The queries on the busy paths stay fast however long the history is: each one finds its rows by an index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from droidfleet_controller.store import documents, events, executions, runs, schedules, texts
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.documents import Head
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.store.schema import metadata
from unit.controller.builders import NOW

Query = Callable[[Connection], object]

BUSY: dict[str, Query] = {
    "lines": lambda connection: executions.lines(connection, ["a", "b"], limit=4),
    "find": lambda connection: executions.find(connection, ["x-1", "x-2"]),
    "fenced": lambda connection: executions.fenced(connection, ["a", "b"]),
    "due": lambda connection: executions.due(connection, NOW, limit=10),
    "backlog": lambda connection: executions.backlog(connection, ["a"]),
    "live counts": executions.live_counts,
    "result": lambda connection: executions.result(connection, "x-1"),
    "known events": lambda connection: events.known(connection, [("x-1", 1, 1, "a"), ("x-2", 1, 1, "b")]),
    "events after": lambda connection: events.after(connection, 5, limit=10),
    "events of a device": lambda connection: events.after(connection, 5, device="a", limit=10),
    "events of an execution": lambda connection: events.after(connection, 5, execution_id="x-1", limit=10),
    "newest event": events.newest,
    "heads": lambda connection: documents.heads(connection, ["a"]),
    "receipts": lambda connection: documents.owed(connection, {"a": Head(1, "")}, limit=4),
    "request": lambda connection: runs.by_request(connection, "req"),
    "texts": lambda connection: texts.load(connection, ["aa"]),
    "page of a device": lambda connection: executions.page(
        connection, executions.Filter(device="a"), before=9, limit=5
    ),
    "page of a run": lambda connection: executions.page(connection, executions.Filter(run_id="r"), before=9, limit=5),
    "schedules with queued occurrences": schedules.with_queued,
    "queued occurrences": lambda connection: schedules.queued(connection, "s-1"),
    "due stops": lambda connection: schedules.due_stops(connection, NOW, limit=5),
    "next stop": schedules.next_stop,
    "running of a schedule": lambda connection: schedules.running(connection, "s-1"),
    "occurrences of a schedule": lambda connection: schedules.history(connection, "s-1", before=NOW, limit=5),
}


@pytest.mark.parametrize("name", BUSY)
def test_a_busy_query_finds_its_rows_by_an_index(tmp_path: Path, name: str) -> None:
    database = Database(sqlite_url(tmp_path / "test.db"))
    migrate(database.engine)
    plans: list[str] = []

    def explain(
        _connection: Connection, cursor: object, statement: str, parameters: tuple[object, ...], *_more: object
    ) -> None:
        if statement.startswith("SELECT"):
            execute = cursor.connection.execute  # type: ignore[attr-defined]  # of the driver's cursor
            plans.extend(row[3] for row in execute(f"EXPLAIN QUERY PLAN {statement}", parameters))

    event.listen(database.engine, "before_cursor_execute", explain)
    with database.engine.begin() as connection:
        BUSY[name](connection)
    database.engine.dispose()
    assert plans
    assert [plan for plan in plans if _reads_all(plan)] == []


def _reads_all(plan: str) -> bool:
    words = plan.split()
    return words[0] == "SCAN" and words[1] in metadata.tables and "USING" not in words
