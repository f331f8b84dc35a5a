"""CLICK: taps the target where nothing else takes the touch."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import Skip, wait_to_touch
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import ClickStep


async def click(run: StepRun, step: ClickStep) -> StepDone:
    """Taps ``times`` times at one place.

    Between taps that were done the screen is not looked at again: a double tap must not be slower than its interval.
    A tap that certainly did not happen is tried afresh, on a new look, until the deadline.
    """
    taps = 0
    unless = step.unless_visible
    while True:
        found = await wait_to_touch(run, step.selector, unless=unless)
        if isinstance(found, Skip):
            return StepDone(Detail.ALREADY_VISIBLE, "Not tapped: `unlessVisible` was on the screen.")
        while await run.tap(found.point):
            taps += 1
            if taps == step.times:
                return StepDone(Detail.DISPATCHED_UNVERIFIED)
            unless = None  # decided before the first tap; later its sight may be that tap's own effect
            await run.pause(step.interval_ms / 1000)
