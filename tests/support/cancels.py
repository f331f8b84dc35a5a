"""Cancels a run in the middle, at a time of the run's own clock."""

from __future__ import annotations

import asyncio

from droidfleet_agent.driver.port import Phone
from droidfleet_agent.engine.control import RunControl
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.result import TaskResult
from support.runs import JsonStep, run_steps


async def cancelled_after(seconds: float, phone: Phone, clock: VirtualClock, *steps: JsonStep) -> TaskResult:
    """Runs the steps and asks them to stop after so many seconds."""
    control = RunControl()

    async def cancel() -> None:
        await clock.sleep(seconds)
        control.cancel("enough")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run_steps(phone, clock, *steps, control=control))
        group.create_task(cancel())
    return running.result()
