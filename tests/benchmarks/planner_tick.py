"""One decision of the planner, by how much changed and by how large the fleet is.

Each tick takes in that some phones succeeded and decides what follows: as many others begin. Its cost must follow what
changed; so a tick of the same changes costs about the same in a rollout over a hundred phones and over ten thousand.
"""

from __future__ import annotations

import statistics
import time

from benchmarks.figures import Figure, median_ms
from unit.rollouts.planning import Planning

FLEETS = (100, 1_000, 10_000)
CHANGES = (1, 10, 50)
TICKS = 40

MOST_GROWTH = 3.0
"""Of the largest fleet's tick over the smallest one's, which is a hundred times as small: noise, not growth."""


def figures() -> list[Figure]:
    """Milliseconds of a tick, and how they grow."""
    found: list[Figure] = []
    for changes in CHANGES:
        seconds = {phones: _ticks(phones, changes) for phones in FLEETS}
        smallest, *_, largest = (statistics.median(seconds[phones]) for phones in FLEETS)
        by_fleet = ", ".join(f"{phones:,} phones {median_ms(seconds[phones]):.3f} ms" for phones in FLEETS)
        found.append(
            Figure(
                f"planner tick, {changes} changed, {FLEETS[-1]:,} phones over {FLEETS[0]}",
                largest / smallest,
                "x",
                MOST_GROWTH,
                note=by_fleet,
            )
        )
    return found


def _ticks(phones: int, changes: int) -> list[float]:
    """Seconds of each tick, in rollouts made anew as often as one runs out of phones."""
    seconds: list[float] = []
    while len(seconds) < TICKS:
        planning = Planning(phones, maxConcurrent=changes)
        running = planning.started
        done = 0
        while len(running) - done == changes and len(running) < phones and len(seconds) < TICKS:
            ending = running[done : done + changes]
            done += changes
            start = time.perf_counter()
            planning.end(*ending)
            seconds.append(time.perf_counter() - start)
    return seconds
