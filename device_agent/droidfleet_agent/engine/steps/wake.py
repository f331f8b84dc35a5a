"""WAKE: turns the display on and removes a lock screen that has no secret."""

from __future__ import annotations

from collections.abc import Callable

from droidfleet_agent.driver.port import PhoneUnavailableError, ScreenState
from droidfleet_agent.engine.ending import StepDone, StepFailed
from droidfleet_agent.engine.messages import sentence
from droidfleet_agent.engine.step import RETRY_PAUSE_S, StepRun
from droidfleet_agent.engine.wait import until_sent, wait_until
from droidfleet_shared.protocol.codes import Detail, StepCode


async def wake(run: StepRun) -> StepDone:
    """Does only what is missing, and sees it done. A lock screen with a secret is never touched."""
    state = await _state(run)
    if not state.on:
        await until_sent(run, run.wake)
        state = await _until(run, lambda now: now.on, "The display was woken and stays dark.")
    if state.locked:
        if state.secure:
            raise StepFailed(
                StepCode.ACTION_FAILED,
                "The lock screen asks for a secret. Unlock the phone by hand, or set its lock screen to none or swipe.",
            )
        await until_sent(run, run.dismiss_lock)
        await _until(run, lambda now: not now.locked, "The lock screen was dismissed and stays.")
    if run.step.package_name is not None:
        await wait_until(run, lambda _matcher: True)  # before it was awake there was nothing to see
    return StepDone(Detail.VERIFIED)


async def _until(run: StepRun, reached: Callable[[ScreenState], bool], otherwise: str) -> ScreenState:
    while not reached(state := await _state(run)):
        await run.pause(RETRY_PAUSE_S)
        if run.deadline.passed:
            raise StepFailed(StepCode.ACTION_FAILED, f"After {run.limit_ms} ms: {otherwise}", out_of_time=True)
    return state


async def _state(run: StepRun) -> ScreenState:
    while True:
        try:
            return await run.screen_state()
        except PhoneUnavailableError as error:
            await run.pause(RETRY_PAUSE_S)
            if run.deadline.passed:
                raise StepFailed(
                    StepCode.DEVICE_UNAVAILABLE,
                    f"After {run.limit_ms} ms the phone had not answered: {sentence(error.message)}",
                    out_of_time=True,
                ) from error
