"""Running agents of real phones in this process: a name's lock, a bus connection, and the agent, from start to end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from random import Random

from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.driver.phone import AdbPhone
from droidfleet_agent.link.heartbeat import Identity, NameTakenError
from droidfleet_agent.options import HostOptions
from droidfleet_agent.presence import Presence
from droidfleet_agent.state import StateFolder
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.credentials import load_credentials
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.clock import Clock
from droidfleet_shared.errors import first_domain_error


async def run_agent(
    name: str,
    serial: str,
    *,
    options: HostOptions,
    adb: AdbServer,
    presence: Presence,
    clock: Clock,
    stop: asyncio.Event,
    online: Callable[[Identity], None],
) -> None:
    """Runs one agent until ``stop`` is set. ``online`` is called once, when the controller granted the name.

    Raises:
        NameTakenError: another agent holds the name, on this host or elsewhere.
        PhoneTakenError: another agent of this host holds the phone.
        StateError, JournalUnusableError, InvalidInputError: state folder, credentials or address cannot be used.
    """
    try:
        await _run_agent(
            name, serial, options=options, adb=adb, presence=presence, clock=clock, stop=stop, online=online
        )
    except BaseExceptionGroup as group:
        error = first_domain_error(group)
        if error is None:
            raise
        raise error from group


async def _run_agent(
    name: str,
    serial: str,
    *,
    options: HostOptions,
    adb: AdbServer,
    presence: Presence,
    clock: Clock,
    stop: asyncio.Event,
    online: Callable[[Identity], None],
) -> None:
    state = StateFolder(options.state)
    random = Random()  # noqa: S311  # spreads retries
    async with AsyncExitStack() as stack:
        stack.enter_context(state.name_lock(name))
        stack.enter_context(state.phone_lock(serial, adb=f"{adb.host}:{adb.port}"))
        bus = BusLink(
            options.nats,
            name=f"droidfleet-agent {name}",
            clock=clock,
            random=random,
            inbox_prefix=subjects.inbox_prefix(name),
            credentials=partial(load_credentials, options.credentials),
        )
        agent = Agent(
            Identity(name=name, serial=serial, instance=secrets.token_hex(8), host_id=state.host_id()),
            bus=bus,
            phone=AdbPhone(serial, adb_host=adb.host, adb_port=adb.port, clock=clock),
            presence=presence,
            journal=state.journal(name),
            clock=clock,
            random=random,
            settings=AgentSettings(heartbeat_s=options.heartbeat_s),
        )
        refusal: NameTakenError | None = None
        async with asyncio.TaskGroup() as group:
            around = [
                group.create_task(bus.run(), name=f"bus {name}"),
                group.create_task(_stop_when(stop, agent), name=f"stop {name}"),
                group.create_task(_tell_when_granted(agent, online), name=f"granted {name}"),
            ]
            try:
                await agent.run()
            except NameTakenError as error:
                refusal = error
            finally:
                for task in around:
                    task.cancel()
        if refusal is not None:
            raise refusal


async def _stop_when(stop: asyncio.Event, agent: Agent) -> None:
    await stop.wait()
    agent.stop()


async def _tell_when_granted(agent: Agent, online: Callable[[Identity], None]) -> None:
    await agent.granted.wait()
    online(agent.identity)
