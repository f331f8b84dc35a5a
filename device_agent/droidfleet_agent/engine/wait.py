"""Waits, look by look, until something holds, and names what was missing last when it never does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.messages import seen_on, sentence
from droidfleet_agent.engine.sight import PICTURE_NOT_READ
from droidfleet_agent.engine.step import StepRun
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.screen.matching import Matcher
from droidfleet_shared.screen.node import Screen

FIRST_PAUSE_S = 0.05
"""Between two looks at first: three frames, the soonest that an animated screen shows something new."""

PAUSE_GROWTH = 1.5
LONGEST_PAUSE_S = 0.25
"""Later looks are at most this far apart: it is what a wait takes too long at worst, and with a dump of 120 ms it keeps
the phone's accessibility service two thirds idle."""

SLOW_LOOK_S = 1.0
"""What a look may well take. The deadline often cuts the last one short, which says nothing of the phone."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Missing:
    """Not yet. ``message`` is a sentence; ``settling``: nearly there, look again soon."""

    code: StepCode
    message: Callable[[], str]
    settling: bool = False


async def wait_until(run: StepRun, decide: Callable[[Matcher], T | Missing], *, in_front: bool = True) -> T:
    """Looks until the step's package and activity are in front and ``decide`` finds what it wants on the same look.

    ``in_front`` false: whatever is in front.

    The first look is taken at once and a screen that is ready costs no pause.

    Raises:
        StepFailed: at the deadline, with the code of what was missing last, or `DEVICE_UNAVAILABLE` when nothing was;
            or whatever ``decide`` raises.
        RunCancelled.
    """
    missing: Missing | None = None
    silence: PhoneUnavailableError | None = None
    pause = FIRST_PAUSE_S
    while not run.deadline.passed:
        left_s = run.deadline.remaining()
        try:
            matcher = await run.look()
        except PhoneUnavailableError as error:
            if missing is None or left_s > SLOW_LOOK_S or not run.deadline.passed:
                silence = error
        else:
            silence = None
            missing_app = in_front_or_missing(run, matcher.screen) if in_front else None
            verdict: T | Missing = missing_app or decide(matcher)
            if not isinstance(verdict, Missing):
                return verdict
            missing = verdict
        await run.pause(FIRST_PAUSE_S if missing is not None and missing.settling else pause)
        pause = min(pause * PAUSE_GROWTH, LONGEST_PAUSE_S)
    raise _given_up(run, missing, silence)


async def until_sent(run: StepRun, act: Callable[[], Awaitable[bool]]) -> None:
    """Does what needs no target, again as long as it certainly did not happen.

    In between it looks: looking is what repairs the way to the phone.

    Raises:
        StepFailed, RunCancelled.
    """
    while not await act():
        await wait_until(run, lambda matcher: matcher, in_front=False)


def in_front_or_missing(run: StepRun, screen: Screen) -> Missing | None:
    """None when the step's package and activity are in front, else which of them is missing."""
    package = run.step.package_name
    if package is not None and screen.package != package:
        return Missing(
            StepCode.PACKAGE_MISMATCH,
            lambda: (
                f"The app in front must be {package} and is {screen.package or 'unknown'}. {seen_on(screen)} "
                "Open the app before this step, or correct `packageName`."
            ),
        )
    activity = run.step.activity_name
    if activity is not None and screen.activity != full_activity(activity, package or ""):
        return Missing(
            StepCode.ACTIVITY_MISMATCH,
            lambda: (
                f"The activity in front must be {activity} and is {screen.activity or 'unknown or just changing'}. "
                "Go to that screen before this step, or correct `activityName`."
            ),
        )
    return None


def full_activity(name: str, package: str) -> str:
    """The full class name; Android writes one that begins with the package in short, as ``.Name``."""
    return f"{package}{name}" if name.startswith(".") else name


def _given_up(run: StepRun, missing: Missing | None, silence: PhoneUnavailableError | None) -> StepFailed:
    after = f"After {run.limit_ms} ms"
    reason = sentence(silence.message) if silence is not None else ""
    unread = silence is not None and silence.code == PICTURE_NOT_READ
    if missing is None:
        remedy = "" if unread else " Check that it is attached, unlocked for adb, and not busy."
        lack = "nothing was decided" if unread else "the phone had not answered"
        message = f"{after} {lack}{f': {reason}' if reason else '.'}{remedy}"
        code = StepCode.SCREEN_UNREADABLE if unread else StepCode.DEVICE_UNAVAILABLE
        return StepFailed(code, message, out_of_time=True)
    if unread:
        quiet = f" At the end {reason}"
    else:
        quiet = f" At the end the phone no longer answered: {reason}" if reason else ""
    return StepFailed(missing.code, f"{after}: {missing.message()}{quiet}", out_of_time=True)
