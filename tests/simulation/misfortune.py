"""What goes wrong in a world: the faults of its scenario, at times that the seed gives, until the troubles end."""

from __future__ import annotations

import asyncio
from math import inf
from random import Random
from typing import TYPE_CHECKING, assert_never

from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import (
    Event,
    ExecutionAccepted,
    ExecutionFinished,
    ExecutionRejected,
    ExecutionStarted,
    StepStarted,
)
from droidfleet_shared.bus.port import NoRespondersError
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult
from simulation.loop import LoopClock
from simulation.phones import BROKEN, READY
from simulation.scenario import Fault

if TYPE_CHECKING:
    from simulation.hosts import Host
    from simulation.world import World


class Misfortune:
    """The faults of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._scenario = world.scenario
        self._random: Random = world.scenario.random("misfortune")

    async def run(self) -> None:
        """Until the troubled time is over. Then everything is mended; what takes its time to come back does so."""
        loop = asyncio.get_running_loop()
        scenario, random = self._scenario, self._random
        while scenario.faults:
            await asyncio.sleep(random.expovariate(1 / scenario.fault_every_s))
            if loop.time() >= scenario.troubled_s:
                break
            self._befall(random.choice(scenario.faults))
        await asyncio.sleep(max(0.0, scenario.troubled_s - loop.time()))

    def _befall(self, fault: Fault) -> None:
        world, random = self._world, self._random
        left_s = self._scenario.troubled_s - asyncio.get_running_loop().time()
        for_s = min(left_s, random.choice((0.5, 3.0, 12.0, 40.0)) * random.random())
        host = random.choice(list(world.hosts.values()))
        match fault:
            case Fault.PHONE_UNPLUGGED:
                self._note(f"{host.name} unplugged for {for_s:.1f} s")
                host.presence.plug(False)
                asyncio.get_running_loop().call_later(for_s, host.presence.plug, True)
            case Fault.SCREEN_CHANGES:
                host.phone.show(BROKEN if host.phone.page == READY else READY)
                self._note(f"{host.name} shows {host.phone.page!r}")
            case Fault.AGENT_KILLED:
                host.kill(down_s=for_s)
            case Fault.AGENT_MOVED:
                host.kill(down_s=for_s, moves=True)
            case Fault.AGENT_GONE:
                host.kill(down_s=inf)
            case Fault.AGENT_STOPPED:
                host.stop()
            case Fault.AGENT_CUT:
                self._cut(host, for_s)
            case Fault.CONTROLLER_CUT:
                self._note(f"controller cut off for {for_s:.1f} s")
                if world.controller is not None:
                    world.controller.link.cut(for_s=for_s, silent_s=self._silent())
            case Fault.BROKER_CRASHES:
                lose, undo = random.choice((0, 0, 1, 5)), random.random() < 0.5
                self._note(f"broker crashes: {lose} messages lost, acknowledgements undone: {undo}")
                world.broker.crash(lose=lose, undo_acks=undo)
            case Fault.BROKER_WIPED:
                self._note("broker comes back with an empty disk")
                world.broker.wipe()
            case Fault.CONTROLLER_KILLED:
                world.kill_controller(down_s=for_s)
            case Fault.DISK_FULL:
                self._note(f"disk full for {for_s:.1f} s")
                world.disk.failing = True
                asyncio.get_running_loop().call_later(for_s, world.disk_mended)
            case Fault.LIES:
                for _ in range(random.randint(1, 3)):
                    self._lie()
            case _:
                assert_never(fault)

    def _note(self, what: str) -> None:
        self._world.history.note("fault", what)

    def _silent(self) -> float:
        return self._random.choice((0.0, 0.0, 5.0, 20.0)) * self._random.random()

    def _cut(self, host: Host, for_s: float) -> None:
        if host.link is not None:
            self._note(f"{host.name} cut off for {for_s:.1f} s")
            host.link.cut(for_s=for_s, silent_s=self._silent())

    # Lies.

    def _lie(self) -> None:
        random, world = self._random, self._world
        live, known = world.ledger.live(), list(world.ledger.entries.values())
        if not known:
            return
        known = live if live and random.random() < 0.7 else known
        entry = random.choice(known)
        agent = random.choice((entry.device, entry.device, "stranger"))
        # Of the attempt itself an agent is believed: a lie is one that must be seen through.
        attempt = entry.attempt + random.choice((1, 2, 17)) if agent == entry.device else entry.attempt
        execution_id = random.choice((entry.execution_id, entry.execution_id, "x-nobody"))
        event = self._event(agent, execution_id, attempt)
        data = event.encode() if random.random() < 0.8 else random.choice((b"", b"{", b'{"v": 9}', b"[]", b'{"v": 1}'))
        self._note(f"a lie: {event.kind} of {execution_id} attempt {attempt} by {agent}, {len(data)} bytes")
        try:
            world.broker.store(subjects.EVENTS_STREAM, subjects.event(agent, execution_id), data, None)
        except NoRespondersError:
            self._note("nobody listens to it")

    def _event(self, agent: str, execution_id: str, attempt: int) -> Event:
        random = self._random
        at = LoopClock(asyncio.get_running_loop()).now()
        sequence = random.choice((1, 2, 3, 1_000, 2**31))
        match random.randrange(5):
            case 0:
                return ExecutionAccepted(
                    agent=agent, execution_id=execution_id, attempt=attempt, sequence=sequence, at=at
                )
            case 1:
                return ExecutionStarted(
                    agent=agent, execution_id=execution_id, attempt=attempt, sequence=sequence, at=at
                )
            case 2:
                return ExecutionRejected(
                    agent=agent, execution_id=execution_id, attempt=attempt, sequence=sequence, at=at,
                    code="INVALID_TASK", message="a lie",
                )  # fmt: skip
            case 3:
                return StepStarted(
                    agent=agent, execution_id=execution_id, attempt=attempt, sequence=sequence, at=at,
                    step_id="s0", path="/steps/0",
                )  # fmt: skip
            case _:
                result = TaskResult(
                    task_id="lie", revision=1, agent_name=agent, execution_id=execution_id, successful=True,
                    code=StepCode.OK, message="", failed_step_id=None, started_at=at, duration_ms=1,
                )  # fmt: skip
                return ExecutionFinished(
                    agent=agent, execution_id=execution_id, attempt=attempt, sequence=sequence, at=at, result=result
                )
