"""INPUT: focuses the field, sets its text, reads it back, and repairs it once (protocol section 4; field case F10)."""

from __future__ import annotations

from collections.abc import Callable

from droidfleet_agent.driver.port import Key
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import quoted, selector_text
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.target import EMOJI_NOTE, Skip, wait_to_touch
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import InputStep
from droidfleet_shared.screen.fields import focused_field, held_text, may_hide_emoji, same_node, shows
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Node

MISMATCH_LOOKS = 3
"""Equal looks that must show another text than was set before that counts as lost characters: an app may take a few
frames to show what it was given."""


async def input_text(run: StepRun, step: InputStep) -> StepDone:
    """Sets the whole text at once, without another keyboard, so there is no keyboard to give back (F11)."""
    field = await _focus(run, step)
    expected = step.value if step.clear else _existing(step, field) + step.value
    field = await _set_text(run, step, field, expected)
    if field.password:
        done = StepDone(Detail.DISPATCHED_UNVERIFIED, "A password field cannot be read back.")
    else:
        done = await _verify(run, step, field, expected)
    if step.submit:
        await _press_enter(run, step, field)
    return done


async def _focus(run: StepRun, step: InputStep) -> Node:
    """The field, focused as a look shows it. Tapped at most once, and not at all when it has the focus already."""
    while True:
        found = await wait_to_touch(run, step.selector)
        assert not isinstance(found, Skip)  # no `unless` was given
        focused = focused_field(found.node)
        if focused is not None:
            return focused
        if await run.tap(found.point):
            return await wait_until(run, _focused(step, found.node))


def _focused(step: InputStep, target: Node) -> Callable[[Matcher], Node | Missing]:
    def decide(matcher: Matcher) -> Node | Missing:
        here = same_node(matcher, target)
        focused = focused_field(here) if here is not None else None
        return focused or Missing(
            StepCode.ACTION_FAILED,
            lambda: f"{selector_text(step.selector)} does not have the input focus. Is it a text field?",
        )

    return decide


def _existing(step: InputStep, field: Node) -> str:
    """What the field holds, for appending to it.

    Raises:
        StepFailed: that cannot be told from a dump, so that setting it anew would destroy it.
    """
    held = held_text(field)
    if held and field.password:
        reason = "it is a password field that holds a text, which cannot be read"
    elif may_hide_emoji(held):
        reason = f"it holds {quoted(held)}, where a screen dump shows emoji as dots"
    else:
        return held
    raise StepFailed(
        StepCode.ACTION_FAILED,
        f"Nothing was typed: {selector_text(step.selector)} cannot be appended to, because {reason}. "
        "Give the whole text with `clear: true`.",
    )


async def _set_text(run: StepRun, step: InputStep, field: Node, expected: str) -> Node:
    """Sets the focused field's text; the focus was seen on the last look, and is looked for again after a refusal."""
    while not await run.set_focused_text(expected):
        field = await wait_until(run, _focused(step, field))
    return field


async def _verify(run: StepRun, step: InputStep, field: Node, expected: str) -> StepDone:
    shown = await wait_until(run, _read_back(step, field, expected))
    if not shows(shown, expected):
        await _set_text(run, step, await wait_until(run, _focused(step, field)), expected)
        shown = await wait_until(run, _read_back(step, field, expected))
        if not shows(shown, expected):
            raise StepFailed(
                StepCode.ACTION_FAILED,
                f"The field shows {quoted(shown.text)} ({len(shown.text)} characters) instead of the {len(expected)} "
                "that were typed, also after typing them once more. If the field formats what is typed, give the value "
                "as it shows it.",
            )
    if expected and shown.text == shown.hint:
        return StepDone(Detail.DISPATCHED_UNVERIFIED, "The text equals the field's hint, so it cannot be told apart.")
    if any(ord(character) > 0xFFFF for character in expected):
        return StepDone(Detail.VERIFIED, EMOJI_NOTE)
    return StepDone(Detail.VERIFIED)


def _read_back(step: InputStep, field: Node, expected: str) -> Callable[[Matcher], Node | Missing]:
    """The field once it shows the text, or once it has shown the same other text on several looks."""
    other: list[str] = []

    def decide(matcher: Matcher) -> Node | Missing:
        here = same_node(matcher, field)
        if here is None:
            return Missing(
                StepCode.ACTION_FAILED,
                lambda: (
                    f"{selector_text(step.selector)} was typed into and is gone, so its text could not be read back."
                ),
            )
        if shows(here, expected):
            return here
        if other and other[-1] != here.text:
            other.clear()
        other.append(here.text)
        if len(other) >= MISMATCH_LOOKS:
            return here
        return Missing(
            StepCode.ACTION_FAILED,
            lambda: f"The field shows {quoted(here.text)} instead of what was typed. Raise `timeoutMs`.",
            settling=True,
        )

    return decide


async def _press_enter(run: StepRun, step: InputStep, field: Node) -> None:
    while not await run.press(Key.ENTER):
        await wait_until(run, _focused(step, field))
