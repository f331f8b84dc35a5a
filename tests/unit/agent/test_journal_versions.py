"""A journal that an older agent wrote is read by this one, whole or not at all; one of a newer agent is left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from droidfleet_agent.journal.attempt import Phase
from droidfleet_agent.journal.sqlite import SCHEMA_VERSION, JournalUnusableError, SqliteJournal
from support.journals import A

VERSION_1 = """
CREATE TABLE attempts (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  execution_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  task TEXT NOT NULL,
  start_by TEXT,
  phase TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  step_id TEXT,
  path TEXT,
  dispatched INTEGER,
  unsent INTEGER NOT NULL,
  last BLOB,
  trail_length INTEGER,
  restarts INTEGER NOT NULL,
  UNIQUE (execution_id, attempt)
);
CREATE TABLE trail (
  place INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, attempt INTEGER NOT NULL, body TEXT NOT NULL
);
CREATE INDEX trail_of_attempt ON trail (execution_id, attempt, place);
CREATE TABLE outbox (
  place INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, attempt INTEGER NOT NULL,
  sequence INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (execution_id, attempt, sequence)
);
CREATE TABLE forgotten (
  place INTEGER PRIMARY KEY AUTOINCREMENT, execution_id TEXT NOT NULL, attempt INTEGER NOT NULL,
  UNIQUE (execution_id, attempt)
);
INSERT INTO attempts (execution_id, attempt, task, phase, sequence, unsent, trail_length, restarts)
VALUES ('a', 1, '{}', 'RUNNING', 3, 0, 2, 1);
PRAGMA user_version = 1;
"""
WITH_PAUSED = "ALTER TABLE attempts ADD COLUMN paused INTEGER NOT NULL DEFAULT 0; UPDATE attempts SET paused = 1;"


def written(file: Path, *scripts: str) -> Path:
    connection = sqlite3.connect(file)
    for script in scripts:
        connection.executescript(script)
    connection.close()
    return file


@pytest.mark.parametrize(("scripts", "paused"), [((VERSION_1,), False), ((VERSION_1, WITH_PAUSED), True)])
async def test_an_older_journal_is_gone_on_with(tmp_path: Path, scripts: tuple[str, ...], paused: bool) -> None:
    journal = SqliteJournal(written(tmp_path / "journal", *scripts))
    [attempt] = await journal.attempts()
    assert (attempt.ref, attempt.phase, attempt.sequence, attempt.restarts) == (A, Phase.RUNNING, 3, 1)
    assert (attempt.crashes, attempt.left, attempt.paused) == (1, False, paused)
    await journal.leave(A)
    await journal.close()
    again = SqliteJournal(tmp_path / "journal")
    assert [attempt.left for attempt in await again.attempts()] == [True]
    await again.close()


async def test_a_journal_that_cannot_be_brought_up_to_date_stays_as_it_was(tmp_path: Path) -> None:
    file = written(tmp_path / "journal", VERSION_1, "ALTER TABLE attempts ADD COLUMN crashes INTEGER;")
    with pytest.raises(JournalUnusableError):
        SqliteJournal(file)
    connection = sqlite3.connect(file)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(attempts)")]
    [version] = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    assert (version, "paused" in columns) == (1, False)


async def test_a_journal_of_a_newer_agent_is_refused_and_left_alone(tmp_path: Path) -> None:
    file = written(tmp_path / "journal", VERSION_1, f"PRAGMA user_version = {SCHEMA_VERSION + 1};")
    with pytest.raises(JournalUnusableError, match=f"version {SCHEMA_VERSION + 1}") as refused:
        SqliteJournal(file)
    assert "newer agent" in refused.value.hint
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT count(*) FROM attempts").fetchone() == (1,)
    connection.close()


async def test_a_new_journal_has_the_newest_version(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "journal")
    await journal.close()
    connection = sqlite3.connect(tmp_path / "journal")
    assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
    connection.close()
