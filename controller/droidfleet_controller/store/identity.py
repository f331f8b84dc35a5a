"""Which database this is, and whether it was restored from a backup."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from droidfleet_controller.ids import new_id
from droidfleet_controller.store.schema import database_identity


def renew(connection: Connection) -> str:
    """Makes this another database for agents: what they follow now is no order of it. Returns the new epoch.

    The stream of events is to be read from its beginning (`read_events_again`).
    """
    epoch = new_id("db")
    connection.execute(update(database_identity).values(epoch=epoch, read_events_again=True))
    return epoch


def read_events_again(connection: Connection) -> bool:
    """Whether the broker may still hold events that an earlier life of this database has acknowledged to it."""
    wanted: bool = connection.execute(select(database_identity.c.read_events_again)).scalar_one()
    return wanted


def events_come_again(connection: Connection) -> None:
    """The reader of the events begins anew: nothing more to do about it."""
    connection.execute(update(database_identity).values(read_events_again=False))
