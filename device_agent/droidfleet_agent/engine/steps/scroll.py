"""SCROLL: scrolls until something is seen, to the end, or to a bound."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import counted, selector_text
from droidfleet_agent.engine.scrolling import Reached, scroll_until
from droidfleet_agent.engine.step import StepRun
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import ScrollStep


async def scroll(run: StepRun, step: ScrollStep) -> StepDone:
    """Without ``until`` the end and the bound are successes; with it only its sight is."""
    until = step.until
    reached, scrolls = await scroll_until(
        run,
        container=step.selector,
        direction=step.direction,
        seen=lambda matcher: until is not None and matcher.any_visible(until),
        max_scrolls=step.max_scrolls,
    )
    if reached is Reached.SEEN:
        return StepDone(Detail.SEEN, f"After {counted(scrolls, 'scroll')}.")
    where = "the end was reached" if reached is Reached.END else "the bound of `maxScrolls` was reached"
    if until is not None:
        raise StepFailed(
            StepCode.TARGET_NOT_FOUND,
            f"Looked for {selector_text(until)} and did not see it: {where} after {counted(scrolls, 'scroll')} "
            f"{step.direction.lower()}. Scroll the other way, raise `maxScrolls`, or correct `until`.",
        )
    return StepDone(
        Detail.END_REACHED if reached is Reached.END else Detail.BOUND_REACHED, f"{counted(scrolls, 'scroll')}."
    )
