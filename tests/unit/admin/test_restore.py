"""Putting a backup back: the old database is kept, and what cannot be done changes nothing."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text

from droidfleet_controller.admin import backup, restore
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.settings import ServeSettings
from droidfleet_controller.store import artifacts, lock
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from droidfleet_shared.errors import ConflictError, DroidfleetError, InvalidInputError, PreconditionError
from unit.admin.test_backup import PICTURE, keep_picture
from unit.controller.builders import NOW
from unit.controller.dispatching import dispatching

LATER = NOW + timedelta(hours=1)


def settings(folder: Path) -> ServeSettings:
    return ServeSettings.model_validate({"data": folder})


def back(file: Path, folder: Path) -> restore.Restored:
    return restore.restore(file, settings(folder), now=LATER, say=lambda _: None)


def tasks_in(file: Path) -> list[str]:
    """The ids of the executions in a database."""
    with closing(sqlite3.connect(file)) as connection:
        return [str(row[0]) for row in connection.execute("SELECT execution_id FROM executions ORDER BY number")]


async def a_backup(folder: Path, *, with_artifacts: bool = False) -> tuple[Path, str]:
    """A backup of a database with one execution, and the execution's id."""
    await asyncio.to_thread(folder.mkdir)
    async with dispatching(folder) as dispatch:
        mine = (await dispatch.run("phone-01")).executions[0].execution_id
        if with_artifacts:
            await keep_picture(dispatch, folder)
        kept = folder / "artifacts" if with_artifacts else None
        backup.make(folder / "test.db", folder / "fleet.backup", artifacts=kept, now=NOW, say=lambda _: None)
    return folder / "fleet.backup", mine


def a_data_folder(folder: Path) -> None:
    """A data folder with a database that is empty but for a table of its own."""
    folder.mkdir()
    engine = Database(sqlite_url(folder / "droidfleet.db")).engine
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE old (n INTEGER)"))
    engine.dispose()


def has_old(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'old'").fetchone())


async def test_the_database_is_the_backups_and_the_one_before_is_kept(tmp_path: Path) -> None:
    file, mine = await a_backup(tmp_path / "was")
    a_data_folder(tmp_path / "data")
    done = back(file, tmp_path / "data")
    assert tasks_in(tmp_path / "data" / "droidfleet.db") == [mine]
    assert not has_old(tmp_path / "data" / "droidfleet.db")
    assert done.aside is not None
    assert has_old(done.aside / "droidfleet.db")
    assert (done.made_at, done.settled.lost) == (NOW, 1)


async def test_nothing_of_the_old_databases_log_reaches_the_new_one(tmp_path: Path) -> None:
    """A killed controller leaves a log beside its database."""
    file, mine = await a_backup(tmp_path / "was")
    data = tmp_path / "data"
    a_data_folder(data)
    with closing(sqlite3.connect(data / "droidfleet.db", isolation_level=None)) as left:
        left.execute("PRAGMA journal_mode=WAL")
        left.execute("CREATE TABLE late (n INTEGER)")
        done = back(file, data)
    assert tasks_in(data / "droidfleet.db") == [mine]
    assert done.aside is not None
    with closing(sqlite3.connect(done.aside / "droidfleet.db")) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'late'").fetchone()


async def test_a_damaged_database_is_replaced_and_kept(tmp_path: Path) -> None:
    file, mine = await a_backup(tmp_path / "was")
    data = tmp_path / "data"
    data.mkdir()
    (data / "droidfleet.db").write_bytes(b"nothing that could be read" * 1_000)
    done = back(file, data)
    assert tasks_in(data / "droidfleet.db") == [mine]
    assert done.aside is not None
    assert (done.aside / "droidfleet.db").read_bytes().startswith(b"nothing")


async def test_an_empty_folder_gets_the_database(tmp_path: Path) -> None:
    file, mine = await a_backup(tmp_path / "was")
    done = back(file, tmp_path / "data")
    assert (tasks_in(tmp_path / "data" / "droidfleet.db"), done.aside) == ([mine], None)


async def test_artifacts_come_back(tmp_path: Path) -> None:
    file, _ = await a_backup(tmp_path / "was", with_artifacts=True)
    assert back(file, tmp_path / "data").artifacts == 1
    files = ArtifactFiles(tmp_path / "data" / "artifacts")
    digest = sha256(PICTURE).hexdigest()
    assert files.read(digest) == PICTURE
    engine = Database(sqlite_url(tmp_path / "data" / "droidfleet.db")).engine
    with engine.connect() as connection:
        # Else the next start would sweep it away.
        assert artifacts.digests(connection) == {digest}
    engine.dispose()


async def test_a_folder_that_a_controller_works_in_is_left_alone(tmp_path: Path) -> None:
    file, _ = await a_backup(tmp_path / "was")
    a_data_folder(tmp_path / "data")
    with lock.data_folder(tmp_path / "data"), pytest.raises(ConflictError) as caught:
        back(file, tmp_path / "data")
    assert caught.value.code == "DATA_FOLDER_IN_USE"
    assert has_old(tmp_path / "data" / "droidfleet.db")


async def test_a_database_that_a_controller_elsewhere_works_on_is_left_alone(tmp_path: Path) -> None:
    file, _ = await a_backup(tmp_path / "was")
    a_data_folder(tmp_path / "data")
    engine = Database(sqlite_url(tmp_path / "data" / "droidfleet.db")).engine
    with engine.begin() as connection:
        lock.claim_database(connection, instance="c-1", data_id="another folder", now=LATER)
    engine.dispose()
    with pytest.raises(ConflictError) as caught:
        back(file, tmp_path / "data")
    assert caught.value.code == "DATABASE_IN_USE"
    assert has_old(tmp_path / "data" / "droidfleet.db")


async def test_a_backup_that_is_not_whole_changes_nothing(tmp_path: Path) -> None:
    file, _ = await a_backup(tmp_path / "was", with_artifacts=True)
    a_data_folder(tmp_path / "data")
    file.write_bytes(file.read_bytes()[:-20_000])
    with pytest.raises(InvalidInputError):
        back(file, tmp_path / "data")
    assert has_old(tmp_path / "data" / "droidfleet.db")
    assert not (tmp_path / "data" / "artifacts").exists()
    assert {each.name for each in (tmp_path / "data").iterdir()} <= {"droidfleet.db", "controller.lock", "id"}


async def test_a_backup_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "was").mkdir()
    async with dispatching(tmp_path / "was") as dispatch:
        await dispatch.database.run(
            lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        )
        file = tmp_path / "fleet.backup"
        backup.make(tmp_path / "was" / "test.db", file, artifacts=None, now=NOW, say=lambda _: None)
    a_data_folder(tmp_path / "data")
    with pytest.raises(PreconditionError) as caught:
        back(file, tmp_path / "data")
    assert caught.value.code == "DATABASE_TOO_NEW"
    assert has_old(tmp_path / "data" / "droidfleet.db")


async def test_a_plain_copy_of_a_database_can_be_put_back_too(tmp_path: Path) -> None:
    (tmp_path / "was").mkdir()
    async with dispatching(tmp_path / "was") as dispatch:
        mine = (await dispatch.run("phone-01")).executions[0].execution_id
    done = back(tmp_path / "was" / "test.db", tmp_path / "data")
    assert (tasks_in(tmp_path / "data" / "droidfleet.db"), done.made_at) == ([mine], None)


async def test_a_database_restored_by_other_means_is_made_safe_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "was").mkdir()
    async with dispatching(tmp_path / "was") as dispatch:
        await dispatch.run("phone-01")
    url = f"sqlite:///{tmp_path}/was/test.db"
    made = ServeSettings.model_validate({"data": tmp_path / "data", "database": url})
    assert restore.settle_in_place(made, now=LATER).lost == 1


@pytest.mark.parametrize("step", ["sync", "_keep_aside", "settle"])
async def test_what_fails_half_way_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    file, _ = await a_backup(tmp_path / "was")
    a_data_folder(tmp_path / "data")

    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(restore, step, fails)
    with pytest.raises(DroidfleetError) as caught:
        back(file, tmp_path / "data")
    assert caught.value.code == "RESTORE_NOT_WRITTEN"
    assert has_old(tmp_path / "data" / "droidfleet.db")
