"""WAIT: until exactly one node matches."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import wait_for_sight
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import WaitStep


async def wait(run: StepRun, step: WaitStep) -> StepDone:
    """A disabled node counts: it is there."""
    await wait_for_sight(run, step.selector)
    return StepDone(Detail.SEEN)
