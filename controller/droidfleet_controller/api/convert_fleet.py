"""Between the fleet's records and protobuf messages."""

from __future__ import annotations

from collections.abc import Mapping

from droidfleet.v1 import fleet_pb2
from droidfleet_controller.api.convert import device_state, timestamp
from droidfleet_controller.fleet.device import Device, DeviceState
from droidfleet_controller.fleet.group import Group

UNKNOWN_BATTERY = -1


def device_to_pb(
    device: Device, *, state: DeviceState, backlog: int, labels: Mapping[str, str], clock_offset_s: float | None
) -> fleet_pb2.Device:
    """A device in the state that it has now."""
    beat = device.heartbeat
    return fleet_pb2.Device(
        name=device.name,
        state=device_state(state),
        serial=beat.serial,
        model=beat.model,
        android_version=beat.android,
        agent_version=beat.version,
        host=beat.host,
        battery_percent=UNKNOWN_BATTERY if beat.battery_percent is None else beat.battery_percent,
        foreground_package=beat.foreground_package,
        running_execution_id=beat.running.execution_id if beat.running else "",
        backlog=backlog,
        last_seen_at=timestamp(device.last_seen_at),
        capabilities=beat.capabilities,
        labels=labels,
        clock_offset_seconds=clock_offset_s,
    )


def group_to_pb(group: Group) -> fleet_pb2.Group:
    """A group; a static one has an empty query."""
    return fleet_pb2.Group(
        name=group.name,
        query=group.query or "",
        devices=group.devices,
        description=group.description,
        version=group.version,
        created_at=timestamp(group.created_at),
        updated_at=timestamp(group.updated_at),
    )
