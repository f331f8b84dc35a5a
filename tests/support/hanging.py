"""Calls and steps that a fault makes hang. They wait for all of their time, so that is short; and on a busy machine it
may pass before the call is made, which then has more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from droidfleet_agent.driver.port import OutcomeUnknownError, PhoneUnavailableError
from droidfleet_shared.clock import Deadline, SystemClock

HANGING_S = (0.4, 4.0, 16.0)
"""What is tried, one after the other, until the call is made."""

LATE_MS = 4_000
"""How much later than its deadline a call or a step may end on a machine that does other things; a wait without a
deadline takes a minute and more."""
LATE_S = LATE_MS / 1_000


async def becomes_unknown_in_time(call: Callable[[Deadline], Awaitable[object]]) -> None:
    """Makes an action that hangs, and sees that it ends at its deadline and is unknown."""
    clock = SystemClock()
    for seconds in HANGING_S:
        began = clock.monotonic()
        try:
            await call(clock.deadline(seconds))
        except PhoneUnavailableError:
            continue  # the time was up before it was sent
        except OutcomeUnknownError:
            assert clock.monotonic() - began < seconds + LATE_S
            return
        raise AssertionError("it was answered, so nothing was tried")
    raise AssertionError("it was never sent, so nothing was tried")
