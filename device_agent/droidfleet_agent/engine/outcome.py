"""What follows an action: its `after`, an outcome that nobody knows, and the one repetition that `redo` allows.

    act -> did `after` hold?  yes -> success (also of an unknown outcome: `SETTLED_BY_AFTER`)
                              no  -> `redo`, and every look since the action showed the screen it was decided on?
                                     yes -> act once more, and ask again
                                     no  -> AFTER_NOT_MET, or OUTCOME_UNKNOWN where nobody knows

A screen that changed at any look, and be it back again, is an effect: nothing is repeated then (decision 0019).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from droidfleet_agent.engine.conditions import needs_look, wait_until_holds, wants_of
from droidfleet_agent.engine.control import RunCancelled
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.step import RepeatedNoMoreError, StepRun, Wants
from droidfleet_agent.engine.wait import Missing, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.steps import StepBase
from droidfleet_shared.screen.matching import Matcher

QUIET_MS = 1_000
"""How long the screen is watched for a late effect where no `after` was looked for, before `redo` repeats the action.
At most half of `timeoutMs`: the repetition has the rest of it."""

Execute = Callable[[], Awaitable[StepDone]]


@dataclass(frozen=True, slots=True)
class _Tried:
    """One try. ``done``, unless nobody knows: then ``unknown``. ``held``: `after` did; ``missed``: not in its time."""

    done: StepDone | None = None
    unknown: StepFailed | None = None
    held: bool = False
    missed: StepFailed | None = None

    @property
    def failure(self) -> StepFailed | None:
        """None where it succeeded. `after`, where there is one, settles what nobody knows."""
        return None if self.held else self.unknown or self.missed


async def act(run: StepRun, step: StepBase, execute: Execute) -> StepDone:
    """Runs a step's executor and what is asked of its outcome.

    Raises:
        StepFailed, RunCancelled.
    """
    wants = run.wants
    if step.redo:
        await _look_before(run, step)
    tried = await _try(run, step, execute)
    if step.redo and tried.failure is not None:
        left_ms = await _left_to_repeat(run, step, tried, wants)
        if left_ms is not None:
            run.wants = wants
            run.begin(left_ms)
            tried = await _repeat(run, step, execute, tried)
    return _conclude(step, tried)


async def settle_doubt(run: StepRun, step: StepBase) -> StepDone:
    """What became of an action that an earlier process began: nobody knows, unless `after` says it. Never repeated.

    Raises:
        StepFailed: ``OUTCOME_UNKNOWN``.
    """
    unknown = StepFailed(
        StepCode.OUTCOME_UNKNOWN,
        "The agent broke off while this step was being carried out; whether its action happened is unknown, and it is"
        " not repeated.",
    )
    return _conclude(step, await _settle(run, step, unknown))


def _conclude(step: StepBase, tried: _Tried) -> StepDone:
    if tried.failure is not None:
        raise tried.failure
    if tried.done is None:
        return StepDone(Detail.SETTLED_BY_AFTER, "Nobody knew whether it happened; `after` showed that it did.")
    verified = tried.held and tried.done.detail is Detail.DISPATCHED_UNVERIFIED
    return replace(tried.done, detail=Detail.VERIFIED) if verified else tried.done


async def _try(run: StepRun, step: StepBase, execute: Execute) -> _Tried:
    """Acts, and looks for `after`.

    Raises:
        StepFailed: it failed in a way that is known, or `after` could not be looked for.
        RunCancelled.
    """
    try:
        done = await execute()
    except StepFailed as failed:
        if failed.code is not StepCode.OUTCOME_UNKNOWN:
            raise
        return await _settle(run, step, failed)
    if step.after is None or done.detail is Detail.ALREADY_VISIBLE:
        return _Tried(done)  # nothing is asked, or nothing was done
    try:
        await _after(run, step)
    except StepFailed as failed:
        if failed.code is not StepCode.AFTER_NOT_MET:
            raise
        return _Tried(done, missed=failed)
    return _Tried(done, held=True)


async def _settle(run: StepRun, step: StepBase, unknown: StepFailed) -> _Tried:
    """What `after` says of an action of which nobody knows. Whatever keeps it from being seen, that stays so."""
    if step.after is None:
        return _Tried(unknown=unknown)
    try:
        await _after(run, step)
    except (StepFailed, RunCancelled):
        return _Tried(unknown=unknown)
    return _Tried(unknown=unknown, held=True)


async def _after(run: StepRun, step: StepBase) -> None:
    assert step.after is not None  # asked for only then
    run.wants = wants_of(step.after.condition)
    run.begin(step.after.timeout_ms)
    await wait_until_holds(run, step.after.condition, code=StepCode.AFTER_NOT_MET, in_front=False)


# The one repetition.


async def _look_before(run: StepRun, step: StepBase) -> None:
    """Steps without a selector may act without a look, and `redo` has to know what was there before."""
    if getattr(step, "selector", None) is None:
        await wait_until(run, lambda _matcher: True, in_front=False)


async def _left_to_repeat(run: StepRun, step: StepBase, tried: _Tried, wants: Wants) -> int | None:
    """How many milliseconds the repetition has, or None when the action is not to be repeated.

    ``wants``: of the looks of the action, which those that watch for an effect are compared with.
    """
    if run.task_deadline.passed:
        return None
    if step.after is not None and needs_look(step.after.condition):
        return step.timeout_ms if run.unchanged else None
    # Nothing has looked for the effect yet: it may be on its way.
    quiet_ms = min(QUIET_MS, step.timeout_ms // 2)
    run.wants = Wants(sight=wants.sight)
    run.begin(quiet_ms)

    def still(_matcher: Matcher) -> bool | Missing:
        return run.changed or Missing(StepCode.AFTER_NOT_MET, lambda: "The screen did not change.")

    try:
        await wait_until(run, still, in_front=False)
    except StepFailed:
        return step.timeout_ms - quiet_ms if run.unchanged else None
    except RunCancelled:
        if tried.unknown is None:
            raise
    return None


async def _repeat(run: StepRun, step: StepBase, execute: Execute, first: _Tried) -> _Tried:
    """Acts once more, unless a look before that shows a late effect; then the first try is what counts.

    So it is when nobody knows of the first, and the second does not get to act.
    """
    run.repeat()
    try:
        await _look_before(run, step)
        return await _try(run, step, execute)
    except RepeatedNoMoreError:
        return first
    except (StepFailed, RunCancelled):
        if first.unknown is not None:
            return first
        raise
