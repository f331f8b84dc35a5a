"""What is kept of the moment in which a task fails: what was in front, and a picture of the screen.

Reads only, in a time of its own (`bounds.FAILURE_LOOK_MS`), and never in the way of a cancel. What cannot be had is
left out: it is no part of what the task does.
"""

from __future__ import annotations

from contextlib import suppress

from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.context import RunContext
from droidfleet_agent.engine.control import RunCancelled, RunLeft
from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.step import StepRun
from droidfleet_shared.protocol.bounds import FAILURE_LOOK_MS
from droidfleet_shared.protocol.codes import StepCode

PICTURE_NAME = "failure"

MAX_PICTURE_BYTES = 200_000
"""A third of what a step may keep: a rollout that fails takes one of each phone, and they must not crowd out others."""

NOBODY_THERE = frozenset({StepCode.CANCELLED, StepCode.DEVICE_UNAVAILABLE})
"""Failures after which the phone is asked nothing: somebody waits for the end, or the phone is away."""


def last_screen(run: StepRun) -> str:
    """What was in front on the step's last look, as `look_at_failure` says it."""
    return "" if run.last_look is None else _screen(run.last_look.screen.package, run.last_look.screen.activity)


async def look_at_failure(context: RunContext, run: StepRun, code: StepCode) -> str:
    """What is in front, as ``package/.Activity``, or the package alone; empty: not known. The picture, if there is one,
    becomes an artifact of the step. None is taken of a task with secrets, which the screen may show."""
    deadline = context.deadline.at_most(FAILURE_LOOK_MS / 1000)
    if code in NOBODY_THERE or deadline.passed:
        return last_screen(run)
    screen = ""
    with suppress(PhoneUnavailableError, RunCancelled, RunLeft, StepFailed):
        async with context.control.interruptible(may_leave=False):
            focus = await context.phone.focus(deadline=deadline)
        screen = _screen(focus.package, focus.activity)
        if not context.values.has_secrets:
            async with context.control.interruptible(may_leave=False):
                picture = await context.phone.screenshot(deadline=deadline)
            await run.keep_picture(PICTURE_NAME, picture, max_bytes=MAX_PICTURE_BYTES)
    return screen or last_screen(run)


def _screen(package: str, activity: str) -> str:
    own = activity.startswith(f"{package}.")
    return f"{package}/{activity.removeprefix(package) if own else activity}" if package and activity else package
