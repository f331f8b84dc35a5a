"""What people read of devices, their labels, groups and previews. Never prints."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from droidfleet.v1 import fleet_pb2
from droidfleet_controller.cli import documents
from droidfleet_controller.cli.tables import facts, state, table
from droidfleet_controller.cli.text import age, cell, cut, moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from rich.table import Table
    from rich.text import Text

MAX_LABELS_LENGTH = 40
"""Characters of the labels in a table; `devices show` gives all."""

DEVICES_SPARE = ("Foreground", "Android", "Model", "Battery", "Labels")
"""What a list of devices can do without on a narrow screen, the least important first."""

AS_GOOD_AS_RIGHT_S = 0.1
"""What the way over a busy line may make of a clock that is right."""

STATES = ("ONLINE", "BUSY", "PHONE_OFFLINE", "OFFLINE")


def labels_text(device: fleet_pb2.Device) -> str:
    """The labels in one line: ``rack=3, site=berlin``; one with an empty value is its key alone."""
    return ", ".join(f"{key}={value}" if value else key for key, value in sorted(device.labels.items()))


def labels_cut(device: fleet_pb2.Device) -> str:
    """The labels for a table."""
    return cut(labels_text(device), MAX_LABELS_LENGTH)


def devices(items: Iterable[fleet_pb2.Device], *, now: datetime) -> Table:
    """One row a device; labels where there are some."""
    items = list(items)
    labelled = ("Labels",) if any(item.labels for item in items) else ()
    made = table("Device", "State", "Model", "Android", "Battery", "Foreground", *labelled, "Backlog", "Last heard")
    for device in items:
        made.add_row(
            cell(device.name),
            state(documents.device_state_of(device)),
            _model(device),
            cell(device.android_version),
            cell(f"{device.battery_percent} %" if device.battery_percent >= 0 else ""),
            cell(device.foreground_package),
            *(cell(labels_cut(device)) for _ in labelled),
            cell(str(device.backlog)),
            cell(age(documents.instant(device.last_seen_at), now)),
        )
    return made


def _model(device: fleet_pb2.Device) -> Text:
    """An agent is there a moment before it has read anything of its phone."""
    there = device.state in (fleet_pb2.DEVICE_STATE_ONLINE, fleet_pb2.DEVICE_STATE_BUSY)
    return cell("reading ...", "dim") if there and not device.model else cell(device.model)


def device(item: fleet_pb2.Device, *, now: datetime) -> Table:
    """All that is known of one device."""
    return facts(
        ("Name", cell(item.name)),
        ("State", state(documents.device_state_of(item))),
        ("Serial", cell(item.serial)),
        ("Model", _model(item)),
        ("Android", cell(item.android_version)),
        ("Agent", cell(f"{item.agent_version} on {item.host}")),
        ("Battery", cell(f"{item.battery_percent} %" if item.battery_percent >= 0 else "unknown")),
        ("Foreground", cell(item.foreground_package)),
        ("Running", cell(item.running_execution_id)),
        ("Backlog", cell(str(item.backlog))),
        ("Last heard", cell(age(documents.instant(item.last_seen_at), now))),
        ("Clock", cell(_clock(item))),
        ("Capabilities", cell(", ".join(item.capabilities))),
        ("Labels", cell(labels_text(item))),
    )


def _clock(item: fleet_pb2.Device) -> str:
    """How far its host's clock is off, in words."""
    if not item.HasField("clock_offset_seconds"):
        return ""
    offset_s = item.clock_offset_seconds
    if abs(offset_s) < AS_GOOD_AS_RIGHT_S:
        return "right"
    return f"{abs(offset_s):.1f} s {'ahead' if offset_s > 0 else 'behind'}"


def groups(items: Iterable[fleet_pb2.Group], *, now: datetime) -> Table:
    """One row a group."""
    made = table("Group", "Who", "Version", "Changed", "Description")
    for item in items:
        made.add_row(
            cell(item.name),
            cell(_who(item)),
            cell(str(item.version)),
            cell(age(documents.instant(item.updated_at), now)),
            cell(item.description),
        )
    return made


def group(item: fleet_pb2.Group) -> Table:
    """All that is known of one group."""
    return facts(
        ("Name", cell(item.name)),
        ("Description", cell(item.description)),
        ("Query", cell(item.query)),
        ("Devices", cell(", ".join(item.devices) or ("" if item.query else "none"))),
        ("Version", cell(str(item.version))),
        ("Created", cell(moment(documents.instant(item.created_at)))),
        ("Changed", cell(moment(documents.instant(item.updated_at)))),
    )


def preview(items: Iterable[fleet_pb2.Device]) -> Table:
    """One row a device: whether it can work, what it does, and how many executions wait for it."""
    made = table("Device", "State", "Backlog", "Running", "Labels")
    for item in items:
        made.add_row(
            cell(item.name),
            state(documents.device_state_of(item)),
            cell(str(item.backlog)),
            cell(item.running_execution_id),
            cell(labels_cut(item)),
        )
    return made


def preview_summary(items: Sequence[fleet_pb2.Device]) -> str:
    """The same in one line: ``12 devices: 9 online, 1 busy, 2 offline; 5 executions wait``."""
    if not items:
        return "No device matches now."
    counts = Counter(map(documents.device_state_of, items))
    words = [f"{counts[word]} {word.lower().replace('_', ' ')}" for word in STATES if counts[word]]
    waiting = sum(item.backlog for item in items)
    return f"{_counted(len(items), 'device')}: {', '.join(words)}; {_counted(waiting, 'execution')} waiting"


def _who(item: fleet_pb2.Group) -> str:
    return item.query or _counted(len(item.devices), "device")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
