"""Tells those who watch, within this process. Nobody who reads slowly holds anybody up or fills memory.

A watcher of executions finds the newest version of each one that changed: versions in between are skipped, so its
memory is bounded by what it watches. A watcher of events is only woken, and reads from the database at its own pace.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from droidfleet_controller.dispatch.execution import Execution
from droidfleet_shared.errors import ExhaustedError

MAX_WATCHERS = 1_000
"""Open watches at a time."""


class ExecutionWatch:
    """One watcher's view: the newest version of each watched execution that it has not taken yet."""

    def __init__(self, execution_ids: Iterable[str]) -> None:
        self.execution_ids = frozenset(execution_ids)
        self._changed: dict[str, Execution] = {}
        self._woken = asyncio.Event()

    def offer(self, execution: Execution) -> None:
        """Notes a new version."""
        self._changed[execution.execution_id] = execution
        self._woken.set()

    async def take(self) -> list[Execution]:
        """Waits for changes and takes them all."""
        await self._woken.wait()
        self._woken.clear()
        changed, self._changed = self._changed, {}
        return list(changed.values())


class Broadcast:
    """Where committed changes are announced."""

    def __init__(self) -> None:
        self._by_execution: dict[str, set[ExecutionWatch]] = {}
        self._watches = 0
        self._stored: set[asyncio.Event] = set()
        self._told: list[Callable[[Collection[Execution]], None]] = []

    def on_executions(self, told: Callable[[Collection[Execution]], None]) -> None:
        """Calls ``told`` with committed changes of executions; it must not wait."""
        self._told.append(told)

    def executions(self, changed: Collection[Execution]) -> None:
        """Announces committed changes of executions."""
        for execution in changed:
            for watch in self._by_execution.get(execution.execution_id, ()):
                watch.offer(execution)
        for told in self._told:
            told(changed)

    def events(self) -> None:
        """Announces that events were committed."""
        for woken in self._stored:
            woken.set()

    @contextmanager
    def watching(self, execution_ids: Iterable[str]) -> Iterator[ExecutionWatch]:
        """A watch of these executions, from now on.

        Raises:
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        self._enter()
        watch = ExecutionWatch(execution_ids)
        for execution_id in watch.execution_ids:
            self._by_execution.setdefault(execution_id, set()).add(watch)
        try:
            yield watch
        finally:
            self._watches -= 1
            for execution_id in watch.execution_ids:
                watchers = self._by_execution[execution_id]
                watchers.discard(watch)
                if not watchers:
                    del self._by_execution[execution_id]

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever fleet events were committed; the listener clears it before it reads.

        Raises:
            ExhaustedError: ``TOO_MANY_WATCHES``.
        """
        self._enter()
        woken = asyncio.Event()
        self._stored.add(woken)
        try:
            yield woken
        finally:
            self._watches -= 1
            self._stored.discard(woken)

    def _enter(self) -> None:
        if self._watches >= MAX_WATCHERS:
            raise ExhaustedError(
                "TOO_MANY_WATCHES",
                f"{MAX_WATCHERS} watches are open.",
                hint="Close some, or watch a whole run with one.",
            )
        self._watches += 1
