"""One executor for each action: ``async (run, step) -> StepDone``, or it raises `StepFailed`.

To add an action: a module here and a case in `execute`, which the type checker asks for. Steps that hold or choose
others are `engine.flow`'s.
"""

from __future__ import annotations

from typing import assert_never

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.steps.assert_ import assert_
from droidfleet_agent.engine.steps.back import back
from droidfleet_agent.engine.steps.click import click
from droidfleet_agent.engine.steps.delay import delay
from droidfleet_agent.engine.steps.drag import drag
from droidfleet_agent.engine.steps.extract import extract
from droidfleet_agent.engine.steps.extract_text import extract_text
from droidfleet_agent.engine.steps.input import input_text
from droidfleet_agent.engine.steps.key import key
from droidfleet_agent.engine.steps.long_click import long_click
from droidfleet_agent.engine.steps.open_app import open_app
from droidfleet_agent.engine.steps.screenshot import screenshot
from droidfleet_agent.engine.steps.scroll import scroll
from droidfleet_agent.engine.steps.select_option import select_option
from droidfleet_agent.engine.steps.stop_app import stop_app
from droidfleet_agent.engine.steps.swipe import swipe
from droidfleet_agent.engine.steps.wait import wait
from droidfleet_agent.engine.steps.wake import wake
from droidfleet_shared.protocol import steps as protocol
from droidfleet_shared.protocol.steps import LeafStep


async def execute(run: StepRun, step: LeafStep) -> StepDone:  # noqa: PLR0911, PLR0912 - one case an action
    """Runs one step.

    Raises:
        StepFailed, RunCancelled.
    """
    match step:
        case protocol.ClickStep():
            return await click(run, step)
        case protocol.LongClickStep():
            return await long_click(run, step)
        case protocol.InputStep():
            return await input_text(run, step)
        case protocol.BackStep():
            return await back(run)
        case protocol.KeyStep():
            return await key(run, step)
        case protocol.OpenStep():
            return await open_app(run, step)
        case protocol.StopAppStep():
            return await stop_app(run, step)
        case protocol.ScrollStep():
            return await scroll(run, step)
        case protocol.SwipeStep():
            return await swipe(run, step)
        case protocol.DragStep():
            return await drag(run, step)
        case protocol.SelectOptionStep():
            return await select_option(run, step)
        case protocol.WakeStep():
            return await wake(run)
        case protocol.WaitStep():
            return await wait(run, step)
        case protocol.DelayStep():
            return await delay(run, step)
        case protocol.ExtractTextStep():
            return await extract_text(run, step)
        case protocol.ExtractStep():
            return await extract(run, step)
        case protocol.ScreenshotStep():
            return await screenshot(run, step)
        case protocol.AssertStep():
            return await assert_(run, step)
        case _:
            assert_never(step)
