"""BACK: presses the Back key once. Also what KEY does with other keys."""

from __future__ import annotations

from droidfleet_agent.driver.port import Key
from droidfleet_agent.engine.ending import StepDone
from droidfleet_agent.engine.step import StepRun
from droidfleet_agent.engine.wait import wait_until
from droidfleet_shared.protocol.codes import Detail


async def back(run: StepRun) -> StepDone:
    """See `press_once`."""
    return await press_once(run, Key.BACK)


async def press_once(run: StepRun, key: Key) -> StepDone:
    """Waits for the step's package and activity when it names them, else acts without a look.

    A press that did not happen is followed by a look in any case: looking is what repairs the way to the phone.
    """
    look = run.step.package_name is not None
    while True:
        if look:
            await wait_until(run, lambda _matcher: True)
        if await run.press(key):
            return StepDone(Detail.DISPATCHED_UNVERIFIED)
        look = True
