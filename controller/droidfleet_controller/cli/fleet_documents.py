"""What programs read of groups and previews, as plain documents of the shape that docs/cli.md promises. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from droidfleet_controller.cli.documents import Document, device_document, device_state_of, time_of

if TYPE_CHECKING:
    from droidfleet.v1 import fleet_pb2


def group_document(group: fleet_pb2.Group) -> Document:
    """A group; ``query`` is ``null`` for a static one."""
    return {
        "name": group.name,
        "query": group.query or None,
        "devices": list(group.devices),
        "description": group.description,
        "version": group.version,
        "createdAt": time_of(group.created_at),
        "updatedAt": time_of(group.updated_at),
    }


def preview_document(found: fleet_pb2.PreviewTargetResponse, *, group: str, query: str) -> Document:
    """Who is meant by a group or a query now."""
    return {
        "group": group or None,
        "query": query or None,
        "devices": [device_document(device) for device in found.devices],
        "states": dict(Counter(map(device_state_of, found.devices))),
        "backlog": sum(device.backlog for device in found.devices),
        "notes": list(found.notes),
    }
