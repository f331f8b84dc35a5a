"""LONG_CLICK: presses the target for a while."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import Sight, wait_to_touch
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import LongClickStep


async def long_click(run: StepRun, step: LongClickStep) -> StepDone:
    """A press that certainly did not happen is tried afresh, on a new look, until the deadline."""
    while True:
        found = await wait_to_touch(run, step.selector)
        assert isinstance(found, Sight)  # no `unless` was given
        if await run.tap(found.point, hold_ms=step.duration_ms):
            return StepDone(Detail.DISPATCHED_UNVERIFIED)
