"""What the practice planner drafts names nothing that was not seen, does what was asked, and says what it left out.

Each run explores a random app with the real loop, tools and check, then runs the draft's task once with the real
engine. A failing run is one number: ``judged(seed)`` makes the same again.
"""

from __future__ import annotations

import asyncio

import pytest

from support.practice_judging import judged, summary

RUNS = 224
BATCH = 28


async def _batch(first: int) -> None:
    runs = [await judged(seed) for seed in range(first, first + BATCH)]
    print(summary(runs))
    assert [each for run in runs for each in run.wrong] == []
    assert [each for run in runs for each in run.unproved] == []


@pytest.mark.parametrize("first", range(0, RUNS, BATCH))
def test_each_practice_run_does_what_was_asked_or_says_what_it_does_not(first: int) -> None:
    asyncio.run(_batch(first))
