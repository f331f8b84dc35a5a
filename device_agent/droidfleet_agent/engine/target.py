"""Finds the one node that a step means: waits for it, lets it come to rest, and uncovers it from the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.ending import MAX_CANDIDATES, StepFailed
from droidfleet_agent.engine.messages import quoted, seen_on, selector_text, target_of
from droidfleet_agent.engine.step import RETRY_PAUSE_S, StepRun
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Disabled, Matched, Matcher, NotFound
from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.touch import Covered, touch_point

EMOJI_NOTE = "Emoji were compared as the dots that a screen dump shows for them."


@dataclass(frozen=True, slots=True)
class Sight:
    """A target as one look showed it. ``bounds`` is its visible part, ``point`` where it is touched."""

    matcher: Matcher
    node: Node
    bounds: Bounds
    point: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Skip:
    """The deciding look showed what makes the step unnecessary."""


def find(run: StepRun, matcher: Matcher, selector: Selector, *, touch: bool) -> Sight | Missing:
    """The one target on one look, or what is missing.

    Raises:
        StepFailed: `TARGET_AMBIGUOUS`.
    """
    outcome = matcher.match(selector, touch=touch)
    match outcome:
        case Matched():
            run.target = target_of(outcome.node, outcome.visible_bounds)
            point = touch_point(matcher, outcome.node) if touch else outcome.visible_bounds.center
            if isinstance(point, Covered):
                by = quoted(point.by) if point.by else "something without a label"
                return Missing(
                    StepCode.TARGET_NOT_FOUND,
                    lambda: (
                        f"{selector_text(selector)} is covered by {by}, which would take the touch. "
                        "Close first what lies over it."
                    ),
                )
            return Sight(matcher, outcome.node, outcome.visible_bounds, point)
        case Ambiguous():
            raise ambiguous(matcher, selector, outcome)
        case Disabled():
            disabled = outcome.nodes
            run.target = target_of(disabled[0], matcher.visible_bounds(disabled[0]))
            return Missing(
                StepCode.TARGET_DISABLED,
                lambda: (
                    f"{selector_text(selector)} is on the screen but disabled. "
                    "Do first what enables it, or give it more time with `timeoutMs`."
                ),
            )
        case NotFound():
            run.target = None
            reason = outcome.reason
            return Missing(
                StepCode.TARGET_NOT_FOUND,
                lambda: f"Looked for {selector_text(selector)}: {reason}. {seen_on(matcher.screen, selector)}",
            )
        case _:
            assert_never(outcome)


async def wait_for_sight(run: StepRun, selector: Selector) -> Sight:
    """Waits until exactly one node matches; for steps that only read.

    Raises:
        StepFailed, RunCancelled.
    """
    return await wait_until(run, lambda matcher: find(run, matcher, selector, touch=False))


async def wait_to_touch(
    run: StepRun,
    selector: Selector,
    *,
    unless: Selector | None = None,
    also: Callable[[Matcher], Missing | None] = lambda _matcher: None,
) -> Sight | Skip:
    """Waits for a target that can be touched, at the middle of its visible part unless something lies over that.

    A target on the step's very first look is taken as it is. One that appeared while waiting may still be moving, so a
    further look must show it at the same place. ``unless``: `Skip` when it is visible on the look that decides.
    ``also``: what else that look must show.

    Raises:
        StepFailed, RunCancelled.
    """
    hidden_keyboard = False
    while True:
        found: Sight | Skip = await wait_until(
            run, _touchable(run, selector, unless=unless, also=also, uncovered=hidden_keyboard)
        )
        if isinstance(found, Skip) or not _covered(found):
            return found
        try:
            shown = await run.keyboard_shown()
        except PhoneUnavailableError:
            await run.pause(RETRY_PAUSE_S)
            continue
        if not shown:
            return found
        hidden_keyboard = await run.hide_keyboard()


def _touchable(
    run: StepRun,
    selector: Selector,
    *,
    unless: Selector | None,
    also: Callable[[Matcher], Missing | None],
    uncovered: bool,
) -> Callable[[Matcher], Sight | Skip | Missing]:
    last: Bounds | None = None

    def decide(matcher: Matcher) -> Sight | Skip | Missing:
        nonlocal last
        if unless is not None and matcher.any_visible(unless):
            run.target = None
            return Skip()
        found = find(run, matcher, selector, touch=True)
        missing = found if isinstance(found, Missing) else also(matcher)
        if missing is not None:
            last = None
            return missing
        assert isinstance(found, Sight)
        if uncovered and _covered(found):
            return Missing(
                StepCode.ACTION_FAILED,
                lambda: f"{selector_text(selector)} is covered by the keyboard, which stays although it was hidden.",
            )
        if run.on_first_look or found.bounds == last:
            return found
        last = found.bounds
        return Missing(
            StepCode.TARGET_NOT_FOUND,
            lambda: f"{selector_text(selector)} was seen and not yet at rest. Raise `timeoutMs`.",
            settling=True,
        )

    return decide


def _covered(sight: Sight) -> bool:
    keyboard = sight.matcher.screen.keyboard
    return keyboard is not None and keyboard.contains(*sight.point)


def ambiguous(matcher: Matcher, selector: Selector, outcome: Ambiguous) -> StepFailed:
    shown = min(len(outcome.candidates), MAX_CANDIDATES)
    return StepFailed(
        StepCode.TARGET_AMBIGUOUS,
        f"{selector_text(selector)} does not name one node: {outcome.reason}; {shown} of {len(outcome.candidates)} are "
        "listed as candidates. Make it unique with `within`, `rightOf` or another field, or choose one with `index`.",
        candidates=[target_of(node, matcher.visible_bounds(node)) for node in outcome.candidates[:MAX_CANDIDATES]],
    )
