"""ASSERT: fails unless a condition holds by the deadline."""

from __future__ import annotations

from droidfleet_agent.engine.conditions import wait_until_holds
from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import AssertStep


async def assert_(run: StepRun, step: AssertStep) -> StepDone:
    """See `wait_until_holds`."""
    await wait_until_holds(run, step.condition, code=StepCode.CONDITION_NOT_MET)
    return StepDone(Detail.HELD)
