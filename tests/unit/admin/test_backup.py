"""Backups: one moment of the database, whole or not there, and never over another file."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import text

from droidfleet_controller.admin import archive, backup, sqlite_file
from droidfleet_controller.admin.backup import Made
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_controller.settings import ServeSettings
from droidfleet_controller.store import artifacts
from droidfleet_controller.store.artifacts import StoredArtifact
from droidfleet_shared.errors import ConflictError, DroidfleetError, InvalidInputError, NotFoundError, PreconditionError
from unit.controller.builders import NOW
from unit.controller.dispatching import Dispatch, dispatching

PICTURE = b"a picture"

COPIES = 4


def make(folder: Path, *, with_artifacts: bool = False, name: str = "copy.backup") -> Made:
    """Makes a backup of the database that `dispatching` works on."""
    kept = folder / "artifacts" if with_artifacts else None
    return backup.make(folder / "test.db", folder / name, artifacts=kept, now=NOW, say=lambda _: None)


def executions_in(file: Path, scratch: Path) -> int:
    """How many executions a backup holds."""
    backup.verify(file, scratch)
    with closing(sqlite3.connect(scratch)) as connection:
        return int(connection.execute("SELECT count(*) FROM executions").fetchone()[0])


async def keep_picture(dispatch: Dispatch, folder: Path) -> str:
    digest = sha256(PICTURE).hexdigest()
    ArtifactFiles(folder / "artifacts").keep({digest: PICTURE})
    one = StoredArtifact(
        execution_id="x-1",
        attempt=1,
        step_id="s",
        path="/steps/0",
        name="p",
        media_type="image/png",
        sha256=digest,
        size_bytes=len(PICTURE),
        stored_at=NOW,
    )
    await dispatch.database.run(lambda connection: artifacts.add(connection, [one], now=NOW))
    return digest


def left_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()} - {"test.db", "test.db-wal", "test.db-shm", "artifacts"}


async def test_a_backup_holds_what_was_committed_before_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01")
        made = make(tmp_path)
        await dispatch.run("phone-01")
    assert executions_in(tmp_path / "copy.backup", tmp_path / "scratch.db") == 1
    assert (made.findings, made.manifest.artifacts, made.manifest.made_at) == ((), None, NOW)


async def test_a_backup_made_while_others_write_is_one_moment(tmp_path: Path) -> None:
    """Two counters that one transaction always moves together are equal in every copy."""
    async with dispatching(tmp_path):
        pass
    end = threading.Event()
    with closing(sqlite3.connect(tmp_path / "test.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE a (n INTEGER)")
        connection.execute("CREATE TABLE b (n INTEGER, filler TEXT)")

    def write() -> None:
        with closing(sqlite3.connect(tmp_path / "test.db", isolation_level=None, timeout=10)) as connection:
            while not end.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO a VALUES (1)")
                connection.execute("INSERT INTO b VALUES (1, ?)", ("x" * 5_000,))
                connection.execute("COMMIT")

    seen: list[int] = []
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(write), name="writing")
        try:
            for number in range(COPIES):
                await asyncio.to_thread(make, tmp_path, name=f"copy-{number}")
                scratch = tmp_path / f"{number}.db"
                backup.verify(tmp_path / f"copy-{number}", scratch)
                with closing(sqlite3.connect(scratch)) as connection:
                    [(one, other)] = connection.execute("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)")
                assert one == other
                seen.append(one)
        finally:
            end.set()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]


async def test_artifacts_come_along_when_asked_for(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        digest = await keep_picture(dispatch, tmp_path)
        made = make(tmp_path, with_artifacts=True)
    with archive.opened(tmp_path / "copy.backup") as opened:
        opened.extract_database(tmp_path / "scratch.db")
        assert dict(opened.artifacts()) == {digest: PICTURE}
    assert (made.manifest.artifacts, made.missing) == (1, 0)


async def test_an_artifact_without_its_file_is_counted_and_left_out(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        digest = await keep_picture(dispatch, tmp_path)
        ArtifactFiles(tmp_path / "artifacts").remove([digest])
        made = make(tmp_path, with_artifacts=True)
    assert (made.manifest.artifacts, made.missing) == (0, 1)


async def test_a_backup_overwrites_nothing(tmp_path: Path) -> None:
    async with dispatching(tmp_path):
        (tmp_path / "copy.backup").write_text("somebody's")
        with pytest.raises(ConflictError) as caught:
            make(tmp_path)
    assert caught.value.code == "FILE_EXISTS"
    assert (tmp_path / "copy.backup").read_text() == "somebody's"
    assert left_in(tmp_path) == {"copy.backup"}


async def test_a_file_that_comes_up_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dispatching(tmp_path):
        real = backup.verify

        def late(file: Path, scratch: Path) -> archive.Manifest:
            (tmp_path / "copy.backup").write_text("somebody's")
            return real(file, scratch)

        monkeypatch.setattr(backup, "verify", late)
        with pytest.raises(ConflictError):
            make(tmp_path)
    assert (tmp_path / "copy.backup").read_text() == "somebody's"


async def test_nothing_is_left_of_a_backup_that_the_disk_does_not_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dispatching(tmp_path):

        def full(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(archive, "write", full)
        with pytest.raises(PreconditionError) as caught:
            make(tmp_path)
    assert caught.value.code == "BACKUP_NOT_WRITTEN"
    assert left_in(tmp_path) == set()


async def test_only_its_owner_can_read_a_backup(tmp_path: Path) -> None:
    """It holds the secrets of what had not ended."""
    async with dispatching(tmp_path):
        make(tmp_path)
    assert (tmp_path / "copy.backup").stat().st_mode & 0o077 == 0


async def test_a_damaged_database_is_not_passed_off_as_a_backup(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        for _ in range(20):
            await dispatch.run("phone-01")
    damage(tmp_path / "test.db")
    with pytest.raises(PreconditionError) as caught:
        make(tmp_path)
    assert caught.value.code == "DATABASE_DAMAGED"
    assert left_in(tmp_path) == set()


def damage(file: Path) -> None:
    """What a bad disk does: pages in the middle hold something else."""
    size = file.stat().st_size
    with file.open("r+b") as stream:
        for page in range(4, size // 4096 - 1, 3):
            stream.seek(page * 4096)
            stream.write(b"\xa5" * 2048)


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
async def test_a_backup_that_lost_its_end_is_refused(tmp_path: Path, at: float) -> None:
    async with dispatching(tmp_path):
        make(tmp_path)
    file = tmp_path / "copy.backup"
    os.truncate(file, int(file.stat().st_size * at))
    with pytest.raises(InvalidInputError) as caught:
        backup.check(file)
    assert caught.value.code == "BAD_BACKUP"


async def test_a_backup_with_one_changed_byte_is_refused(tmp_path: Path) -> None:
    async with dispatching(tmp_path):
        make(tmp_path)
    file = tmp_path / "copy.backup"
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(b"\x00\x01")
    with pytest.raises(DroidfleetError) as caught:
        backup.check(file)
    assert caught.value.code == "BAD_BACKUP"


def test_a_file_that_is_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("no backup at all")
    with pytest.raises(InvalidInputError) as caught:
        backup.check(file)
    assert caught.value.code == "BAD_BACKUP"


def test_a_database_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        make(tmp_path)
    assert caught.value.code == "DATABASE_NOT_FOUND"


def test_another_database_is_left_to_its_own_tools(tmp_path: Path) -> None:
    settings = ServeSettings.model_validate({"data": tmp_path, "database": "postgresql://localhost/fleet"})
    with pytest.raises(PreconditionError) as caught:
        sqlite_file.database_file(settings)
    assert caught.value.code == "DATABASE_NOT_SQLITE"
    assert "pg_dump" in caught.value.hint


async def test_a_broken_invariant_is_reported_and_copied_all_the_same(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01")
        await dispatch.database.run(lambda connection: connection.execute(text("DELETE FROM texts")))
        made = make(tmp_path)
    assert [finding.code for finding in made.findings] == ["TEXT_MISSING"]
    assert [finding.code for finding in backup.check(tmp_path / "copy.backup")] == ["TEXT_MISSING"]


async def test_a_backup_of_a_stopped_controllers_database_is_made_as_well(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.run("phone-01", expires_in=timedelta(hours=2))
    assert make(tmp_path).manifest.schema_revision
