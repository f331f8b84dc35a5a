"""SCREENSHOT: keeps a picture of the screen."""

from __future__ import annotations

from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import sentence
from droidfleet_agent.engine.step import RETRY_PAUSE_S, StepRun
from droidfleet_agent.engine.wait import wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import ScreenshotStep


async def screenshot(run: StepRun, step: ScreenshotStep) -> StepDone:
    """Waits for the step's package and activity when it names them."""
    if step.package_name is not None:
        await wait_until(run, lambda _matcher: True)
    while True:
        try:
            picture = await run.screenshot()
        except PhoneUnavailableError as error:
            await run.pause(RETRY_PAUSE_S)
            if run.deadline.passed:
                raise StepFailed(
                    StepCode.DEVICE_UNAVAILABLE,
                    f"After {run.limit_ms} ms the phone had given no picture: {sentence(error.message)}",
                    out_of_time=True,
                ) from error
        else:
            await run.keep_picture(step.name, picture)
            return StepDone(Detail.CAPTURED)
