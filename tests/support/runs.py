"""Runs steps on a phone and keeps what the engine announced."""

from __future__ import annotations

import json
from collections.abc import Mapping

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.clock import Clock
from droidfleet_shared.protocol.result import StepResult, TaskResult
from droidfleet_shared.protocol.task import Task

AGENT = "phone-01"
JsonStep = Mapping[str, object]


class Recorder(RunObserver):
    """Keeps every announcement in order, as ``("dispatching", step, ordinal)`` and the like."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int]] = []
        self.finished: list[StepResult] = []

    async def step_started(self, step_id: str, path: str) -> None:
        self.heard.append(("started", step_id, 0))

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        self.heard.append(("dispatching", step_id, ordinal))

    async def step_finished(self, ended: Ended) -> None:
        result = ended.result
        self.heard.append(("finished", result.id, 0))
        self.finished.append(result)


def task_of(*steps: JsonStep, agent: str = AGENT, max_duration_ms: int | None = None) -> Task:
    """A task with these steps, which get the ids ``s1``, ``s2``, ... where they have none."""
    numbered = [{"id": f"s{place}", **step} for place, step in enumerate(steps, 1)]
    document = {"schemaVersion": 1, "taskId": "t", "assignedAgentName": agent, "steps": numbered}
    if max_duration_ms is not None:
        document["maxDurationMs"] = max_duration_ms
    return Task.model_validate_json(json.dumps(document))


async def run_steps(
    phone: Phone,
    clock: Clock,
    *steps: JsonStep,
    observer: RunObserver | None = None,
    control: RunControl | None = None,
    agent: str = AGENT,
    max_duration_ms: int | None = None,
) -> TaskResult:
    """Runs a task of these steps to its end."""
    return await Engine(phone, clock=clock).run(
        task_of(*steps, agent=agent, max_duration_ms=max_duration_ms),
        execution_id="e1",
        agent_name=AGENT,
        observer=observer or Recorder(),
        control=control or RunControl(),
    )


async def run_step(phone: Phone, clock: Clock, step: JsonStep, *, observer: RunObserver | None = None) -> StepResult:
    """Runs a task of one step and returns how that step went."""
    return (await run_steps(phone, clock, step, observer=observer)).steps[0]
