"""The tasks of one phone: owned by a task group, ended together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import structlog

log = structlog.get_logger(__name__)

Work = Coroutine[object, object, None]
Spawn = Callable[[Work, str], "asyncio.Task[None]"]
"""Starts a task under a name. The phone owns it: it ends at the latest with the phone."""


class PhoneTasks:
    """Starts tasks within ``group``. One that fails is logged and takes nothing else down."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Work, name: str) -> asyncio.Task[None]:
        """Starts ``work``. Do not await the task; cancel it if you like."""
        task = self._group.create_task(_logged(work, name), name=name)
        self._tasks.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            work.close()  # does nothing, unless the task was cancelled before its first step

        task.add_done_callback(ended)
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    def cancel_all(self) -> None:
        """Asks every task to end."""
        for task in list(self._tasks):
            task.cancel()


async def _logged(work: Work, name: str) -> None:
    try:
        await work
    except Exception:
        log.exception("phone_task_failed", task=name)
