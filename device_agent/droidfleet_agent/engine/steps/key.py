"""KEY: presses a key once."""

from __future__ import annotations

from droidfleet_agent.driver.port import Key
from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.steps.back import press_once
from droidfleet_shared.protocol.steps import KeyStep


async def key(run: StepRun, step: KeyStep) -> StepDone:
    """The names of the protocol are those of the port."""
    return await press_once(run, Key[step.key.name])
