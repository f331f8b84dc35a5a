"""A host with one phone: keeps an agent running as a supervisor does, and loses it when told to.

The agent is the product's, with its worker, engine and links. What it has written into its journal stays with the host
when it dies, and not with the phone when that goes to another host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.engine.trail import Entry
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.journal.port import Journal
from droidfleet_agent.link.heartbeat import Identity, NameTakenError
from droidfleet_agent.reporting import Make
from droidfleet_shared.bus.messages import Event, ExecutionRef
from droidfleet_shared.errors import first_domain_error
from simulation.broker import Broker
from simulation.history import History
from simulation.link import SimLink
from simulation.loop import LoopClock
from simulation.phones import SimPhone, SimPresence
from simulation.truth import Truth

RESTART_S = 3.0
"""The longest that a supervisor waits before it starts an agent again."""


class HostJournal(Journal):
    """One process' way to its host's journal: slow as a disk, telling what is written, and silent once it is dead."""

    def __init__(self, kept: Journal, phone: str, truth: Truth, random: Random, *, slow_s: float) -> None:
        self._kept = kept
        self._phone = phone
        self._truth = truth
        self._random = random
        self._slow_s = slow_s
        self._noted: list[tuple[ExecutionRef, Entry]] = []
        self.dead = False

    async def attempts(self) -> Sequence[Attempt]:
        await self._disk()
        return await self._kept.attempts()

    async def forgotten(self, ref: ExecutionRef) -> bool:
        return await self._kept.forgotten(ref)

    async def take_on(self, attempt: Attempt, make: Make) -> Event:
        await self._disk()
        return self._told(await self._kept.take_on(attempt, make))

    async def append(self, ref: ExecutionRef, make: Make, *, trail: Entry | None = None) -> Event:
        await self._disk()
        return self._told(await self._kept.append(ref, make, trail=trail))

    async def dispatching(self, ref: ExecutionRef, *, step_id: str, path: str, ordinal: int) -> None:
        await self._disk()
        await self._kept.dispatching(ref, step_id=step_id, path=path, ordinal=ordinal)
        self._truth.announced(ref)

    async def leave(self, ref: ExecutionRef) -> None:
        await self._disk()
        await self._kept.leave(ref)

    async def note(self, ref: ExecutionRef, entry: Entry) -> None:
        # Durable with the next other call: until then it dies with its process.
        self._noted.append((ref, entry))

    async def trail(self, ref: ExecutionRef) -> Sequence[Entry]:
        await self._disk()
        return await self._kept.trail(ref)

    async def outbox(self, limit: int) -> Sequence[Event]:
        return await self._kept.outbox(limit)

    async def sent(self, events: Sequence[Event]) -> None:
        await self._disk()
        await self._kept.sent(events)

    async def forget(self, refs: Sequence[ExecutionRef]) -> None:
        await self._disk()
        await self._kept.forget(refs)

    async def close(self) -> None:
        """The process lets go of it; the host keeps it."""

    async def _disk(self) -> None:
        if self._slow_s:
            await asyncio.sleep(self._random.random() * self._slow_s)
        if self.dead:
            raise asyncio.CancelledError  # nothing that is still under way gets to the disk
        noted, self._noted = self._noted, []
        for ref, entry in noted:
            await self._kept.note(ref, entry)

    def _told(self, event: Event) -> Event:
        self._truth.wrote(self._phone, event)
        return event


@dataclass(slots=True)
class _Process:
    """One agent process."""

    link: SimLink
    journal: HostJournal
    agent: Agent
    task: asyncio.Task[None]


class Host:
    """The host of one phone. ``down_until`` keeps it from starting an agent, for ever where it is infinite."""

    def __init__(
        self,
        name: str,
        *,
        broker: Broker,
        phone: SimPhone,
        truth: Truth,
        history: History,
        seed: str,
        latency_s: float,
        slow_disk_s: float,
        heartbeat_s: float,
    ) -> None:
        self.name = name
        self.phone = phone
        self.presence = SimPresence(phone)
        self.down_until = 0.0
        self._broker = broker
        self._truth = truth
        self._history = history
        self._seed = seed
        self._latency_s = latency_s
        self._slow_disk_s = slow_disk_s
        self._settings = AgentSettings(heartbeat_s=heartbeat_s)
        self._clock = LoopClock(asyncio.get_running_loop())
        self._journal = MemoryJournal()
        self._moves = 0
        self._starts = 0
        self._process: _Process | None = None

    @property
    def link(self) -> SimLink | None:
        """The connection of the agent that runs now."""
        return self._process.link if self._process is not None else None

    async def held(self) -> int:
        """What its journal still keeps for the controller: attempts without a receipt, and an event to be sent."""
        return len(await self._journal.attempts()) + len(await self._journal.outbox(1))

    @property
    def gone(self) -> bool:
        """Whether it never comes back."""
        return self.down_until == inf

    @property
    def working(self) -> bool:
        """Whether an agent runs that holds its name."""
        return self._process is not None and self._process.agent.granted.is_set()

    async def run(self) -> None:
        """Keeps an agent running until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            if self.gone:
                await asyncio.Event().wait()
            if loop.time() < self.down_until:
                await asyncio.sleep(self.down_until - loop.time())
                continue
            await self._live()
            await asyncio.sleep(Random(f"{self._seed}/{self.name}/{self._starts}/rest").uniform(0.2, RESTART_S))

    async def _live(self) -> None:
        self._starts += 1
        random = Random(f"{self._seed}/{self.name}/{self._starts}")
        journal = HostJournal(self._journal, self.name, self._truth, random, slow_s=self._slow_disk_s)
        link = SimLink(
            self._broker, f"{self.name}.{self._starts}", random=random, history=self._history, latency_s=self._latency_s
        )
        agent = Agent(
            Identity(self.name, self.name, f"i-{self.name}-{self._starts}", f"host-{self.name}-{self._moves}"),
            bus=link,
            phone=self.phone,
            presence=self.presence,
            journal=journal,
            clock=self._clock,
            random=random,
            settings=self._settings,
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._serve(agent, link), name=f"agent {self.name}")
            self._process = _Process(link, journal, agent, task)
            self._history.note(self.name, f"agent {self._starts} starts")
        self._process = None
        if not journal.dead:
            # One that ended in order has left what it ran.
            self._truth.agent_died(self.name)
        journal.dead = True
        link.die()

    async def _serve(self, agent: Agent, link: SimLink) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(link.run(), name=f"link {self.name}")
                try:
                    await agent.run()
                finally:
                    running.cancel()
        except BaseExceptionGroup as failures:
            error = first_domain_error(failures)
            if not isinstance(error, NameTakenError):
                raise
            self._history.note(self.name, "is refused its name")
        except asyncio.CancelledError:
            if self._process is None or not self._process.journal.dead:
                raise  # the world ends, and not this process alone

    def kill(self, *, down_s: float, moves: bool = False) -> None:
        """The agent dies at once. ``moves``: the phone goes to another host, which knows nothing of what began here."""
        self.down_until = max(self.down_until, asyncio.get_running_loop().time() + down_s)
        if moves:
            self._moves += 1
            self._journal = MemoryJournal()
        if self._process is None or self._process.journal.dead:
            return
        self._history.note(self.name, f"agent {self._starts} dies{' with its host' if moves else ''}")
        self._process.journal.dead = True
        self._process.link.die()
        self._truth.agent_died(self.name)
        self._process.task.cancel()

    def stop(self) -> None:
        """Ends the agent in order; the supervisor starts another."""
        if self._process is not None and not self._process.journal.dead:
            self._history.note(self.name, f"agent {self._starts} is asked to end")
            self._process.agent.stop()
