"""The controller's place on its broker: it is the only one there, and the streams are in order after each connect."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import structlog

from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import identity, lock
from droidfleet_controller.store.database import Database
from droidfleet_shared.bus import manage, subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.port import BrokerUnsuitableError, BusMessage, BusUnavailableError, NoRespondersError
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, UnavailableError

log = structlog.get_logger(__name__)

CONNECT_S = 5.0
"""How long the start waits for the broker; a broker of one's own may also come later."""

PROVISION_TIMEOUT_S = 10.0
PROVISION_RETRY_S = 0.5
PROVISION_RETRY_CAP_S = 10.0
PING_TIMEOUT_S = 2.0


class Admission:
    """Give `reconcile` to ``bus.on_connected`` before the bus runs, and call `admit` when it does."""

    def __init__(
        self, *, bus: BusLink, database: Database, clock: Clock, registry: Registry, publisher: Publisher
    ) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
        self._registry = registry
        self._publisher = publisher
        self._admitted = asyncio.Event()
        self._reconciled = asyncio.Event()
        self._trouble = ""

    @property
    def missing(self) -> str:
        """What is not in order of a broker that is connected; empty: all is."""
        if self._trouble:
            return self._trouble
        return "" if self._reconciled.is_set() else "streams are being made"

    async def admit(self) -> None:
        """Waits for the broker, and makes sure that no other controller works on it.

        Raises:
            ConflictError: ``BUS_IN_USE``.
        """
        with suppress(BusUnavailableError):
            await self._bus.wait_connected(self._clock.deadline(CONNECT_S))
        if self._bus.connected:
            with suppress(BusUnavailableError):
                await self._bus.check_broker(timeout_s=PROVISION_TIMEOUT_S)
            await self._refuse_second()
        else:
            log.warning(
                "broker_unavailable",
                reason=self._bus.reason,
                hint="Commands are recorded and go out when it is there.",
            )
        self._bus.subscribe(subjects.CONTROLLER, self._answer)
        self._admitted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                if self._bus.connected:
                    await self._reconciled.wait()

    async def _refuse_second(self) -> None:
        try:
            answer = await self._bus.request(subjects.CONTROLLER, b"", timeout_s=PING_TIMEOUT_S)
        except NoRespondersError:
            return
        except BusUnavailableError as error:
            log.warning("other_controllers_unknown", code=error.code)
            return
        raise ConflictError(
            "BUS_IN_USE",
            f"another controller works on this broker: {answer.data.decode(errors='replace')[:200]}.",
            hint="Several controllers on one broker come later. Stop it, or give this one a broker of its own.",
        )

    async def _answer(self, message: BusMessage) -> None:
        if message.reply:
            await self._bus.publish(message.reply, lock.describe(self._clock.now()).encode())

    async def reconcile(self) -> None:
        """After every connect: the streams, then what the broker may have lost."""
        await self._admitted.wait()
        attempt = 0
        while self._bus.connected:
            try:
                await self._bus.check_broker(timeout_s=PROVISION_TIMEOUT_S)
                await self._make_streams()
                await self._registry.connected()
                await self._publisher.reconcile()
            except (UnavailableError, BrokerUnsuitableError) as error:
                # JetStream of a server that has just started may need a moment.
                level = logging.WARNING if attempt else logging.INFO
                log.log(level, "broker_not_ready", code=error.code, message=error.message, hint=error.hint)
                self._trouble = f"{error.code}: {error.message}"
                await self._clock.sleep(min(PROVISION_RETRY_CAP_S, PROVISION_RETRY_S * 2**attempt))
                attempt = min(attempt + 1, 10)
            else:
                self._trouble = ""
                self._reconciled.set()
                return

    async def _make_streams(self) -> None:
        for stream in (DESIRED, EVENTS):
            await self._bus.ensure_stream(stream, timeout_s=PROVISION_TIMEOUT_S)
        again = await self._database.run(identity.read_events_again)
        if again:
            log.warning("events_read_again", reason="the database was restored from a backup")
            await manage.drop_consumer(self._bus, EVENTS_READER, timeout_s=PROVISION_TIMEOUT_S)
        await self._bus.ensure_consumer(EVENTS_READER, timeout_s=PROVISION_TIMEOUT_S)
        if again:
            await self._database.run(identity.events_come_again)
