"""A virtual phone with a screen for each thing that actions do, the real adb server between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.result import StepResult, TaskResult
from droidfleet_shared.protocol.task import Task
from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.runs import AGENT, JsonStep, Recorder, run_steps

WORKBENCH = Path(__file__).parent / "workbench.yaml"


class Bench:
    """One phone, and what is done with it."""

    def __init__(self, running: RunningPhone, phone: AdbPhone) -> None:
        self.running = running
        self.phone = phone
        self.recorder = Recorder()

    async def run(self, *steps: JsonStep) -> TaskResult:
        """Runs a task of these steps."""
        return await run_steps(self.phone, SystemClock(), *steps, observer=self.recorder)

    async def run_task(self, task: Task) -> TaskResult:
        """Runs a task."""
        return await Engine(self.phone, clock=SystemClock()).run(
            task, execution_id="e1", agent_name=AGENT, observer=self.recorder, control=RunControl()
        )

    async def step(self, **fields: object) -> StepResult:
        """Runs a task of one step; how the step went."""
        return (await self.run(fields)).steps[0]

    def seen(self, *kinds: str) -> list[str]:
        """Kinds of what the phone saw, in order; of these kinds only, where some are given."""
        effects = self.running.effects
        return [effect.kind for effect in (effects.of(*kinds) if kinds else effects.all())]

    def details(self, kind: str) -> list[dict[str, object]]:
        """What the effects of one kind say."""
        return [dict(effect.details) for effect in self.running.effects.of(kind)]


@pytest.fixture
async def bench(phones: ConnectedPhones, adb_server: AdbServer) -> AsyncIterator[Bench]:
    """The workbench in front."""
    running = phones(PhoneOptions(scenario=load_scenario(WORKBENCH)))
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb_server.port, clock=clock, deadline=clock.deadline(20))
    yield Bench(running, phone)
    await phone.close()
