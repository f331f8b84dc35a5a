"""One measured figure, and how to take a fair one."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that somebody may hold us to.

    ``value`` is the median or the ratio of medians; ``unit`` is ``x`` for ratios; ``target`` is the aim and ``better``
    says which side of it is good. Without a target the figure is only stated.
    """

    name: str
    value: float
    unit: str
    target: float | None = None
    better: Literal["lower", "higher"] = "lower"
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.better == "lower" else self.value >= self.target


def interleaved(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int, warmup: int = 3
) -> dict[str, Sequence[float]]:
    """Seconds of each call, the contenders taking turns so that a drifting machine treats them alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(warmup + rounds):
        for name, call in contenders.items():
            start = time.perf_counter()
            call()
            if turn >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: tuple(values) for name, values in times.items()}


def median_ms(seconds: Sequence[float]) -> float:
    """The median of seconds, in milliseconds."""
    return statistics.median(seconds) * 1_000
