"""Bus links for tests: connected to a server, run in a task group, ended at the end of the block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from droidfleet_shared.bus.credentials import BusCredentials
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.port import ConnectedCallback
from droidfleet_shared.clock import SystemClock

CONNECT_S = 30.0


@asynccontextmanager
async def running_link(
    url: str,
    *,
    user: str = "",
    inbox_prefix: str | None = None,
    on_connected: ConnectedCallback | None = None,
) -> AsyncIterator[BusLink]:
    """A link that runs in the background; connected when the block begins. The password of a user is its name."""
    clock = SystemClock()
    link = BusLink(
        url,
        name=user or "test",
        clock=clock,
        random=Random(1),
        inbox_prefix=inbox_prefix,
        credentials=lambda: BusCredentials(user=user, password=user) if user else None,
    )
    if on_connected is not None:
        link.on_connected(on_connected)
    async with running(link):
        await link.wait_connected(clock.deadline(CONNECT_S))
        yield link


@asynccontextmanager
async def running(link: BusLink) -> AsyncIterator[BusLink]:
    """Runs the link while the block lasts."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        task = group.create_task(link.run(), name="link")
        try:
            yield link
        except Exception as error:
            # Raised after the group's end, so that a test sees its own error and no group of one.
            failure = error
        finally:
            task.cancel()
    if failure is not None:
        raise failure
