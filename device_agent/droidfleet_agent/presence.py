"""Whether the phones of this process are there, as adb sees them.

One device tracker serves all agents of a process; it is the only thing that watches adb.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import structlog

from droidfleet_agent.driver.adb import ABSENT, ONLINE, AdbServer, phone_state
from droidfleet_agent.driver.adb_errors import AdbError
from droidfleet_shared.bus.messages import PhoneState
from droidfleet_shared.clock import Clock

log = structlog.get_logger(__name__)

START_ADB_S = 20.0
"""A cold start of an adb server takes some seconds on a small host."""

CONNECT_EVERY_S = 3.0
CONNECT_TIMEOUT_S = 5.0
"""adb answers at once where nobody listens; a silent address takes it longer than this."""


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
    """Follows an adb server's device list. Run `run` as long as it is needed.

    ``connect``: phones at ``host:port`` that the adb server is asked to look for while it does not list them.
    """

    def __init__(self, adb: AdbServer, *, clock: Clock, connect: Sequence[str] = ()) -> None:
        self._adb = adb
        self._clock = clock
        self._addresses = [serial for serial in connect if ":" in serial]
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
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="phones follow")
            if self._addresses:
                group.create_task(self._connect(), name="phones connect")

    async def _connect(self) -> None:
        while True:
            for address in self._addresses:
                if self._devices.get(address) != ONLINE:
                    await self._connect_one(address)
            await self._clock.sleep(CONNECT_EVERY_S)

    async def _connect_one(self, address: str) -> None:
        try:
            await self._adb.start(deadline=self._clock.deadline(START_ADB_S))
            answer = await self._adb.connect(address, deadline=self._clock.deadline(CONNECT_TIMEOUT_S))
        except AdbError as error:
            log.debug("phone_unconnected", serial=address, code=error.code, reason=error.message)
        else:
            log.debug("phone_connect", serial=address, answer=answer)

    async def _follow(self) -> None:
        async for devices in self._adb.track():
            if devices != self._devices:
                log.info("phones_changed", devices=dict(devices))
            self._devices = dict(devices)
            for callback in list(self._callbacks):
                callback()
