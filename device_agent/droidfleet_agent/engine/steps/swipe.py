"""SWIPE: moves a finger over the window or an area of it."""

from __future__ import annotations

from collections.abc import Callable

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import seen_on, selector_text
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import find
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import SwipeStep
from droidfleet_shared.screen.gestures import Line, free_part, swipe_line
from droidfleet_shared.screen.matching import Matcher


async def swipe(run: StepRun, step: SwipeStep) -> StepDone:
    """A swipe that certainly did not happen is tried afresh, on a new look, until the deadline."""
    while True:
        line = await wait_until(run, _line(run, step))
        if line is None:
            what = selector_text(step.selector) if step.selector is not None else "The window"
            raise StepFailed(StepCode.ACTION_FAILED, f"{what} shows too little to swipe over.")
        start, end = line
        if await run.swipe(start, end, duration_ms=step.duration_ms):
            return StepDone(Detail.DISPATCHED_UNVERIFIED)


def _line(run: StepRun, step: SwipeStep) -> Callable[[Matcher], Line | Missing | None]:
    def decide(matcher: Matcher) -> Line | Missing | None:
        node = matcher.screen.root
        if step.selector is not None:
            sight = find(run, matcher, step.selector, touch=False)
            if isinstance(sight, Missing):
                return sight
            node = sight.node
        if node is None:
            return Missing(StepCode.TARGET_NOT_FOUND, lambda: seen_on(matcher.screen))
        area = free_part(matcher, node, towards=step.direction)
        return swipe_line(area, matcher.screen.display, towards=step.direction, percent=step.distance_percent)

    return decide
