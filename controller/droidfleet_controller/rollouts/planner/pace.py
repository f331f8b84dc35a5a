"""How fast a rollout may begin executions: its rate and its window."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Protocol

from droidfleet_controller.rollouts.spec import Rate, RolloutSpec, Window
from droidfleet_controller.schedules import windows

RATE_SPAN = timedelta(seconds=60)
"""A rate is a number of starts in any span of this length."""


class OpeningTimes(Protocol):
    """When executions may begin."""

    def is_open(self, now: datetime) -> bool:
        """Whether they may now."""

    def next_opening(self, now: datetime) -> datetime | None:
        """When they may the next time; None: never again."""


class WindowTimes:
    """The opening times that a rollout's window states."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def is_open(self, now: datetime) -> bool:
        """See `OpeningTimes`."""
        return windows.is_open(self._window, now)

    def next_opening(self, now: datetime) -> datetime | None:
        """See `OpeningTimes`."""
        return windows.next_opening(self._window, now)


class GrowingRate:
    """The rate after so many successes. Whole numbers: a power of the factor as it was written, rounded down."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        factor = Fraction(str(rate.factor))
        self._up, self._down = factor.numerator, factor.denominator
        self._raised = 0
        self._value = rate.base, 1

    def after(self, successes: int) -> int:
        """Starts in 60 seconds. ``successes`` never becomes less."""
        raises = successes // self._rate.raise_after if self._up > self._down else 0
        over, under = self._value
        while self._raised < raises and over < self._rate.limit * under:
            over, under = over * self._up, under * self._down
            self._raised += 1
        self._value = over, under
        return min(self._rate.limit, over // under)


class Pace:
    """The starts of the last minute beside what the rate allows. Starts are counted by whole seconds, each at the end
    of its second, so that there are never more than sixty-one numbers to keep."""

    def __init__(self, spec: RolloutSpec, starts: Iterable[tuple[datetime, int]]) -> None:
        rate = spec.rate_per_minute
        self._rate = GrowingRate(Rate(base=rate) if isinstance(rate, int) else rate) if rate is not None else None
        self._starts = deque(starts)
        self._counted = sum(count for _, count in self._starts)

    def room(self, now: datetime, successes: int) -> int | None:
        """How many may begin now; None: as many as there are."""
        if self._rate is None:
            return None
        self._forget(now)
        return max(0, self._rate.after(successes) - self._counted)

    def free_at(self) -> datetime:
        """When there is room again, after `room` said that there is none."""
        return self._starts[0][0] + RATE_SPAN

    def note(self, now: datetime) -> None:
        """Notes that one begins."""
        if self._rate is None:
            return
        at = second_after(now)
        already = self._starts.pop()[1] if self._starts and self._starts[-1][0] >= at else 0
        self._starts.append((at, already + 1))
        self._counted += 1

    @property
    def starts(self) -> tuple[tuple[datetime, int], ...]:
        """The starts to remember."""
        return tuple(self._starts)

    def _forget(self, now: datetime) -> None:
        while self._starts and self._starts[0][0] + RATE_SPAN <= now:
            self._counted -= self._starts.popleft()[1]


def second_after(instant: datetime) -> datetime:
    """The whole second at or after an instant."""
    whole = instant.replace(microsecond=0)
    return whole if whole == instant else whole + timedelta(seconds=1)
