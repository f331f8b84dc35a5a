"""Many real agents in one process: ``python -m chaos.light_agents``.

Each has a journal on disk, a connection of its own and a phone whose effects stand in a file. The process is killed at
any moment and started again on the same folders.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
from pathlib import Path
from random import Random

from chaos.effects import effects_file
from chaos.light_phone import LightPhone
from chaos.plan import light_device
from droidfleet_agent.agent import Agent, AgentSettings
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.presence import AlwaysThere
from droidfleet_agent.state import StateFolder
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.logging import configure_logging


async def main(arguments: argparse.Namespace) -> None:
    """Runs the agents until the process is ended."""
    async with asyncio.TaskGroup() as group:
        state = StateFolder(arguments.state)
        for number in range(arguments.first, arguments.first + arguments.count):
            device = light_device(number)
            link = BusLink(
                arguments.nats,
                name=device,
                clock=SystemClock(),
                random=Random(os.urandom(8)),
                inbox_prefix=subjects.inbox_prefix(device),
            )
            agent = _agent(device, state, link, arguments)
            group.create_task(link.run(), name=f"link {device}")
            group.create_task(agent.run(), name=f"agent {device}")


def _agent(device: str, state: StateFolder, link: BusLink, arguments: argparse.Namespace) -> Agent:
    clock = SystemClock()
    random = Random(os.urandom(8))
    return Agent(
        Identity(name=device, serial=device, instance=secrets.token_hex(8), host_id=state.host_id()),
        bus=link,
        phone=LightPhone(effects_file(arguments.effects, device), device, clock=clock, random=random),
        presence=AlwaysThere(),
        journal=state.journal(device),
        clock=clock,
        random=random,
        settings=AgentSettings(heartbeat_s=arguments.heartbeat),
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos.light_agents")
    parser.add_argument("--nats", required=True)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--effects", type=Path, required=True)
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--heartbeat", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    configure_logging("info")
    asyncio.run(main(_arguments()))
