"""The supervisor's loop: what adb lists and what the processes tell goes into the plan, its steps to the processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from random import Random

import structlog

from droidfleet_agent.options import HostOptions
from droidfleet_agent.presence import AdbPresence
from droidfleet_agent.supervisor.child import Child
from droidfleet_agent.supervisor.plan import Drop, Start, Step, Stop, Watched, ended, plan, see, started, stopping
from droidfleet_agent.supervisor.wire import AgentEnded, AgentOnline, News
from droidfleet_shared.clock import Clock

log = structlog.get_logger(__name__)

TICK_S = 1.0
"""How late the end of a grace period or of a back-off is noticed."""


class Supervisor:
    """Keeps one agent for each attached phone. ``names``: serial to agent name; others are named by their serial.

    ``tell`` is given what happens, for whoever waits for it: the news and the id of the process.
    """

    def __init__(
        self,
        options: HostOptions,
        *,
        presence: AdbPresence,
        names: Mapping[str, str],
        phones_per_process: int,
        grace_s: float,
        tell: Callable[[News, str, int], None],
        clock: Clock,
        random: Random,
    ) -> None:
        self._options = options
        self._presence = presence
        self._names = names
        self._phones_per_process = phones_per_process
        self._grace_s = grace_s
        self._tell = tell
        self._clock = clock
        self._random = random
        self._watched: dict[str, Watched] = {}
        self._children: list[Child] = []
        self._wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Supervises until ``stop`` is set, then ends every process in order."""
        self._presence.on_change(self._wake.set)
        async with asyncio.TaskGroup() as group:
            around = [
                group.create_task(self._presence.run(), name="presence"),
                group.create_task(self._tick(), name="supervisor tick"),
                group.create_task(self._loop(group), name="supervisor"),
            ]
            await stop.wait()
            for task in around:
                task.cancel()
            # What is being spawned right now is over with the loop; what was spawned is in the list.
            await asyncio.gather(*around, return_exceptions=True)
            await asyncio.gather(*(child.end() for child in self._children))

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            self._wake.set()

    async def _loop(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            now = self._clock.monotonic()
            self._watched = see(self._watched, self._presence.devices, now=now)
            for step in plan(self._watched, now=now, grace_s=self._grace_s):
                await self._do(step, group)

    async def _do(self, step: Step, group: asyncio.TaskGroup) -> None:
        serial = step.serial
        match step:
            case Start(reason=reason):
                log.info("agent_start", agent=self._name(serial), serial=serial, reason=reason)
                child = await self._child(group)
                child.start_agent(self._name(serial), serial)
                self._watched[serial] = started(self._watched[serial], now=self._clock.monotonic())
            case Stop(reason=reason):
                log.info("agent_stop", agent=self._name(serial), serial=serial, reason=reason)
                self._watched[serial] = stopping(self._watched[serial])
                for child in self._children:
                    if serial in child.serials:
                        child.stop_agent(serial)
            case Drop():
                del self._watched[serial]

    async def _child(self, group: asyncio.TaskGroup) -> Child:
        """A process with room for one more phone."""
        for child in self._children:
            if child.takes_more and len(child.serials) < self._phones_per_process:
                return child
        child = await Child.spawn(self._options)
        self._children.append(child)
        group.create_task(self._follow(child), name=f"process {child.pid}")
        return child

    async def _follow(self, child: Child) -> None:
        await child.follow(lambda news: self._hear(news, child))
        self._children.remove(child)
        for serial in list(child.serials):
            message = f"its process {child.pid} is gone."
            self._hear(AgentEnded(serial=serial, code="PROCESS_ENDED", message=message), child)

    def _hear(self, news: News, child: Child) -> None:
        match news:
            case AgentOnline():
                log.info("agent_online", agent=news.name, serial=news.serial, pid=child.pid)
            case AgentEnded(serial=serial):
                log.log(
                    logging.WARNING if news.code else logging.INFO,
                    "agent_ended",
                    agent=self._name(serial),
                    serial=serial,
                    code=news.code,
                    message=news.message,
                )
                child.serials.discard(serial)
                if not child.serials:
                    child.close()
                if serial in self._watched:
                    self._watched[serial] = ended(
                        self._watched[serial], now=self._clock.monotonic(), jitter=self._random.random()
                    )
                self._wake.set()
        self._tell(news, self._name(news.serial), child.pid)

    def _name(self, serial: str) -> str:
        return self._names.get(serial, serial)
