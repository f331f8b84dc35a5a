"""One agent: the worker and its links, wired. Light enough for many in one process.

Owns the order of starting and ending. The caller runs the bus connection and the phone's presence beside it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random

import structlog

from droidfleet_agent.driver.port import Phone, PhoneInfo, PhoneUnavailableError
from droidfleet_agent.journal.port import Journal
from droidfleet_agent.link.desired import DesiredSync
from droidfleet_agent.link.heartbeat import Heartbeats, Identity, NameTakenError, Vitals
from droidfleet_agent.link.outbox import Outbox
from droidfleet_agent.presence import Presence
from droidfleet_agent.session.session import Session
from droidfleet_agent.worker import Worker
from droidfleet_shared.bus.messages import PhoneState
from droidfleet_shared.bus.port import Bus, BusUnavailableError
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import DeniedError

log = structlog.get_logger(__name__)

INFO_TIMEOUT_S = 20.0
"""For facts about the phone: the first time its automation server has to be started."""

STOPPING = "the agent is stopping."


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Seconds. ``stop_s``: what a graceful end may take, for what runs to come to where it can be left, and to report
    what is known. A run that does not get there in time is broken off, as by a crash."""

    heartbeat_s: float = 10.0
    read_document_s: float = 60.0
    phone_info_s: float = 60.0
    stop_s: float = 15.0


class Agent:
    """One agent. Give it a bus of its own (the name's inbox and permissions), or for many light agents a shared one."""

    def __init__(
        self,
        identity: Identity,
        *,
        bus: Bus,
        phone: Phone,
        presence: Presence,
        journal: Journal,
        clock: Clock,
        random: Random,
        settings: AgentSettings = AgentSettings(),
    ) -> None:
        self._identity = identity
        self._bus = bus
        self._phone = phone
        self._presence = presence
        self._journal = journal
        self._clock = clock
        self._settings = settings
        self._info: PhoneInfo | None = None
        self._info_due = asyncio.Event()
        self._phone_state = presence.state(identity.serial)
        self._refusal: NameTakenError | None = None
        self._ending = asyncio.Event()
        self.granted = asyncio.Event()
        """Set while the controller has granted the name and nothing makes that doubtful."""
        self._worker = Worker(
            identity.name,
            host_id=identity.host_id,
            phone=phone,
            journal=journal,
            clock=clock,
            changed=self._changed,
            held_up=lambda: self._heartbeats.held_up,
        )
        self._session = Session(
            identity.name,
            bus=bus,
            phone=phone,
            clock=clock,
            ready=self.granted.is_set,
            running=lambda: self._worker.running,
            changed=self._allow_starts,
        )
        self._outbox = Outbox(
            identity.name,
            bus=bus,
            journal=journal,
            again=self._worker.again,
            sent=self._worker.sent,
            clock=clock,
            random=random,
        )
        self._desired = DesiredSync(
            identity.name,
            bus=bus,
            want=self._worker.want,
            clock=clock,
            random=random,
            period_s=settings.read_document_s,
        )
        self._heartbeats = Heartbeats(
            identity,
            bus=bus,
            vitals=self._vitals,
            granted=self._on_granted,
            doubted=self._on_doubted,
            refused=self._on_refused,
            clock=clock,
            random=random,
            interval_s=settings.heartbeat_s,
        )

    @property
    def identity(self) -> Identity:
        """Who this is."""
        return self._identity

    def stop(self) -> None:
        """Asks `run` to end in order."""
        self._ending.set()

    async def run(self) -> None:
        """Runs until `stop` or until the name turns out to be somebody else's.

        The end is bounded. What runs is left where the next process can go on with it, or, where the name is somebody
        else's, stopped and reported; accepted executions stay in the journal.

        Raises:
            NameTakenError: another agent holds the name.
            ExceptionGroup: a defect, or a journal that cannot be written.
        """
        self._bus.on_connected(self._on_connected)
        forget_presence = self._presence.on_change(self._on_presence)
        ends = (self._desired.subscribe(), self._heartbeats.subscribe(), self._session.subscribe())
        if self._bus.connected:
            await self._on_connected()
        self._on_presence()
        try:
            async with asyncio.TaskGroup() as group:
                parts = [
                    group.create_task(part, name=f"{name} {self._identity.name}")
                    for name, part in (
                        ("worker", self._worker.run()),
                        ("heartbeats", self._heartbeats.run()),
                        ("outbox", self._outbox.run()),
                        ("desired", self._desired.run()),
                        ("session", self._session.run()),
                        ("phone info", self._follow_phone()),
                    )
                ]
                await self._ending.wait()
                await self._wind_down()
                for part in parts:
                    part.cancel()
            if self.granted.is_set() and self._refusal is None:
                await self._heartbeats.leave()
        finally:
            forget_presence()
            for end in ends:
                await end()
            await self._phone.close()
            await self._journal.close()
        if self._refusal is not None:
            raise self._refusal

    async def _wind_down(self) -> None:
        try:
            async with asyncio.timeout(self._settings.stop_s):
                await self._session.stop(STOPPING)
                await (self._worker.leave(STOPPING) if self._refusal is None else self._worker.stop(STOPPING))
                await self._outbox.flush()
        except TimeoutError:
            log.warning("agent_end_cut", agent=self._identity.name, after_s=self._settings.stop_s)
        except (BusUnavailableError, DeniedError) as error:
            log.warning("events_left", agent=self._identity.name, code=error.code, message=error.message)

    # What happens around the agent.

    async def _on_connected(self) -> None:
        self._desired.connected()
        self._heartbeats.connected()
        self._outbox.wake()

    def _changed(self) -> None:
        self._outbox.wake()
        self._heartbeats.wake()

    def _on_presence(self) -> None:
        state = self._presence.state(self._identity.serial)
        if state is not self._phone_state:
            log.info("phone_state", agent=self._identity.name, serial=self._identity.serial, state=state)
        came = state is PhoneState.ONLINE and (self._info is None or state is not self._phone_state)
        self._phone_state = state
        if came:
            self._info_due.set()
        self._allow_starts()
        self._heartbeats.wake()

    def _on_granted(self) -> None:
        self.granted.set()
        self._allow_starts()

    def _on_doubted(self) -> None:
        self.granted.clear()
        self._allow_starts()

    def _on_refused(self, refusal: NameTakenError) -> None:
        if self._refusal is None:
            log.error("name_taken", agent=self._identity.name, holder=refusal.details["holder"])
            self._refusal = refusal
        self._worker.allow_starts(False)
        self._ending.set()

    def _allow_starts(self) -> None:
        ready = self.granted.is_set() and self._refusal is None and self._phone_state is PhoneState.ONLINE
        self._worker.allow_starts(ready and not self._session.held)

    def _vitals(self) -> Vitals:
        worker = self._worker
        return Vitals(self._phone_state, worker.running, worker.epoch, worker.generation, self._info)

    # Facts about the phone.

    async def _follow_phone(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._tick_info(), name=f"phone info tick {self._identity.name}")
            while True:
                await self._info_due.wait()
                self._info_due.clear()
                # A running task has the phone to itself.
                if self._phone_state is PhoneState.ONLINE and self._worker.running is None:
                    await self._read_info()

    async def _tick_info(self) -> None:
        while True:
            await self._clock.sleep(self._settings.phone_info_s)
            self._info_due.set()

    async def _read_info(self) -> None:
        try:
            self._info = await self._phone.info(deadline=self._clock.deadline(INFO_TIMEOUT_S))
        except PhoneUnavailableError as error:
            log.warning("phone_info_unread", agent=self._identity.name, code=error.code, message=error.message)
        else:
            self._heartbeats.wake()
