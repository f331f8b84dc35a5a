"""Practice runs: random apps explored by the practice planner, and each draft's task run once."""

from __future__ import annotations

import time

from benchmarks.figures import Figure, median_ms
from support.practice_judging import judged

RUNS = 300
LEAST_RUNS = 200
"""By the issue."""

FIRST = 10_000
"""The seeds of the tests are others."""


async def figures() -> list[Figure]:
    """What came of them. Real time: of a whole run, exploring and running, on a phone that takes none."""
    runs, times = [], []
    for seed in range(FIRST, FIRST + RUNS):
        start = time.perf_counter()
        runs.append(await judged(seed))
        times.append(time.perf_counter() - start)
    drafts = [run for run in runs if run.drafted]
    unproved = sum(len(run.unproved) for run in drafts)
    succeeded = sum(run.succeeded for run in drafts) / len(drafts)
    gaps = sum(bool(run.gaps) for run in drafts)
    return [
        Figure("practice: drafts", len(drafts), "", LEAST_RUNS, "higher", note=f"of {RUNS} runs, {gaps} tell of gaps"),
        Figure("practice: selectors without evidence", unproved, "", 0),
        Figure("practice: drafts that do not do what they say", sum(bool(run.wrong) for run in runs), "", 0),
        Figure("practice: drafts whose task succeeds", 100 * succeeded, "%", 100, "higher"),
        Figure("practice: a run, the phone aside", median_ms(times), "ms"),
    ]
