"""SELECT_OPTION: opens a list, chooses an option in it, and sees the list closed with the option chosen.

tap the opener -> something opened? -> the option in sight (scrolling) -> tap it -> the opener is back and shows it?
"""

from __future__ import annotations

import re
from collections.abc import Callable

from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import quoted, seen_on, selector_text
from droidfleet_agent.engine.scrolling import Reached, scroll_until
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import Sight, wait_to_touch
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.protocol.steps import SelectOptionStep
from droidfleet_shared.protocol.steps.base import Direction
from droidfleet_shared.protocol.text import normalise
from droidfleet_shared.screen.fields import place_in_window, same_node
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node
from droidfleet_shared.screen.same import same_screen

DIRECTIONS: tuple[Direction, ...] = ("DOWN", "UP")
"""A list may open at its beginning or at what is chosen now."""

OPEN_LOOKS = 3
"""Looks that must show another screen, without the option, before that is taken for the open list and scrolled: the
opener may only have taken the focus, and the list comes with the next frames."""


async def select_option(run: StepRun, step: SelectOptionStep) -> StepDone:
    """Two taps at most, and the scrolls between them."""
    opener = await _tap(run, step.selector)
    await wait_until(run, _opened(step, opener))
    await _bring_into_sight(run, step, opener)
    option = await _tap(run, step.option, also=_not_the_opener(step, opener))
    if not opener.matcher.in_tree(opener.node):
        return StepDone(Detail.DISPATCHED_UNVERIFIED, "What opens the list was seen on the picture alone.")
    chosen = run.target
    await wait_until(run, _chosen(step, opener, option))
    run.target = chosen
    return StepDone(Detail.VERIFIED)


async def _tap(
    run: StepRun, selector: Selector, *, also: Callable[[Matcher], Missing | None] = lambda _matcher: None
) -> Sight:
    while True:
        found = await wait_to_touch(run, selector, also=also)
        assert isinstance(found, Sight)  # no `unless` was given
        if await run.tap(found.point):
            return found


def _opened(step: SelectOptionStep, opener: Sight) -> Callable[[Matcher], bool | Missing]:
    offered_before = _offers(opener.matcher, step, opener)
    other = 0

    def decide(matcher: Matcher) -> bool | Missing:
        nonlocal other
        offered = _offers(matcher, step, opener)
        changed = matcher.screen.root is not None and not same_screen(opener.matcher.screen, matcher.screen)
        other += changed
        if offered and (changed or not offered_before):
            return True
        if other >= OPEN_LOOKS:
            return True
        if changed:
            return Missing(
                StepCode.TARGET_NOT_FOUND,
                lambda: (
                    f"Looked for {selector_text(step.option)} in what opened. {seen_on(matcher.screen, step.option)}"
                ),
                settling=True,
            )
        return Missing(StepCode.ACTION_FAILED, lambda: f"{selector_text(step.selector)} was tapped and opened nothing.")

    return decide


async def _bring_into_sight(run: StepRun, step: SelectOptionStep, opener: Sight) -> None:
    left = step.max_scrolls
    for direction in DIRECTIONS:
        reached, scrolls = await scroll_until(
            run,
            container=None,
            direction=direction,
            seen=lambda matcher: _offers(matcher, step, opener),
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
    label = next(iter(_labels(option.node)), "")

    def decide(matcher: Matcher) -> bool | Missing:
        here = _opener_again(matcher, opener)
        if here is None:
            return Missing(
                StepCode.ACTION_FAILED,
                lambda: (
                    f"{selector_text(step.option)} was tapped and the list has not closed. {seen_on(matcher.screen)}"
                ),
            )
        row = _row(here)
        shown = _labels(row)
        done = not same_screen(option.matcher.screen, matcher.screen)
        silent = not any(node.text for node in row.walk())  # an icon, say: it closed, and there is no more to see
        says_so = any(_mentions(text, label) for text in shown) if label and not silent else silent
        if (done and says_so) or _is_marked(matcher, step):
            return True
        return Missing(
            StepCode.ACTION_FAILED,
            lambda: (
                f"{selector_text(step.option)} was tapped, and what opened the list shows "
                f"{', '.join(quoted(text) for text in shown) or 'no text'}."
            ),
        )

    return decide


def _offers(matcher: Matcher, step: SelectOptionStep, opener: Sight) -> bool:
    """Whether the option is visible, and not only as what the opener shows as chosen now."""
    here = _opener_again(matcher, opener)
    if here is None:
        return matcher.any_visible(step.option)
    shown = matcher.all_visible(step.option)
    own = {id(node) for node in _row(here).walk()}
    return isinstance(shown, list) and any(id(node) not in own for node in shown)


def _not_the_opener(step: SelectOptionStep, opener: Sight) -> Callable[[Matcher], Missing | None]:
    def also(matcher: Matcher) -> Missing | None:
        if _offers(matcher, step, opener):
            return None
        return Missing(
            StepCode.TARGET_NOT_FOUND,
            lambda: f"{selector_text(step.option)} is what opens the list, and the list is not open.",
        )

    return also


def _opener_again(matcher: Matcher, opener: Sight) -> Node | None:
    """The opener on a later look, in the window that it was in; a row of an open list may look like it."""
    now, before = matcher.screen.root, opener.matcher.screen.root
    if now is None or before is None or not opener.matcher.in_tree(opener.node):
        return None
    if (now.class_name, now.package, now.bounds) != (before.class_name, before.package, before.bounds):
        return None
    here = same_node(matcher, opener.node)
    if here is None or (not here.resource_id and place_in_window(here) != place_in_window(opener.node)):
        return None
    return here


def _row(node: Node) -> Node:
    """What takes the touch on a node: a label's row shows the choice beside it."""
    here: Node | None = node
    while here is not None and not here.clickable:
        here = here.parent
    return here or node


def _is_marked(matcher: Matcher, step: SelectOptionStep) -> bool:
    """Whether the option, or the row that it stands in, reads as checked or selected: for lists that stay in place."""
    options = matcher.all_visible(step.option)
    if not isinstance(options, list) or len(options) != 1:
        return False
    node: Node | None = options[0]
    while node is not None and not (node.checked or node.selected):
        node = node.parent if not node.clickable else None
    return node is not None


def _labels(node: Node) -> list[str]:
    return [normalise(text) for each in node.walk() for text in (each.text, each.description) if text]


def _mentions(text: str, label: str) -> bool:
    """Whether the text is or holds the label, as words of its own: `Country: Norway` holds `Norway`, and no `way`."""
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text) is not None
