"""The controller's side of the bus for tests of agents: streams, names, documents, and what agents report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import (
    Assignment,
    Event,
    ExecutionFinished,
    ExecutionRef,
    Heartbeat,
    HeartbeatReply,
    decode_event,
)
from droidfleet_shared.bus.port import BusMessage, BusUnavailableError
from droidfleet_shared.bus.streams import DESIRED, EVENTS, EVENTS_READER
from support.assignments import AGENT, document
from support.bus import running_link
from support.nats import NatsServer
from support.waiting import until

TIMEOUT_S = 30.0


class StubController:
    """Grants every name (or refuses it, while ``holder`` is set), keeps beats and events, writes documents."""

    def __init__(self, link: BusLink) -> None:
        self._link = link
        self.holder = ""
        self.beats: list[Heartbeat] = []
        self.events: list[Event] = []
        self._generation = 0

    async def provision(self) -> None:
        await self._link.ensure_stream(DESIRED, timeout_s=TIMEOUT_S)
        await self._link.ensure_stream(EVENTS, timeout_s=TIMEOUT_S)
        await self._link.ensure_consumer(EVENTS_READER, timeout_s=TIMEOUT_S)

    async def hear(self, message: BusMessage) -> None:
        beat = Heartbeat.decode(message.data)
        self.beats.append(beat)
        if message.reply and (beat.hello or self.holder):
            answer = HeartbeatReply(granted=not self.holder, holder=self.holder)
            with suppress(BusUnavailableError):
                await self._link.publish(message.reply, answer.encode())

    async def read_events(self) -> None:
        while True:
            try:
                messages = await self._link.fetch(EVENTS_READER, batch=50, timeout_s=1.0)
                self.events += [decode_event(message.data) for message in messages]
                await self._link.ack(messages)
            except BusUnavailableError:
                await asyncio.sleep(0.05)

    async def assign(
        self, *assignments: Assignment, recorded: Sequence[ExecutionRef] = (), agent: str = AGENT
    ) -> bytes:
        """Writes the agent's next document; returns it."""
        self._generation += 1
        wanted = document(self._generation, *assignments, recorded=recorded, agent=agent).encode()
        await self._link.js_publish(
            subjects.desired(agent), wanted, stream=subjects.DESIRED_STREAM, timeout_s=TIMEOUT_S
        )
        return wanted

    async def repeat(self, wanted: bytes, *, agent: str = AGENT) -> None:
        """Writes a document that was written before."""
        await self._link.js_publish(
            subjects.desired(agent), wanted, stream=subjects.DESIRED_STREAM, timeout_s=TIMEOUT_S
        )

    def of(self, execution_id: str) -> list[Event]:
        """The events of an execution, as they came."""
        return [event for event in self.events if event.execution_id == execution_id]

    def kinds(self, execution_id: str) -> list[str]:
        """Their kinds."""
        return [event.kind for event in self.of(execution_id)]

    def code(self, execution_id: str) -> str:
        """The code of the result, or nothing."""
        for event in self.of(execution_id):
            if isinstance(event, ExecutionFinished):
                return event.result.code
            if event.kind == "ExecutionRejected":
                return event.code
        return ""

    async def ended(self, execution_id: str, *, within_s: float = 20.0) -> str:
        """Waits for the result; returns its code."""
        await until(lambda: self.code(execution_id), within_s=within_s, what=f"a result of {execution_id}")
        return self.code(execution_id)

    async def heard(self, agent: str, *, within_s: float = 20.0) -> Heartbeat:
        """Waits until the agent's phone is online and its name granted; returns its latest heartbeat."""

        def latest() -> Heartbeat | None:
            return next((beat for beat in reversed(self.beats) if beat.agent == agent and not beat.hello), None)

        await until(latest, within_s=within_s, what=f"a heartbeat of {agent}")
        beat = latest()
        assert beat is not None
        return beat


@asynccontextmanager
async def stub_controller(server: NatsServer) -> AsyncIterator[StubController]:
    """A controller on ``server`` while the block lasts; where the server has users, it is ``controller``."""
    async with running_link(server.url, user="controller" if server.permissions else "") as link:
        controller = StubController(link)
        link.on_connected(controller.provision)
        link.subscribe(subjects.HEARTBEATS_ALL, controller.hear)
        await controller.provision()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(controller.read_events(), name="events")
            try:
                yield controller
            finally:
                reading.cancel()
