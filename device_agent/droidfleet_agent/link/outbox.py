"""Empties the journal's outbox into the stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from random import Random

import structlog

from droidfleet_agent.journal.port import Journal
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import Event
from droidfleet_shared.bus.port import Bus, BusUnavailableError, PayloadTooLargeError
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DeniedError, DroidfleetError

log = structlog.get_logger(__name__)

BATCH = 64
"""Events that are under way at a time: enough that the way to the broker and its disk are waited for once for all of
them, few enough that little is sent again when the connection breaks."""

BATCH_BYTES = 1024 * 1024
"""Of those events together, so that artifacts do not pile up in memory; a larger one goes alone."""

PUBLISH_TIMEOUT_S = 5.0
BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 30.0


class Outbox:
    """Sends events in the order in which they were written, each until the broker has it.

    Several are under way at a time, on one connection and so in their order. An event may be sent twice (its
    acknowledgement was lost), then perhaps behind later ones; whoever reads it goes by execution, attempt and sequence.
    ``again``: events to send beside the journal's. ``sent``: called after each one.
    """

    def __init__(
        self,
        agent: str,
        *,
        bus: Bus,
        journal: Journal,
        again: Callable[[], Sequence[Event]],
        sent: Callable[[Event], None],
        clock: Clock,
        random: Random,
    ) -> None:
        self._agent = agent
        self._bus = bus
        self._journal = journal
        self._again = again
        self._sent = sent
        self._clock = clock
        self._random = random
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()

    def wake(self) -> None:
        """There may be something to send, or a way to send it."""
        self._wake.set()

    async def run(self) -> None:
        """Sends until cancelled. Without a connection it waits for the next `wake`."""
        failures = 0
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.flush()
                failures = 0
            except (BusUnavailableError, DeniedError) as error:
                failures += 1
                log.info("events_unsent", agent=self._agent, code=error.code, message=error.message)
                if self._bus.connected:
                    await self._clock.sleep(
                        self._random.uniform(0, min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2 ** min(failures, 10)))
                    )
                    self._wake.set()

    async def flush(self) -> None:
        """Sends everything that waits.

        Raises:
            BusUnavailableError, DeniedError: what is not sent stays in the journal.
        """
        async with self._turn:
            while events := [*await self._journal.outbox(BATCH), *self._again()]:
                for batch in _batches(events):
                    await self._send(batch)

    async def _send(self, events: Sequence[Event]) -> None:
        """Sends events side by side; what the broker has is taken out, whatever became of the others.

        Raises:
            BusUnavailableError, DeniedError: the first of these failures.
        """
        arrived: list[Event] = []
        failures: list[BusUnavailableError | DeniedError] = []

        async def send(event: Event) -> None:
            try:
                await self._publish(event)
            except (BusUnavailableError, DeniedError) as error:
                failures.append(error)
            else:
                arrived.append(event)

        async with asyncio.TaskGroup() as group:
            for event in events:
                group.create_task(send(event), name=f"event {event.execution_id} {event.sequence}")
        if arrived:
            await self._journal.sent(arrived)
            for event in arrived:
                self._sent(event)
        if failures:
            raise failures[0]

    async def _publish(self, event: Event) -> None:
        subject = subjects.event(self._agent, event.execution_id)
        try:
            await self._bus.js_publish(
                subject, event.encode(), stream=subjects.EVENTS_STREAM, timeout_s=PUBLISH_TIMEOUT_S
            )
        except PayloadTooLargeError as error:
            # It would never go through, and everything behind it would wait for ever.
            _report_too_large(event, error)


def _batches(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """The events in their order, so many at a time as may be under way together."""
    batch: list[Event] = []
    room = BATCH_BYTES
    for event in events:
        size = len(event.encode())
        if batch and size > room:
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(event)
        room -= size
    if batch:
        yield batch


def _report_too_large(event: Event, error: DroidfleetError) -> None:
    log.error("event_too_large", execution_id=event.execution_id, kind=event.kind, message=error.message)
