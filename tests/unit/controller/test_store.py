"""The database: schema and migrations agree, transactions are whole, locks say who holds them."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, insert, select, text

from droidfleet_controller.store import database as database_module
from droidfleet_controller.store import lock
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_controller.store.schema import audit, metadata
from droidfleet_shared.errors import (
    ConflictError,
    InvalidInputError,
    PreconditionError,
    UnavailableError,
)
from unit.controller.builders import NOW


@pytest.fixture
def database(tmp_path: Path) -> Database:
    made = Database(sqlite_url(tmp_path / "test.db"))
    migrate(made.engine)
    return made


def line(subject: str, at: datetime = NOW) -> dict[str, object]:
    return {"at": at, "actor": "a", "command": "c", "subject": subject, "details": ""}


def subjects_of(connection: Connection) -> list[str]:
    return list(connection.execute(select(audit.c.subject).order_by(audit.c.number)).scalars())


def test_the_migrations_make_exactly_the_schema(database: Database) -> None:
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.engine.dispose()


def test_migrating_again_changes_nothing(database: Database) -> None:
    migrate(database.engine)
    database.engine.dispose()


def test_a_database_of_a_newer_program_is_refused(database: Database) -> None:
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(PreconditionError) as caught:
        migrate(database.engine)
    assert caught.value.code == "DATABASE_TOO_NEW"
    database.engine.dispose()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "test.db"
    file.write_bytes(b"certainly not a database" * 100)
    engine = Database(sqlite_url(file)).engine
    with pytest.raises(UnavailableError) as caught:
        migrate(engine)
    assert caught.value.code == "DATABASE_UNAVAILABLE"
    engine.dispose()


@pytest.mark.parametrize("url", ["", "nonsense", "oracle+nothing://x", "mysql://x/y"])
def test_a_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Database(url)
    assert caught.value.code == "BAD_DATABASE_URL"


@pytest.mark.parametrize("name", ["a b.db", "what?.db", "50%.db", "ü#.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    made = Database(sqlite_url(tmp_path / name))
    migrate(made.engine)
    made.engine.dispose()
    assert (tmp_path / name).exists()


async def test_what_raises_is_rolled_back(database: Database) -> None:
    def work(connection: Connection) -> None:
        connection.execute(insert(audit), [line("lost")])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await database.run(work)
    assert await database.run(subjects_of) == []
    await database.close()


async def test_commits_survive_a_second_opening_in_the_strict_mode(database: Database, tmp_path: Path) -> None:
    await database.run(lambda connection: connection.execute(insert(audit), [line("kept")]).rowcount)
    assert await database.run(lambda connection: connection.execute(text("PRAGMA journal_mode")).scalar()) == "wal"
    assert await database.run(lambda connection: connection.execute(text("PRAGMA synchronous")).scalar()) == 2
    await database.close()
    again = Database(sqlite_url(tmp_path / "test.db"))
    assert await again.run(subjects_of) == ["kept"]
    await again.close()


async def test_what_follows_a_commit_happens_also_when_the_caller_has_gone(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()
    followed: list[str] = []

    def work(connection: Connection) -> str:
        begun.set()
        go_on.wait(10)
        connection.execute(insert(audit), [line("kept")])
        return "committed"

    async with asyncio.TaskGroup() as group:
        caller = group.create_task(database.run(work, after=followed.append))
        await asyncio.to_thread(begun.wait, 10)
        caller.cancel()
    go_on.set()
    assert await database.run(subjects_of) == ["kept"]
    assert followed == ["committed"]
    await database.close()


async def test_too_many_waiting_transactions_are_refused_at_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "MAX_WAITING", 1)
    go_on = threading.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(database.run(lambda _: go_on.wait(10)))
        await asyncio.sleep(0)
        with pytest.raises(UnavailableError) as caught:
            await database.run(subjects_of)
        go_on.set()
    assert caught.value.code == "DATABASE_OVERLOADED"
    await database.close()


async def test_a_locked_database_is_unavailable(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "BUSY_TIMEOUT_MS", 50)
    impatient = Database(sqlite_url(tmp_path / "test.db"))
    with database.engine.begin(), pytest.raises(UnavailableError) as caught:
        await impatient.run(subjects_of)
    assert caught.value.code == "DATABASE_UNAVAILABLE"
    await impatient.close()
    await database.close()


@given(moment=st.datetimes(timezones=st.just(UTC)))
def test_an_instant_comes_back_to_the_microsecond(moment: datetime) -> None:
    engine = create_engine("sqlite://")
    audit.create(engine)
    with engine.begin() as connection:
        connection.execute(insert(audit), [line("x", moment)])
        assert connection.execute(select(audit.c.at)).scalar() == moment
    engine.dispose()


def test_a_second_controller_on_a_data_folder_is_told_who_holds_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with lock.data_folder(folder) as first, pytest.raises(ConflictError) as caught, lock.data_folder(folder):
        pass
    assert caught.value.code == "DATA_FOLDER_IN_USE"
    assert "pid " in caught.value.message
    with lock.data_folder(tmp_path / "data") as second:
        assert first == second


def test_a_data_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PreconditionError) as caught, lock.data_folder(tmp_path / "file" / "data"):
        pass
    assert caught.value.code == "DATA_FOLDER_NOT_WRITABLE"


async def test_a_database_that_another_controller_uses_is_refused(database: Database) -> None:
    def claim(instance: str, data_id: str, at: datetime) -> None:
        with database.engine.begin() as connection:
            lock.claim_database(connection, instance=instance, data_id=data_id, now=at)

    claim("c-1", "data-1", NOW)
    with pytest.raises(ConflictError) as caught:
        claim("c-2", "data-2", NOW + timedelta(seconds=lock.CLAIM_S - 1))
    assert caught.value.code == "DATABASE_IN_USE"
    claim("c-3", "data-1", NOW + timedelta(seconds=1))
    claim("c-4", "data-2", NOW + timedelta(seconds=1 + lock.CLAIM_S))
    with pytest.raises(ConflictError), database.engine.begin() as connection:
        lock.renew_claim(connection, instance="c-3", now=NOW)
    with database.engine.begin() as connection:
        lock.release_claim(connection, instance="c-4")
    claim("c-5", "data-5", NOW)
    await database.close()
