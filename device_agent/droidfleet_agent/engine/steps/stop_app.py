"""STOP_APP: stops an app and sees that it is not in front."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.wait import Missing, until_sent, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import StopAppStep
from droidfleet_shared.screen.matching import Matcher


async def stop_app(run: StepRun, step: StopAppStep) -> StepDone:
    """An app that did not run is stopped already; Android does not tell the two apart."""
    await until_sent(run, lambda: run.stop_app(step.package_name))

    def gone(matcher: Matcher) -> bool | Missing:
        if matcher.screen.package != step.package_name:
            return True
        return Missing(StepCode.ACTION_FAILED, lambda: f"{step.package_name} was stopped and is still in front.")

    await wait_until(run, gone, in_front=False)
    return StepDone(Detail.STOPPED)
