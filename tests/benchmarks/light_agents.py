"""Many real agents with memory phones in one process: ``python -m benchmarks.light_agents URL FIRST COUNT``.

Speaks with `light_fleet` over its standard streams, one line each: says ``ready``; for every line that holds a number
it waits until so many more executions were accepted, carried out and receipted, and answers with a JSON object of the
moments of acceptance by execution. Ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence
from random import Random

from droidfleet_agent.agent import Agent
from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.journal.attempt import Attempt
from droidfleet_agent.journal.memory import MemoryJournal
from droidfleet_agent.link.heartbeat import Identity
from droidfleet_agent.presence import AlwaysThere
from droidfleet_agent.reporting import Make
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import Event, ExecutionAccepted
from droidfleet_shared.bus.port import BusMessage
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.logging import configure_logging
from support.waiting import until

SETTLE_S = 300.0

_SCREEN = (
    '<hierarchy rotation="0"><node index="0" text="Hello" resource-id="a:id/hello" class="android.widget.TextView"'
    ' package="com.example.app" content-desc="" checkable="false" checked="false" clickable="true" enabled="true"'
    ' focusable="false" focused="false" scrollable="false" long-clickable="false" password="false" selected="false"'
    ' visible-to-user="true" bounds="[0,0][1080,2400]" /></hierarchy>'
)


def agent_name(number: int) -> str:
    """The names of the fleet."""
    return f"light-{number:04}"


def ping_subject(name: str) -> str:
    """Where an agent's process answers bare requests, over the agent's own connection."""
    return subjects.rpc(name, "ping")


class TimedJournal(MemoryJournal):
    """Notes when an execution was taken on: written down here, from then on the agent answers for it."""

    def __init__(self, accepted_at: dict[str, float]) -> None:
        super().__init__()
        self._accepted_at = accepted_at

    async def take_on(self, attempt: Attempt, make: Make) -> Event:
        event = await super().take_on(attempt, make)
        # A refused one would be fast as well, and is no acceptance.
        assert isinstance(event, ExecutionAccepted), event
        self._accepted_at[attempt.ref.execution_id] = time.perf_counter()
        return event

    @property
    def held(self) -> int:
        """Attempts that the controller has not receipted."""
        return len(self._book.attempts())


async def main(url: str, first: int, count: int) -> None:
    """Runs the agents with the numbers from ``first`` on until standard input ends."""
    accepted_at: dict[str, float] = {}
    journals: list[TimedJournal] = []
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with asyncio.TaskGroup() as group:
        tasks: list[asyncio.Task[None]] = []
        agents: list[Agent] = []
        for number in range(first, first + count):
            journals.append(TimedJournal(accepted_at))
            link = BusLink(
                url,
                name=agent_name(number),
                clock=SystemClock(),
                random=Random(number),
                inbox_prefix=subjects.inbox_prefix(agent_name(number)),
            )
            agents.append(_agent(agent_name(number), link, journals[-1]))
            tasks += [group.create_task(link.run()), group.create_task(agents[-1].run())]
        for agent in agents:
            await agent.granted.wait()
        print("ready", flush=True)
        done = 0
        while line := await lines.readline():
            done += int(line)
            await _settled(accepted_at, journals, done)
            print(json.dumps(accepted_at), flush=True)
        for task in tasks:
            task.cancel()


async def _settled(accepted_at: dict[str, float], journals: Sequence[TimedJournal], wanted: int) -> None:
    await until(lambda: len(accepted_at) >= wanted, within_s=SETTLE_S, what="all accepted")
    await until(lambda: not any(journal.held for journal in journals), within_s=SETTLE_S, what="all receipted")


def _agent(name: str, link: BusLink, journal: MemoryJournal) -> Agent:
    clock = SystemClock()

    async def answer(message: BusMessage) -> None:
        await link.publish(message.reply, b"pong")

    link.subscribe(ping_subject(name), answer)
    return Agent(
        Identity(name=name, serial=name, instance=f"i-{name}", host_id="bench"),
        bus=link,
        phone=MemoryPhone({"hello": Page(_SCREEN)}, start="hello", clock=clock, serial=name),
        presence=AlwaysThere(),
        journal=journal,
        clock=clock,
        random=Random(name),
    )


if __name__ == "__main__":
    configure_logging("error")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
