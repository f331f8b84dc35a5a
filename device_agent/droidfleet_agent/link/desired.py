"""The agent's desired-state document: pushed live, and read by direct get whenever a push may have been missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

import structlog

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import BadMessageError, DesiredState
from droidfleet_shared.bus.port import Bus, BusMessage, BusUnavailableError, Unsubscribe
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DeniedError

log = structlog.get_logger(__name__)

GET_TIMEOUT_S = 5.0

JITTER = 0.2
"""Part by which the period varies, so that a fleet does not ask all at once."""


class DesiredSync:
    """Keeps ``want`` informed of the newest document.

    A push is core NATS and may be lost; each names the sequence before it, so that a loss shows at the next one.
    Reading at every connect and every ``period_s`` finds the rest.
    """

    def __init__(
        self,
        agent: str,
        *,
        bus: Bus,
        want: Callable[[DesiredState], None],
        clock: Clock,
        random: Random,
        period_s: float,
    ) -> None:
        self._agent = agent
        self._bus = bus
        self._want = want
        self._clock = clock
        self._random = random
        self._period_s = period_s
        self._sequence: int | None = None
        self._pushes = 0
        self._due = asyncio.Event()

    def subscribe(self) -> Unsubscribe:
        """Begins to listen."""
        return self._bus.subscribe(subjects.live(self._agent), self._pushed)

    def connected(self) -> None:
        """To be called after every connect: whatever was pushed before is missed."""
        self._due.set()

    async def run(self) -> None:
        """Reads the document when it is due, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick(), name=f"desired tick {self._agent}")
            while True:
                await self._due.wait()
                self._due.clear()
                await self._read()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(self._period_s * self._random.uniform(1 - JITTER, 1 + JITTER))
            self._due.set()

    async def _read(self) -> None:
        if not self._bus.connected:
            return
        pushes = self._pushes
        try:
            stored = await self._bus.get_last(
                subjects.DESIRED_STREAM, subjects.desired(self._agent), timeout_s=GET_TIMEOUT_S
            )
        except (BusUnavailableError, DeniedError) as error:
            log.info("document_unread", agent=self._agent, code=error.code, message=error.message)
            return
        if pushes != self._pushes:
            # What was pushed meanwhile may be newer than this answer, which overtook it or was overtaken by it.
            self._due.set()
        elif stored is not None:
            self._take(stored.data, stored.sequence)

    async def _pushed(self, message: BusMessage) -> None:
        self._pushes += 1
        sequence = int(message.headers.get("Nats-Sequence", "0"))
        before = int(message.headers.get("Nats-Last-Sequence", "0"))
        if self._sequence is not None and self._sequence not in (before, sequence):
            log.info("document_gap", agent=self._agent, expected=self._sequence, found=before)
            self._due.set()
        self._take(message.data, sequence)

    def _take(self, data: bytes, sequence: int) -> None:
        if self._sequence is None or sequence > self._sequence:
            self._sequence = sequence
        try:
            document = DesiredState.decode(data)
        except BadMessageError as error:
            log.error("document_refused", agent=self._agent, code=error.code, message=error.message)
            return
        if document.agent != self._agent:
            log.error("document_refused", agent=self._agent, code="AGENT_MISMATCH", addressed_to=document.agent)
            return
        self._want(document)
