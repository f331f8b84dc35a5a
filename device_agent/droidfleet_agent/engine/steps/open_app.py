"""OPEN: brings an app to the front and sees it there."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.wait import in_front_or_missing, until_sent, wait_until
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import OpenStep


async def open_app(run: StepRun, step: OpenStep) -> StepDone:
    """An app that is in front already is left alone, unless it is to be stopped first."""
    if step.stop_first:
        await until_sent(run, lambda: run.stop_app(step.package_name))
    else:
        look = await wait_until(run, lambda matcher: matcher, in_front=False)
        if in_front_or_missing(run, look.screen) is None:
            return StepDone(Detail.ALREADY_FOREGROUND)
    await until_sent(run, lambda: run.start_app(step.package_name, step.activity_name))
    await wait_until(run, lambda _matcher: True)
    return StepDone(Detail.IN_FRONT)
