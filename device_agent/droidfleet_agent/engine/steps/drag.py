"""DRAG: holds a node and moves it to another place, both decided on one look."""

from __future__ import annotations

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import selector_text
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import Sight, find, wait_to_touch
from droidfleet_agent.engine.wait import Missing
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import DragStep
from droidfleet_shared.screen.gestures import LEAST_LINE, Point, drag_end
from droidfleet_shared.screen.matching import Matcher


async def drag(run: StepRun, step: DragStep) -> StepDone:
    """A drag that certainly did not happen is tried afresh, on a new look, until the deadline."""

    def others(matcher: Matcher) -> Missing | None:
        required = step.require_visible
        if required is not None and not matcher.any_visible(required):
            return Missing(StepCode.TARGET_NOT_FOUND, lambda: f"{selector_text(required)} must be visible and is not.")
        target = run.target
        place = find(run, matcher, step.to, touch=False) if step.to is not None else None
        run.target = target  # the result shows what was held
        return place if isinstance(place, Missing) else None

    while True:
        handle = await wait_to_touch(run, step.selector, also=others)
        assert isinstance(handle, Sight)  # no `unless` was given
        if await run.drag(handle.point, _end(run, step, handle), duration_ms=step.duration_ms):
            return StepDone(Detail.DISPATCHED_UNVERIFIED)


def _end(run: StepRun, step: DragStep, handle: Sight) -> Point:
    display = handle.matcher.screen.display
    end: Point | None
    if step.to is not None:
        held = run.target
        place = find(run, handle.matcher, step.to, touch=False)
        run.target = held
        assert isinstance(place, Sight)  # seen on this very look
        end = place.point
    else:
        assert step.by_percent is not None  # the validator has seen that one of the two is given
        end = drag_end(handle.point, display, x_percent=step.by_percent.x, y_percent=step.by_percent.y)
    if end is None:
        raise StepFailed(
            StepCode.ACTION_FAILED, f"`byPercent` leads from {handle.point} out of the display, so nothing was moved."
        )
    if max(abs(end[0] - handle.point[0]), abs(end[1] - handle.point[1])) < LEAST_LINE:
        raise StepFailed(
            StepCode.ACTION_FAILED, f"The handle is at {handle.point} already, where it was to be moved, so it was not."
        )
    return end
