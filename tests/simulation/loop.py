"""An event loop that has no time of its own: when nothing is ready, the clock jumps to the next timer.

Everything that waits (`asyncio.sleep`, `asyncio.timeout`, the clock that the product is given) waits on it, so an hour
of a fleet takes as long as what happens in it. There are no threads and no files: what happens, and in which order,
follows from the program alone.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import Context
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, TypeVarTuple, Unpack

from droidfleet_shared.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
"""When every simulation begins: an instant like any other."""

RESOLUTION_S = 1e-9


MAX_TURNS = 200_000
"""Turns of the loop within one instant; more mean that something goes round for ever."""


class StuckError(Exception):
    """Time does not go on: everything waits for what will never happen, or something never waits."""


class VirtualExecutor(ThreadPoolExecutor):
    """Stands where the product has a thread: work is done on the loop, one after the other, each at its virtual time.

    ``takes`` is asked for the seconds before a work begins and from there to its answer. Once `dead`, as with its
    process, nothing is done and nothing is answered any more.
    """

    def __init__(self, takes: Callable[[], tuple[float, float]]) -> None:
        super().__init__(1)
        self._takes = takes
        self._free_at = 0.0
        self.dead = False

    def begin(self, loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> asyncio.Future[T]:
        """Queues ``work``; the future has its result."""
        answer: asyncio.Future[T] = loop.create_future()
        before_s, then_s = self._takes()
        begins = max(self._free_at, loop.time()) + before_s
        self._free_at = begins + then_s

        def do() -> None:
            if self.dead:
                return
            try:
                result = work()
            except Exception as error:
                loop.call_later(then_s, self._fail, answer, error)
            else:
                loop.call_later(then_s, self._answer, answer, result)

        loop.call_at(begins, do)
        return answer

    def _answer(self, answer: asyncio.Future[T], result: T) -> None:
        if not self.dead:
            _answer(answer, result)

    def _fail(self, answer: asyncio.Future[T], error: Exception) -> None:
        if not self.dead:
            _fail(answer, error)


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. `failures`: what nobody caught, as the loop was told of it.

    Timers of one instant go off in the order in which they were set: first come, first served.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._turns = 0
        self.failures: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _loop, context: self.failures.append(context))

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        """One turn, in place of the base class's: what is ready is done; if nothing is, time jumps."""
        ready: deque[asyncio.Handle] = getattr(self, "_ready")  # noqa: B009 - the base class does not declare it
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if ready:
            self._turns += 1
            if self._turns > MAX_TURNS:
                raise StuckError(f"{MAX_TURNS} turns within one instant")
        elif timers:
            self._turns = 0
            self._now = max(self._now, timers[0][0])
        else:
            raise StuckError("everything waits, and there is no timer")
        due = self._now + RESOLUTION_S
        while timers and timers[0][0] < due:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _process_events(self, _ready: list[object]) -> None:
        """There is no input and output."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a system call."""

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]  # narrower: nothing here is a concurrent future
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        if isinstance(executor, VirtualExecutor):
            return executor.begin(self, lambda: func(*args))
        # A thread that nobody else waits for: its work is done at once, its answer comes in its turn.
        answer: asyncio.Future[T] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self.call_soon(_fail, answer, error)
        else:
            self.call_soon(_answer, answer, result)
        return answer


def _answer(answer: asyncio.Future[T], result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[T], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


class LoopClock(Clock):
    """The product's clock on the virtual loop. ``ahead_s``: how much this host's wall clock is off."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, ahead_s: float = 0.0) -> None:
        self._loop = loop
        self._start = START + timedelta(seconds=ahead_s)

    def monotonic(self) -> float:
        return self._loop.time()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
