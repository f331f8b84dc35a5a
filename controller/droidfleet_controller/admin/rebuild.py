"""Makes the broker's content anew from the database, and says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import structlog

from droidfleet_controller.dispatch.publisher import Publisher
from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.registry import Registry
from droidfleet_controller.store import documents
from droidfleet_controller.store.database import Database
from droidfleet_shared.bus.messages import MISSED_HEARTBEATS
from droidfleet_shared.bus.port import Bus
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, UnavailableError

log = structlog.get_logger(__name__)

PROVISION_TIMEOUT_S = 10.0

LOOK_S = 0.3
"""How often it is looked how far things are; the publisher notes what is confirmed every 0.2 s."""

STUCK_S = 60.0
"""Without one more document that the broker took in this time, it takes none."""


class Stage(StrEnum):
    """What is being done, in this order."""

    STREAMS = "STREAMS"
    DOCUMENTS = "DOCUMENTS"
    AGENTS = "AGENTS"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stage is."""

    stage: Stage
    done: int
    total: int


class Rebuild:
    """The use case RebuildBus. It changes nothing about executions, so it is safe at any time, and again.

    What agents had sent and no controller has read comes again from their journals: a result that is not recorded is
    sent again by itself. ``heartbeat_s``: how often agents are heard.
    """

    def __init__(
        self,
        *,
        bus: Bus,
        database: Database,
        clock: Clock,
        publisher: Publisher,
        registry: Registry,
        heartbeat_s: float,
    ) -> None:
        self._bus = bus
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._registry = registry
        self._agents_s = MISSED_HEARTBEATS * heartbeat_s
        self._turn = asyncio.Lock()

    async def run(self) -> AsyncIterator[Progress]:
        """Does it, step by step; the last one is DONE.

        Raises:
            ConflictError: ``REBUILD_RUNNING``.
            UnavailableError: ``BUS_...``, ``DATABASE_...``; ``REBUILD_STUCK``: the broker takes no documents. What is
                missing goes out by itself when it does.
        """
        if self._turn.locked():
            raise ConflictError("REBUILD_RUNNING", "the bus is being rebuilt already.", hint="Wait for its end.")
        async with self._turn:
            log.warning("bus_rebuild_started")
            yield Progress(Stage.STREAMS, 0, 3)
            await self._bus.check_broker(timeout_s=PROVISION_TIMEOUT_S)
            for stream in (DESIRED, EVENTS):
                await self._bus.ensure_stream(stream, timeout_s=PROVISION_TIMEOUT_S)
            await self._bus.ensure_consumer(EVENTS_READER, timeout_s=PROVISION_TIMEOUT_S)
            yield Progress(Stage.STREAMS, 3, 3)
            wanted = await self._publisher.republish()
            async for progress in self._published(wanted):
                yield progress
            async for progress in self._applied(wanted):
                yield progress
            log.warning("bus_rebuild_finished", documents=len(wanted))
            yield Progress(Stage.DONE, len(wanted), len(wanted))

    async def _published(self, wanted: Mapping[str, int]) -> AsyncIterator[Progress]:
        last = -1
        stuck = self._clock.deadline(STUCK_S)
        while True:
            found = {each.agent: each.generation for each in await self._database.run(documents.publications)}
            done = sum(found.get(agent, 0) >= generation for agent, generation in wanted.items())
            if done != last:
                last, stuck = done, self._clock.deadline(STUCK_S)
                yield Progress(Stage.DOCUMENTS, done, len(wanted))
            if done == len(wanted):
                return
            if stuck.passed:
                raise UnavailableError(
                    "REBUILD_STUCK",
                    f"the broker has {done} of {len(wanted)} documents and took none for {STUCK_S:.0f} s.",
                    hint="See the logs of controller and broker. What is missing goes out when the broker takes it.",
                )
            await self._clock.sleep(LOOK_S)

    async def _applied(self, wanted: Mapping[str, int]) -> AsyncIterator[Progress]:
        """Until the agents that are heard follow their documents, or have had the time for it."""
        heard = {
            name
            for name, device in self._registry.known.items()
            if name in wanted and self._registry.state(device) is not DeviceState.OFFLINE
        }
        last = -1
        deadline = self._clock.deadline(self._agents_s)
        while True:
            done = sum(self._follows(name, wanted[name]) for name in heard)
            if done != last:
                last = done
                yield Progress(Stage.AGENTS, done, len(heard))
            if done == len(heard) or deadline.passed:
                return
            await self._clock.sleep(LOOK_S)

    def _follows(self, name: str, generation: int) -> bool:
        device = self._registry.find(name)
        beat = device.heartbeat if device is not None else None
        return beat is not None and beat.epoch == self._publisher.epoch and beat.generation >= generation
