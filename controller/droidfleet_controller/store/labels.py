"""The labels of devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select

from droidfleet_controller.store.schema import labels
from droidfleet_controller.store.sql import chunks

_REMOVE = delete(labels).where(labels.c.device == bindparam("of_device"), labels.c.key == bindparam("of_key"))
_ADD = insert(labels)

ByDevice = dict[str, dict[str, str]]
"""Labels by device; devices without any are left out."""


def load(connection: Connection) -> ByDevice:
    """All labels."""
    found: ByDevice = {}
    for row in connection.execute(select(labels).order_by(labels.c.device, labels.c.key)):
        found.setdefault(row.device, {})[row.key] = row.value
    return found


def of(connection: Connection, devices: Iterable[str]) -> ByDevice:
    """The labels of these devices."""
    found: ByDevice = {}
    for some in chunks(devices):
        for row in connection.execute(select(labels).where(labels.c.device.in_(some)).order_by(labels.c.key)):
            found.setdefault(row.device, {})[row.key] = row.value
    return found


def write(
    connection: Connection, before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> None:
    """Makes the labels of the devices in ``after`` what they are there; ``before``: what `of` found."""
    gone: list[dict[str, str]] = []
    new: list[dict[str, str]] = []
    for device, wanted in after.items():
        had = before.get(device, {})
        gone += [{"of_device": device, "of_key": key} for key in had if wanted.get(key) != had[key]]
        new += [
            {"device": device, "key": key, "value": value} for key, value in wanted.items() if had.get(key) != value
        ]
    if gone:
        connection.execute(_REMOVE, gone)
    if new:
        connection.execute(_ADD, new)
