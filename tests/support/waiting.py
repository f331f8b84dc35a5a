"""Waiting on a condition with a deadline: what tests do instead of sleeping."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.01


async def until(condition: Callable[[], object], *, within_s: float = 30.0, what: str = "") -> None:
    """Returns once ``condition()`` is true; fails the test when it is not within ``within_s`` seconds."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:g} s: {what or condition}")
        await asyncio.sleep(POLL_S)
