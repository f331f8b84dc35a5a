"""The agent's signs of life, and its claim to its name.

The first heartbeat of a process is a question (``hello``): nothing may begin before the controller granted the name.
Later ones are answered only when somebody else holds it. A process that stood still for long (stopped, swapped out, its
machine asleep) asks again: its name may have gone to another host meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from random import Random

import structlog

from droidfleet_agent.driver.port import PhoneInfo
from droidfleet_agent.vision import vision_installed
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import (
    MISSED_HEARTBEATS,
    BadMessageError,
    ExecutionRef,
    Heartbeat,
    HeartbeatReply,
    PhoneState,
)
from droidfleet_shared.bus.port import Bus, BusMessage, BusUnavailableError, NoRespondersError, Unsubscribe
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import ConflictError, DeniedError

log = structlog.get_logger(__name__)

HELLO_TIMEOUT_S = 5.0
HELLO_BACKOFF_BASE_S = 0.25
HELLO_BACKOFF_CAP_S = 10.0

HELD_UP_HEARTBEATS = MISSED_HEARTBEATS - 1
"""Standing still for this long is less than what costs an agent its name, with room for a late heartbeat."""

CAPABILITIES = ("protocol.v1", *(("vision",) if vision_installed() else ()))
"""What this agent can do: run protocol v1, and see pictures where the extra `vision` is installed."""

_VERSION = version("droidfleet")
_HOST = socket.gethostname()
_PID = os.getpid()


class NameTakenError(ConflictError):
    """Another agent holds the name."""


def name_taken(agent: str, holder: str) -> NameTakenError:
    """The refusal, for people."""
    return NameTakenError(
        "NAME_TAKEN",
        f"the name {agent!r} is held by another agent: {holder}.",
        hint="Stop that agent, or give this one another --name.",
        details={"agent": agent, "holder": holder},
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an agent is. ``instance`` (a subject token) is drawn anew for each start; ``host_id`` stays with the host."""

    name: str
    serial: str
    instance: str
    host_id: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """What changes about an agent. ``info`` is the newest that is known of the phone, if anything."""

    phone: PhoneState
    running: ExecutionRef | None
    epoch: str
    generation: int
    info: PhoneInfo | None


class Heartbeats:
    """Sends heartbeats every ``interval_s`` and at every change of `Vitals`.

    ``granted`` is called when the name is granted, ``doubted`` before it is asked for again, ``refused`` when somebody
    else holds it.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        bus: Bus,
        vitals: Callable[[], Vitals],
        granted: Callable[[], None],
        doubted: Callable[[], None],
        refused: Callable[[NameTakenError], None],
        clock: Clock,
        random: Random,
        interval_s: float,
    ) -> None:
        self._identity = identity
        self._bus = bus
        self._vitals = vitals
        self._granted = granted
        self._doubted = doubted
        self._refused = refused
        self._clock = clock
        self._random = random
        self._interval_s = interval_s
        self._subject = subjects.heartbeat(identity.name)
        # Of this instance alone: another agent that claims the same name must not hear its answers, nor the reverse.
        self._inbox = f"{subjects.inbox_prefix(identity.name)}.heartbeat.{identity.instance}"
        self._wake = asyncio.Event()
        self._due = False
        self._ask_again = False
        self._moved_at = clock.uptime().s
        self._round_trip_s: float | None = None

    def subscribe(self) -> Unsubscribe:
        """Begins to listen for refusals."""
        return self._bus.subscribe(self._inbox, self._answered)

    @property
    def held_up(self) -> bool:
        """Whether the process stood still for so long that the name is in doubt, also when nobody noticed so far."""
        # Not the monotonic clock, which does not count the sleep of a machine; nor the wall clock, which may be set.
        still_s = self._clock.uptime().s - self._moved_at
        return self._ask_again or still_s >= HELD_UP_HEARTBEATS * self._interval_s

    def wake(self) -> None:
        """Something about the agent may have changed, or the connection is back."""
        self._wake.set()

    def connected(self) -> None:
        """To be called after every connect."""
        self._due = True
        self._wake.set()

    async def leave(self) -> None:
        """Says that the agent ends in order, so that nobody waits for it. To be called when `run` has ended."""
        await self._send(self._vitals(), leaving=True)

    async def run(self) -> None:
        """Claims the name, then sends heartbeats, until cancelled. A refusal ends it."""
        self._moved_at = self._clock.uptime().s
        async with asyncio.TaskGroup() as group:
            tick = group.create_task(self._tick(), name=f"heartbeat tick {self._identity.name}")
            if await self._claim():
                await self._beat_on()
            tick.cancel()

    async def _beat_on(self) -> None:
        """Until the name is refused."""
        last: Vitals | None = None
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._ask_again:
                log.warning("name_doubted", agent=self._identity.name, reason="this process stood still")
                self._doubted()
                if not await self._claim():
                    return
            vitals = self._vitals()
            if vitals == last and not self._due:
                continue
            self._due = False
            if await self._send(vitals):
                last = vitals

    async def _claim(self) -> bool:
        """Asks for the name until there is an answer; whether it was granted."""
        failures = 0
        while True:
            await self._until_connected()
            asked = self._clock.monotonic()
            try:
                answer = await self._bus.request(self._subject, self._beat(hello=True), timeout_s=HELLO_TIMEOUT_S)
                reply = HeartbeatReply.decode(answer.data)
            except (BusUnavailableError, DeniedError, BadMessageError) as error:
                if failures == 0 or not isinstance(error, NoRespondersError):
                    log.info("name_unanswered", agent=self._identity.name, code=error.code, message=error.message)
                failures += 1
                bound_s = min(HELLO_BACKOFF_CAP_S, HELLO_BACKOFF_BASE_S * 2 ** min(failures, 10))
                await self._clock.sleep(self._random.uniform(0, bound_s))
                continue
            if reply.took_s is not None:
                self._round_trip_s = max(0.0, self._clock.monotonic() - asked - reply.took_s)
            if reply.granted:
                self._ask_again = False
                log.info("name_granted", agent=self._identity.name, instance=self._identity.instance)
                self._granted()
                self._wake.set()
            else:
                self._refused(name_taken(self._identity.name, reply.holder))
            return reply.granted

    async def _until_connected(self) -> None:
        while not self._bus.connected:
            self._wake.clear()
            await self._wake.wait()

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(self._interval_s)
            self._ask_again = self.held_up
            self._moved_at = self._clock.uptime().s
            self._due = True
            self._wake.set()

    async def _send(self, vitals: Vitals, *, leaving: bool = False) -> bool:
        try:
            await self._bus.publish(self._subject, self._beat(vitals=vitals, leaving=leaving), reply=self._inbox)
        except (BusUnavailableError, DeniedError) as error:
            log.debug("heartbeat_unsent", agent=self._identity.name, code=error.code)
            return False
        return True

    async def _answered(self, message: BusMessage) -> None:
        if not message.data:
            return  # the broker's own word that nobody listens: the controller is away
        try:
            reply = HeartbeatReply.decode(message.data)
        except BadMessageError as error:
            log.warning("heartbeat_answer_unreadable", agent=self._identity.name, code=error.code)
            return
        if not reply.granted:
            self._refused(name_taken(self._identity.name, reply.holder))

    def _beat(self, *, hello: bool = False, vitals: Vitals | None = None, leaving: bool = False) -> bytes:
        current = vitals or self._vitals()
        info = current.info
        return Heartbeat(
            agent=self._identity.name,
            instance=self._identity.instance,
            host_id=self._identity.host_id,
            host=_HOST,
            pid=_PID,
            hello=hello,
            serial=self._identity.serial,
            phone=current.phone,
            version=_VERSION,
            capabilities=CAPABILITIES,
            model=info.model if info else "",
            android=info.android if info else "",
            battery_percent=info.battery_percent if info else None,
            foreground_package=info.foreground_package if info else "",
            running=current.running,
            epoch=current.epoch,
            generation=current.generation,
            leaving=leaving,
            sent_at=self._clock.now(),
            round_trip_s=self._round_trip_s,
        ).encode()
