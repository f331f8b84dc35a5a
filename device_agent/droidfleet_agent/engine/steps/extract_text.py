"""EXTRACT_TEXT: reads one node into an output."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.messages import cut
from droidfleet_agent.engine.outputs import MAX_OUTPUT, appended
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import wait_for_sight
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import ExtractTextStep
from droidfleet_shared.screen.fields import held_text


async def extract_text(run: StepRun, step: ExtractTextStep) -> StepDone:
    """The text, else the description, as the dump shows it (each half of an emoji is a dot there).

    A hint is not a text. A node with neither gives an empty string.
    """
    sight = await wait_for_sight(run, step.selector)
    text = cut(held_text(sight.node) or sight.node.description, MAX_OUTPUT)
    if step.append:
        run.outputs[step.output_field] = appended(run.outputs, step.output_field, [text])
    else:
        run.outputs[step.output_field] = text
    return StepDone(Detail.EXTRACTED, "" if text else "The node has neither a text nor a description.")
