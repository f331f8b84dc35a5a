"""What follows an action: its `after`, an outcome that nobody knows, and the one repetition that `redo` allows.

    act -> did `after` hold?  yes -> success (also of an unknown outcome: `SETTLED_BY_AFTER`)
                              no  -> `redo`, and every look since the action was the screen it was decided on?
                                     yes -> act once more, and ask again
                                     no  -> AFTER_NOT_MET, or OUTCOME_UNKNOWN where nobody knows

A screen that changed at any look, and be it back again, is an effect: nothing is repeated then (decision 0019).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from droidfleet_agent.engine.conditions import wait_until_holds, wants_of
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_agent.screen.matching import Matcher
from droidfleet_agent.screen.same import same_screen
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import After, StepBase

QUIET_MS = 1_000
"""How long the screen is watched for a late effect, where no `after` says for how long, before `redo` repeats."""


class Seen(Enum):
    """What the looks since an action showed."""

    HELD = auto()
    """`after` holds."""
    CHANGED = auto()
    """It does not, and the screen is, or was, another one than before the action."""
    UNCHANGED = auto()
    """It does not, and no look showed any difference."""


@dataclass(slots=True)
class _Watch:
    """Compares every look with the one that the action was decided on."""

    before: Matcher | None
    looks: int = 0
    changed: bool = False

    def look(self, matcher: Matcher) -> None:
        self.looks += 1
        if self.before is None or not same_screen(self.before.screen, matcher.screen):
            self.changed = True

    @property
    def unchanged(self) -> bool:
        """Whether it was looked at, and nothing was different at any look."""
        return self.looks > 0 and not self.changed


async def act(run: StepRun, step: StepBase, execute: Callable[[], Awaitable[StepDone]]) -> StepDone:
    """Runs a leaf step's executor and what is asked of its outcome.

    Raises:
        StepFailed, RunCancelled.
    """
    action_wants = run.wants
    if step.redo and getattr(step, "selector", None) is None:
        # The action itself may need no look; what `redo` compares with has to be seen before it.
        await wait_until(run, lambda _matcher: True)
    done, unknown = await _once(execute)
    seen, missed = await _seen_after(run, step, done, unknown)
    if seen is Seen.UNCHANGED and step.redo:
        run.wants = action_wants
        run.begin(step.timeout_ms)
        done, unknown = await _once(execute)
        seen, missed = await _seen_after(run, step, done, unknown)
    if seen is not Seen.HELD:
        if unknown is not None:
            raise unknown
        if missed is not None:
            raise missed
    if unknown is not None:
        return StepDone(Detail.SETTLED_BY_AFTER, "Nobody knew whether it happened; `after` showed that it did.")
    assert done is not None  # one of the two
    verified = step.after is not None and done.detail is Detail.DISPATCHED_UNVERIFIED
    return replace(done, detail=Detail.VERIFIED) if verified else done


async def _once(execute: Callable[[], Awaitable[StepDone]]) -> tuple[StepDone | None, StepFailed | None]:
    """How it ended, or the failure that says that nobody knows."""
    try:
        return await execute(), None
    except StepFailed as failed:
        if failed.code is not StepCode.OUTCOME_UNKNOWN:
            raise
        return None, failed


async def _seen_after(
    run: StepRun, step: StepBase, done: StepDone | None, unknown: StepFailed | None
) -> tuple[Seen, StepFailed | None]:
    """What the looks since the action showed, and with which failure `after` missed its time."""
    if done is not None and (step.after is None or done.detail is Detail.ALREADY_VISIBLE):
        return Seen.HELD, None  # nothing is asked, or nothing was done
    watch = _Watch(run.deciding_look)
    try:
        if step.after is not None:
            await _until_after(run, step.after, watch)
            return Seen.HELD, None
        if step.redo:
            await _until_quiet(run, watch)
    except StepFailed as failed:
        if unknown is None and failed.code is not StepCode.AFTER_NOT_MET:
            raise
        unchanged = failed.code is StepCode.AFTER_NOT_MET and watch.unchanged
        return (Seen.UNCHANGED if unchanged else Seen.CHANGED), failed
    return Seen.CHANGED, None


async def _until_after(run: StepRun, after: After, watch: _Watch) -> None:
    run.wants = wants_of(after.condition)
    run.begin(after.timeout_ms)
    await wait_until_holds(run, after.condition, code=StepCode.AFTER_NOT_MET, in_front=False, watch=watch.look)


async def _until_quiet(run: StepRun, watch: _Watch) -> None:
    """Looks for a while for an effect that comes late; returns when one was seen, or none by then."""
    run.begin(min(QUIET_MS, run.step.timeout_ms))

    def still(matcher: Matcher) -> bool | Missing:
        watch.look(matcher)
        if watch.changed:
            return True
        return Missing(StepCode.AFTER_NOT_MET, lambda: "the screen did not change")

    await wait_until(run, still, in_front=False)
