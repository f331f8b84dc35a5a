"""Whether the phones of this process are there, as adb sees them.

One device tracker serves all agents of a process; it is the only thing that watches adb.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import structlog

from droidfleet_agent.driver.adb import ABSENT, AdbServer, phone_state
from droidfleet_shared.bus.messages import PhoneState

log = structlog.get_logger(__name__)


class Presence(ABC):
    """Contract: `state` is what was seen last and never waits; callbacks are called after every change, in one loop."""

    @abstractmethod
    def state(self, serial: str) -> PhoneState:
        """How the phone was seen last; not seen at all is offline."""

    @abstractmethod
    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Calls ``callback`` when any phone's state changed, until the result is called."""


class AlwaysThere(Presence):
    """For phones that cannot be unplugged."""

    def state(self, serial: str) -> PhoneState:
        return PhoneState.ONLINE

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class AdbPresence(Presence):
    """Follows an adb server's device list. Run `run` as long as it is needed."""

    def __init__(self, adb: AdbServer) -> None:
        self._adb = adb
        self._devices: Mapping[str, str] = {}
        self._callbacks: list[Callable[[], None]] = []

    @property
    def devices(self) -> Mapping[str, str]:
        """Serial to adb's word, as last seen."""
        return self._devices

    def state(self, serial: str) -> PhoneState:
        return phone_state(self._devices.get(serial, ABSENT))

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def run(self) -> None:
        """Follows plug and unplug until cancelled; an adb server that goes away is started and followed again."""
        async for devices in self._adb.track():
            if devices != self._devices:
                log.info("phones_changed", devices=dict(devices))
            self._devices = dict(devices)
            for callback in list(self._callbacks):
                callback()
