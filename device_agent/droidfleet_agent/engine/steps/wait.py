"""WAIT: until exactly one node matches, or until a condition holds."""

from __future__ import annotations

from droidfleet_agent.engine.conditions import wait_until_holds
from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import wait_for_sight
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import WaitStep


async def wait(run: StepRun, step: WaitStep) -> StepDone:
    """A disabled node counts: it is there."""
    if step.condition is not None:
        await wait_until_holds(run, step.condition, code=StepCode.CONDITION_NOT_MET)
        return StepDone(Detail.HELD)
    assert step.selector is not None  # the validator has seen that one of the two is given
    await wait_for_sight(run, step.selector)
    return StepDone(Detail.SEEN)
