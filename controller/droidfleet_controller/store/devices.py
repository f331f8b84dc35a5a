"""Devices as their agents last described them, and who holds each name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, insert, select, update

from droidfleet_controller.fleet.device import Device, Holder
from droidfleet_controller.store.schema import devices
from droidfleet_shared.bus.messages import Heartbeat


def load(connection: Connection) -> list[Device]:
    """All devices, by name."""
    found = []
    for row in connection.execute(select(devices).order_by(devices.c.name)):
        holder = Holder(row.instance, row.host_id, row.host, row.pid, row.granted_at)
        found.append(Device(row.name, holder, Heartbeat.decode(row.heartbeat.encode()), row.last_seen_at))
    return found


def add(connection: Connection, device: Device) -> None:
    """Inserts a device that was never seen before."""
    connection.execute(insert(devices).values(name=device.name, **_values(device)))


def save(connection: Connection, changed: Sequence[Device]) -> None:
    """Writes what changed of known devices."""
    if changed:
        connection.execute(_UPDATE, [{"key": device.name, **_values(device)} for device in changed])


def _values(device: Device) -> dict[str, object]:
    return {
        "instance": device.holder.instance,
        "host_id": device.holder.host_id,
        "host": device.holder.host,
        "pid": device.holder.pid,
        "granted_at": device.holder.granted_at,
        "heartbeat": device.heartbeat.encode().decode(),
        "last_seen_at": device.last_seen_at,
    }


_UPDATE = (
    update(devices)
    .where(devices.c.name == bindparam("key"))
    .values({
        name: bindparam(name)
        for name in ("instance", "host_id", "host", "pid", "granted_at", "heartbeat", "last_seen_at")
    })
)  # fmt: skip
