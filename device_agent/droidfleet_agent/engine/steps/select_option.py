"""SELECT_OPTION: opens a list, chooses an option in it, and sees the list closed with the option chosen."""

from __future__ import annotations

from collections.abc import Callable

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import quoted, seen_on, selector_text
from droidfleet_agent.engine.scrolling import Reached, scroll_until
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import Sight, wait_to_touch
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_agent.screen.fields import same_node
from droidfleet_agent.screen.matching import Matcher
from droidfleet_agent.screen.node import Node
from droidfleet_agent.screen.same import same_screen
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import SelectOptionStep
from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.protocol.text import normalise

DIRECTIONS: tuple[Direction, ...] = ("DOWN", "UP")
"""A list may open at its beginning or at what is chosen now."""


async def select_option(run: StepRun, step: SelectOptionStep) -> StepDone:
    """Two taps at most, and the scrolls between them."""
    opener = await _tap(run, step, opening=True)
    await wait_until(run, _opened(step, opener))
    await _bring_into_sight(run, step)
    option = await _tap(run, step, opening=False)
    run_target = run.target
    await wait_until(run, _chosen(step, opener, option))
    run.target = run_target
    return StepDone(Detail.VERIFIED)


async def _tap(run: StepRun, step: SelectOptionStep, *, opening: bool) -> Sight:
    while True:
        found = await wait_to_touch(run, step.selector if opening else step.option)
        assert isinstance(found, Sight)  # no `unless` was given
        if await run.tap(found.point):
            return found


def _opened(step: SelectOptionStep, opener: Sight) -> Callable[[Matcher], bool | Missing]:
    def decide(matcher: Matcher) -> bool | Missing:
        if matcher.any_visible(step.option) or not same_screen(opener.matcher.screen, matcher.screen):
            return True
        return Missing(StepCode.ACTION_FAILED, lambda: f"{selector_text(step.selector)} was tapped and opened nothing.")

    return decide


async def _bring_into_sight(run: StepRun, step: SelectOptionStep) -> None:
    left = step.max_scrolls
    for direction in DIRECTIONS:
        reached, scrolls = await scroll_until(
            run,
            container=None,
            direction=direction,
            seen=lambda matcher: matcher.any_visible(step.option),
            max_scrolls=left,
        )
        left -= scrolls
        if reached is Reached.SEEN:
            return
        if left <= 0:
            break
    raise StepFailed(
        StepCode.TARGET_NOT_FOUND,
        f"Looked for {selector_text(step.option)} in the open list, up and down, and did not see it within "
        f"{step.max_scrolls - left} scrolls. Correct `option` or raise `maxScrolls`.",
    )


def _chosen(step: SelectOptionStep, opener: Sight, option: Sight) -> Callable[[Matcher], bool | Missing]:
    label = _label(option.node)

    def decide(matcher: Matcher) -> bool | Missing:
        here = same_node(matcher, opener.node)
        if here is None:
            return Missing(
                StepCode.ACTION_FAILED,
                lambda: (
                    f"{selector_text(step.option)} was tapped and the list has not closed. {seen_on(matcher.screen)}"
                ),
            )
        if (label and label in _labels(here)) or _is_marked(matcher, step):
            return True
        shown = _label(here)
        return Missing(
            StepCode.ACTION_FAILED,
            lambda: f"{selector_text(step.option)} was tapped, and what opened the list shows {quoted(shown)}.",
        )

    return decide


def _is_marked(matcher: Matcher, step: SelectOptionStep) -> bool:
    """Whether the option, or the row that it stands in, reads as checked or selected: for lists that stay in place."""
    options = matcher.all_visible(step.option)
    if not isinstance(options, list) or len(options) != 1:
        return False
    node: Node | None = options[0]
    while node is not None and not (node.checked or node.selected):
        node = node.parent if not node.clickable else None
    return node is not None


def _label(node: Node) -> str:
    return next((normalise(text) for each in node.walk() for text in (each.text, each.description) if text), "")


def _labels(node: Node) -> set[str]:
    return {normalise(text) for each in node.walk() for text in (each.text, each.description) if text}
