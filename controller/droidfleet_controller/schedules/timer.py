"""Wakes up at given times: a port, and APScheduler behind it.

Nothing is decided here, and nothing relies on it: whoever is woken looks at the clock, and looks also without it.

The one module that imports apscheduler. Its cron parser, misfires and stores are not used: see decision 0032.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger


class Timer(ABC):
    """Contract: `wake` is called on the event loop with a key once, at its time or as soon as possible after it, on
    time to a second while the loop is free. A key has one time; setting it again moves it. All from the event loop."""

    @abstractmethod
    def start(self, wake: Callable[[str], None]) -> None:
        """Begins. What was set before counts."""

    @abstractmethod
    def set(self, key: str, at: datetime) -> None:
        """Wakes for ``key`` at ``at``, or at once when that has passed."""

    @abstractmethod
    def clear(self, key: str) -> None:
        """Does not wake for ``key``."""

    @abstractmethod
    def stop(self) -> None:
        """Ends; nothing is woken any more."""


class SystemTimer(Timer):
    """APScheduler on the running event loop, by the machine's clock."""

    def __init__(self) -> None:
        # It logs each job at INFO, which nobody reads.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._wake: Callable[[str], None] = lambda _: None

    def start(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._scheduler.start()

    def set(self, key: str, at: datetime) -> None:
        self._scheduler.add_job(
            self._due, DateTrigger(at), args=(key,), id=key, replace_existing=True, misfire_grace_time=None
        )

    def clear(self, key: str) -> None:
        if self._scheduler.get_job(key) is not None:
            self._scheduler.remove_job(key)

    def stop(self) -> None:
        self._scheduler.shutdown(wait=False)

    async def _due(self, key: str) -> None:
        # A coroutine, so that it runs on the event loop and not in a thread.
        self._wake(key)
