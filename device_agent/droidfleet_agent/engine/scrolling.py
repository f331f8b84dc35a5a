"""Scrolls a container until something is seen, its end, or a bound. What SCROLL and SELECT_OPTION share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.messages import seen_on, selector_text
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import find
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.screen.fields import same_node
from droidfleet_shared.screen.gestures import largest_scrollable, scroll_line
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.same import same_tree

SCROLL_MS = 400
"""How long the finger moves: as fast as a person who reads, and well above a fling."""

HOLD_MS = 150
"""How long it then rests before it lets go, so that the content does not run on."""

END_LOOKS = 2
"""Looks after a scroll that must equal the one before it: a slow app shows the first a frame late."""


class Reached(Enum):
    """Why the scrolling stopped."""

    SEEN = auto()
    END = auto()
    BOUND = auto()


@dataclass(frozen=True, slots=True)
class _At:
    """The container on one look."""

    matcher: Matcher
    node: Node


async def scroll_until(
    run: StepRun,
    *,
    container: Selector | None,
    direction: Direction,
    seen: Callable[[Matcher], bool],
    max_scrolls: int,
) -> tuple[Reached, int]:
    """Why it stopped, and after how many scrolls. A first look that shows it already costs no scroll.

    Raises:
        StepFailed, RunCancelled.
    """
    here = await wait_until(run, _container(run, container, seen))
    for scrolls in range(max_scrolls + 1):
        if here is None:
            return Reached.SEEN, scrolls
        if scrolls == max_scrolls:
            break
        before = await _scroll_once(run, here, container, direction, seen)
        if before is None:
            return Reached.SEEN, scrolls
        after = await wait_until(run, _moved(run, before, container, seen))
        if after is before:
            return Reached.END, scrolls + 1
        here = after
    return Reached.BOUND, max_scrolls


def _container(
    run: StepRun, container: Selector | None, seen: Callable[[Matcher], bool], *, known: Node | None = None
) -> Callable[[Matcher], _At | Missing | None]:
    """None when what is looked for is visible; else the container: the one that is ``known`` from a former look, where
    it is still there. What its selector named may have moved out of sight, and the largest may be another one on each
    look."""

    def decide(matcher: Matcher) -> _At | Missing | None:
        if seen(matcher):
            return None
        same = same_node(matcher, known) if known is not None else None
        if same is not None:
            return _At(matcher, same)
        if container is not None:
            sight = find(run, matcher, container, touch=False)
            return sight if isinstance(sight, Missing) else _At(matcher, sight.node)
        node = largest_scrollable(matcher)
        if node is None:
            return Missing(StepCode.TARGET_NOT_FOUND, lambda: f"Nothing can be scrolled. {seen_on(matcher.screen)}")
        if known is not None and not _of_a_kind(node, known):
            return Missing(StepCode.TARGET_NOT_FOUND, lambda: f"What was scrolled is gone. {seen_on(matcher.screen)}")
        return _At(matcher, node)

    return decide


def _of_a_kind(one: Node, other: Node) -> bool:
    return (one.class_name, one.resource_id, one.package) == (other.class_name, other.resource_id, other.package)


async def _scroll_once(
    run: StepRun, here: _At, container: Selector | None, direction: Direction, seen: Callable[[Matcher], bool]
) -> _At | None:
    """Scrolls, afresh on a new look where it certainly did not happen. The look that it was decided on, or None when a
    new look shows what is looked for."""
    while True:
        line = scroll_line(here.matcher, here.node, direction=direction)
        if line is None:
            what = selector_text(container) if container is not None else "The container"
            raise StepFailed(
                StepCode.ACTION_FAILED, f"{what} shows too little to be scrolled. Close what lies over it."
            )
        if await run.swipe(*line, duration_ms=SCROLL_MS, hold_ms=HOLD_MS):
            return here
        again = await wait_until(run, _container(run, container, seen, known=here.node))
        if again is None:
            return None
        here = again


def _moved(
    run: StepRun, before: _At, container: Selector | None, seen: Callable[[Matcher], bool]
) -> Callable[[Matcher], _At | Missing | None]:
    """None when what is looked for is visible; the container where it moved; ``before`` when nothing did."""
    find_again = _container(run, container, seen, known=before.node)
    equal = 0

    def decide(matcher: Matcher) -> _At | Missing | None:
        nonlocal equal
        now = find_again(matcher)
        if now is None or isinstance(now, Missing) or not same_tree(before.node, now.node):
            return now
        equal += 1
        if equal >= END_LOOKS:
            return before
        return Missing(StepCode.TARGET_NOT_FOUND, lambda: "The content does not move.", settling=True)

    return decide
