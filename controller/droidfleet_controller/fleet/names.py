"""Who gets an agent name. Pure.

One name, one agent process. The holder is the process that was last granted the name. Another process gets it only when
the old one is certainly or very probably gone: on the same host a lock in the host's state folder proves it, elsewhere
three missed heartbeats have to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from droidfleet_controller.fleet.device import Device, Holder
from droidfleet_shared.bus.messages import MISSED_HEARTBEATS, Heartbeat


@dataclass(frozen=True, slots=True)
class Grant:
    """The answer to a heartbeat. ``new``: the name changes hands, or is given for the first time."""

    granted: bool
    holder: Holder
    new: bool = False
    reason: str = ""


def decide(
    beat: Heartbeat, device: Device | None, *, now: datetime, hearing_since: datetime, heartbeat: timedelta
) -> Grant:
    """Whether the sender of ``beat`` holds the name, or gets it now."""
    asking = Holder(beat.instance, beat.host_id, beat.host, beat.pid, now)
    if device is None:
        return Grant(True, asking, new=True, reason="FIRST_SEEN")
    holder = device.holder
    if holder.instance == beat.instance:
        return Grant(True, holder)
    if not beat.hello:
        return Grant(False, holder, reason="HELD_BY_ANOTHER")
    if holder.host_id == beat.host_id:
        return Grant(True, asking, new=True, reason="SAME_HOST")
    if device.silent_for(now, hearing_since=hearing_since) >= MISSED_HEARTBEATS * heartbeat:
        return Grant(True, asking, new=True, reason="HOLDER_SILENT")
    return Grant(False, holder, reason="HELD_BY_ANOTHER")
