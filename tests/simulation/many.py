"""Many worlds, one after the other in each of several processes."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache

from simulation.world import Verdict, live_through

COLLECT_EVERY = 8
"""Worlds between two collections of rubbish; one leaves some megabytes."""

CHUNK = 4
"""Worlds that a process is given at a time."""


@contextmanager
def verdicts(seeds: range, jobs: int) -> Iterator[Iterator[Verdict]]:
    """The verdicts on these seeds, in their order. What is not looked at before the block ends is left out."""
    if jobs == 1:
        yield map(_live_through, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool.map(_live_through, seeds, chunksize=CHUNK)
        finally:
            pool.shutdown(cancel_futures=True)


@cache
def _freeze_once() -> None:
    """The programs themselves are no rubbish."""
    gc.freeze()


def _live_through(seed: int) -> Verdict:
    # A world is a web of references that ends as a whole: looking for rubbish while it lives costs a third of its time.
    gc.disable()
    _freeze_once()
    verdict = live_through(seed)
    if seed % COLLECT_EVERY == 0:
        gc.collect()
    return verdict
