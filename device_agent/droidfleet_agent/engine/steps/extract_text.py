"""EXTRACT_TEXT: reads one node into an output."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.messages import cut
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import wait_for_sight
from droidfleet_agent.screen.fields import held_text
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import ExtractTextStep

MAX_OUTPUT = 16_384
"""Characters of one output. A text node of a real app holds less; a task's 200 outputs must fit its result."""


async def extract_text(run: StepRun, step: ExtractTextStep) -> StepDone:
    """The text, else the description, as the dump shows it (each half of an emoji is a dot there).

    A hint is not a text. A node with neither gives an empty string.
    """
    sight = await wait_for_sight(run, step.selector)
    text = cut(held_text(sight.node) or sight.node.description, MAX_OUTPUT)
    if step.append:
        before = run.outputs.get(step.output_field, [])
        run.outputs[step.output_field] = [*([before] if isinstance(before, str) else before), text]
    else:
        run.outputs[step.output_field] = text
    return StepDone(Detail.EXTRACTED, "" if text else "The node has neither a text nor a description.")
