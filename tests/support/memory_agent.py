"""A real agent with a memory phone, on a broker of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.driver.memory import MemoryPhone
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.presence import AlwaysThere
from droidfleet_shared.bus import subjects
from droidfleet_shared.clock import SystemClock
from support.bus import running_link
from support.shop import shop

GRANTED_S = 20.0

HEARTBEAT_S = 5.0
"""Long: an agent that stood still for two of these asks for its name again and answers nobody meanwhile, and on a busy
machine a second of standing still is nothing special."""


@asynccontextmanager
async def memory_agent(url: str, name: str) -> AsyncIterator[MemoryPhone]:
    """An agent with the shop in front, whose name a controller has granted; its phone."""
    clock = SystemClock()
    phone = shop(clock)
    async with running_link(url, inbox_prefix=subjects.inbox_prefix(name)) as link:
        agent = Agent(
            Identity(name=name, serial="memory", instance="i1", host_id="h1"),
            bus=link,
            phone=phone,
            presence=AlwaysThere(),
            journal=MemoryJournal(),
            clock=clock,
            random=Random(1),
            settings=AgentSettings(heartbeat_s=HEARTBEAT_S, stop_s=5.0),
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.run(), name="agent")
            try:
                async with asyncio.timeout(GRANTED_S):
                    await agent.granted.wait()
                yield phone
            finally:
                agent.stop()
