"""One executor for each action: ``async (run, step) -> StepDone``, or it raises `StepFailed`.

To add an action: a module here and a case in `execute`, which the type checker asks for.
"""

from __future__ import annotations

from typing import assert_never

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.steps.back import back
from droidfleet_agent.engine.steps.click import click
from droidfleet_agent.engine.steps.extract_text import extract_text
from droidfleet_agent.engine.steps.input import input_text
from droidfleet_agent.engine.steps.wait import wait
from droidfleet_shared.protocol.steps import BackStep, ClickStep, ExtractTextStep, InputStep, Step, WaitStep


async def execute(run: StepRun, step: Step) -> StepDone:
    """Runs one step.

    Raises:
        StepFailed, RunCancelled.
    """
    match step:
        case ClickStep():
            return await click(run, step)
        case InputStep():
            return await input_text(run, step)
        case BackStep():
            return await back(run)
        case WaitStep():
            return await wait(run, step)
        case ExtractTextStep():
            return await extract_text(run, step)
        case _:
            assert_never(step)
