"""Groups of devices and, of static ones, their members."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, delete, func, insert, select, update

from droidfleet_controller.fleet.group import Group
from droidfleet_controller.store.schema import group_members, groups
from droidfleet_controller.store.sql import chunks


def load(connection: Connection) -> list[Group]:
    """All groups, by name."""
    members: dict[str, list[str]] = {}
    for row in connection.execute(select(group_members).order_by(group_members.c.group_name, group_members.c.device)):
        members.setdefault(row.group_name, []).append(row.device)
    return [
        Group(devices=tuple(members.get(row["name"], ())), **row)
        for row in connection.execute(select(groups).order_by(groups.c.name)).mappings()
    ]


def count(connection: Connection) -> int:
    """How many groups there are."""
    return connection.execute(select(func.count()).select_from(groups)).scalar_one()


def exists(connection: Connection, name: str) -> bool:
    """Whether there is one of this name."""
    return connection.execute(select(groups.c.name).where(groups.c.name == name)).first() is not None


def add(connection: Connection, group: Group) -> None:
    """Inserts a group that does not exist."""
    connection.execute(insert(groups).values(name=group.name, created_at=group.created_at, **_changing(group)))
    _add_members(connection, group.name, group.devices)


def replace(connection: Connection, before: Group, after: Group) -> bool:
    """Writes ``after``, unless the group is not in the version of ``before`` any more: then nothing, and False."""
    query = update(groups).where(groups.c.name == before.name, groups.c.version == before.version)
    if not connection.execute(query.values(**_changing(after))).rowcount:
        return False
    _remove_members(connection, before.name, set(before.devices) - set(after.devices))
    _add_members(connection, after.name, set(after.devices) - set(before.devices))
    return True


def remove(connection: Connection, group: Group) -> bool:
    """Deletes the group, unless it is not in this version any more: then nothing, and False."""
    query = delete(groups).where(groups.c.name == group.name, groups.c.version == group.version)
    if not connection.execute(query).rowcount:
        return False
    connection.execute(delete(group_members).where(group_members.c.group_name == group.name))
    return True


def _changing(group: Group) -> dict[str, object]:
    return {
        "query": group.query,
        "description": group.description,
        "version": group.version,
        "updated_at": group.updated_at,
    }


def _add_members(connection: Connection, name: str, devices: Iterable[str]) -> None:
    rows = [{"group_name": name, "device": device} for device in sorted(devices)]
    if rows:
        connection.execute(insert(group_members), rows)


def _remove_members(connection: Connection, name: str, devices: Iterable[str]) -> None:
    for some in chunks(sorted(devices)):
        query = delete(group_members).where(group_members.c.group_name == name, group_members.c.device.in_(some))
        connection.execute(query)
