"""Many rows at once mean what single statements mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, insert, select, tuple_, update
from sqlalchemy.dialects import postgresql

from droidfleet_controller.dispatch.execution import at_step
from droidfleet_controller.dispatch.states import ExecutionState
from droidfleet_controller.store import executions
from droidfleet_controller.store.schema import group_members, labels, metadata
from droidfleet_controller.store.sql import IN_LIMIT, KeyedRows, ManyRows
from unit.controller.builders import NOW, execution

ADD = ManyRows(insert(labels), ("value", "key", "device"))
PAIR = (labels.c.device, labels.c.key)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    engine = create_engine(f"sqlite:///{tmp_path}/test.db")
    metadata.create_all(engine)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def test_rows_are_written_in_whatever_order_their_names_are_given(connection: Connection) -> None:
    ADD.write(connection, [("berlin", "site", "p1"), ("paris", "site", "p2")])
    assert sorted(map(tuple, connection.execute(select(labels)))) == [("p1", "site", "berlin"), ("p2", "site", "paris")]


def test_no_rows_are_no_statement(connection: Connection) -> None:
    ADD.write(connection, [])
    assert not list(connection.execute(select(labels)))


@pytest.mark.parametrize("count", [0, 1, 2, 9, IN_LIMIT, IN_LIMIT + 1, 2 * IN_LIMIT + 65])
def test_the_rows_of_however_many_keys_are_read_once_each(connection: Connection, count: int) -> None:
    rows = [("x", "site", f"p{number:04}") for number in range(count + 5)]
    ADD.write(connection, rows)
    by_device = KeyedRows(select(labels.c.device), labels.c.device)
    by_pair = KeyedRows(select(labels.c.device), tuple_(*PAIR))
    wanted = [device for _, _, device in rows[:count]]
    assert sorted(row.device for row in by_device.read(connection, wanted)) == wanted
    assert sorted(row.device for row in by_pair.read(connection, [(name, "site") for name in wanted])) == wanted


def test_a_statement_is_compiled_for_drivers_that_take_names() -> None:
    change = ManyRows(update(group_members).values(device="x"), ("device",))
    text, ordered = change._for(postgresql.dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it so
    assert "%(device)s" in text
    assert ordered(("p1",)) == {"device": "p1"}


def test_an_execution_that_somebody_else_changed_is_read_as_it_is_now(connection: Connection) -> None:
    first = execution(ExecutionState.RUNNING)
    executions.add(connection, [first])
    saved = replace(first, steps_done=1)
    executions.save(connection, [saved])
    assert executions.find(connection, ["x-1"])["x-1"] is saved
    connection.exec_driver_sql("UPDATE executions SET priority = 9")
    assert executions.find(connection, ["x-1"])["x-1"] == replace(saved, priority=9)


def test_every_field_of_an_execution_is_written_and_read_back(connection: Connection) -> None:
    whole = replace(
        execution(ExecutionState.QUEUED, cancel_requested=True, add_name=False, add_revision=True),
        check_at=NOW + timedelta(microseconds=1),
        priority=9,
        try_number=3,
        accept_within_s=1.5,
        stopped_at=NOW,
    )
    executions.add(connection, [whole])
    assert executions.find(connection, ["x-1"]) == {"x-1": whole}


def test_of_an_execution_that_only_went_on_the_progress_is_written(connection: Connection) -> None:
    first = execution(ExecutionState.RUNNING)
    executions.add(connection, [first])
    connection.exec_driver_sql("UPDATE executions SET priority = 9")
    read = executions.find(connection, ["x-1"])
    gone_on = at_step(
        read["x-1"],
        steps_done=4,
        iteration=2,
        current_step_id="tap",
        progress_sequence=9,
        now=NOW + timedelta(seconds=1),
    )
    executions.save(connection, [gone_on], read=read)
    assert executions.find(connection, ["x-1"]) == {"x-1": gone_on}
    assert connection.exec_driver_sql("SELECT steps_done, current_step_id, version FROM executions").one() == (
        4,
        "tap",
        2,
    )


def test_of_an_execution_that_moved_everything_is_written(connection: Connection) -> None:
    executions.add(connection, [execution(ExecutionState.ACCEPTED)])
    read = executions.find(connection, ["x-1"])
    moved = replace(read["x-1"].moved(ExecutionState.RUNNING, now=NOW), started_at=NOW, steps_done=1)
    executions.save(connection, [moved], read=read)
    assert connection.exec_driver_sql("SELECT state, steps_done FROM executions").one() == ("RUNNING", 1)
