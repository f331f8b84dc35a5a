"""Brings a database to the schema of this program, at the start, before anything else uses it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DatabaseError

from droidfleet_shared.errors import PreconditionError, UnavailableError

MIGRATIONS = Path(__file__).parent / "migrations"


def newest() -> str:
    """The revision to which `migrate` brings a database."""
    return str(_scripts().get_current_head())


def migrate(engine: Engine) -> None:
    """Runs what is missing, each migration in a transaction of its own.

    Raises:
        UnavailableError: the database cannot be opened or written.
        PreconditionError: a newer program has used it.
    """
    config = _config()
    try:
        with engine.connect() as connection:
            _refuse_newer(connection, _scripts())
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
    except DatabaseError as error:
        raise UnavailableError(
            "DATABASE_UNAVAILABLE",
            f"the database {engine.url!r} cannot be opened or brought up to date: {error.orig}.",
            hint="Check that it is a Droidfleet database, and that its folder is writable and its disk not full.",
        ) from error


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _refuse_newer(connection: Connection, scripts: ScriptDirectory) -> None:
    current = MigrationContext.configure(connection).get_current_revision()
    connection.rollback()
    if current is None:
        return
    try:
        scripts.get_revision(current)
    except CommandError:
        raise PreconditionError(
            "DATABASE_TOO_NEW",
            f"the database has schema {current}, which this program does not know.",
            hint="Upgrade droidfleet, or point --database at another one.",
        ) from None
