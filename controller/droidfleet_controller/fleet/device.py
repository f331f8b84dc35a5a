"""The record of a device and the state that follows from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from droidfleet_shared.bus.messages import MISSED_HEARTBEATS, Heartbeat, PhoneState


class DeviceState(StrEnum):
    """Whether a device can work now; the words of the API."""

    ONLINE = "ONLINE"
    BUSY = "BUSY"
    PHONE_OFFLINE = "PHONE_OFFLINE"
    OFFLINE = "OFFLINE"


UP = frozenset({DeviceState.ONLINE, DeviceState.BUSY})
"""The states in which a device works on what it is given."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The agent process that holds a name."""

    instance: str
    host_id: str
    host: str
    pid: int
    granted_at: datetime

    def __str__(self) -> str:
        return f"pid {self.pid} on {self.host} since {self.granted_at:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Device:
    """A phone with its agent, as the holder of the name last described it."""

    name: str
    holder: Holder
    heartbeat: Heartbeat
    last_seen_at: datetime

    def silent_for(self, now: datetime, *, hearing_since: datetime) -> timedelta:
        """How long nothing was heard although something could have been; ``hearing_since``: since when it could."""
        return now - max(self.last_seen_at, hearing_since)

    def has_left(self, execution_id: str) -> bool:
        """Whether the agent ended in order in the middle of this execution, and is not back."""
        beat = self.heartbeat
        return beat.leaving and beat.running is not None and beat.running.execution_id == execution_id

    def state(self, now: datetime, *, heartbeat: timedelta) -> DeviceState:
        """The state at ``now``, with a heartbeat expected every ``heartbeat``."""
        silent = now - self.last_seen_at >= MISSED_HEARTBEATS * heartbeat
        return DeviceState.OFFLINE if silent else self.said

    @property
    def said(self) -> DeviceState:
        """The state that follows from the last heartbeat, however old it is."""
        if self.heartbeat.leaving:
            return DeviceState.OFFLINE
        if self.heartbeat.phone is not PhoneState.ONLINE:
            return DeviceState.PHONE_OFFLINE
        if self.heartbeat.running is not None:
            return DeviceState.BUSY
        return DeviceState.ONLINE
