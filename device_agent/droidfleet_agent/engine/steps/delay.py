"""DELAY: does nothing for a random time."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.wait import wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import DelayStep


async def delay(run: StepRun, step: DelayStep) -> StepDone:
    """Bound by the task's deadline alone; drawn from the run's seed."""
    if step.package_name is not None:
        await wait_until(run, lambda _matcher: True)
    longest = step.min_ms if step.max_ms is None else step.max_ms
    chosen_ms = run.random.randint(step.min_ms, longest)
    if not await run.delay(chosen_ms / 1000):
        raise StepFailed(
            StepCode.TASK_TIMEOUT, f"The task's bound came within this delay of {chosen_ms} ms.", out_of_time=True
        )
    return StepDone(Detail.DELAYED, f"{chosen_ms} ms.")
