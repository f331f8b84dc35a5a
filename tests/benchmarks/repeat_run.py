"""A REPEAT of 1,000 rounds on a phone in memory: what it keeps, what a step costs, and how often it looks."""

from __future__ import annotations

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure
from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl, RunObserver
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.result import TaskResult
from support.runs import AGENT, task_of
from support.screens import dump, node, window

FEW, MANY = 100, 1_000
MOST_GROWTH = 1.2
"""Of the peak from a hundred rounds to a thousand: what is kept has a bound, and a hundred rounds reach it."""

SHOWN = {"visible": {"text": "Next"}}
ROUND = [
    {"id": "tap", "action": "CLICK", "selector": {"text": "Next"}},
    {"id": "see", "action": "WAIT", "selector": {"text": "Title"}},
    {"id": "read", "action": "EXTRACT_TEXT", "selector": {"text": "Title"}, "outputField": "title"},
    {
        "id": "decide",
        "action": "IF",
        "condition": SHOWN,
        "then": [{"id": "check", "action": "ASSERT", "condition": SHOWN}],
    },
]
DECISIONS = 6
"""Of a round: `until`, the three targets, the IF and the ASSERT."""


@dataclass
class _Counter(RunObserver):
    """Counts looks, and forgets what the phone keeps for tests."""

    phone: MemoryPhone
    looks: int = 0
    steps: int = 0

    async def step_started(self, step_id: str, path: str) -> None:
        self.steps += 1

    async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
        pass

    async def step_finished(self, ended: Ended) -> None:
        self.looks += ended.result.looks
        self.phone.done.clear()
        self.phone.calls.clear()


def figures() -> list[Figure]:
    """Memory, time and looks."""
    _run(FEW)  # what is made once
    few, many = _peak_kb(FEW), _peak_kb(MANY)
    started = time.perf_counter()
    counter = _run(MANY)
    took = time.perf_counter() - started
    return [
        Figure(f"peak of {MANY:,} rounds / of {FEW}", many / few, "x", MOST_GROWTH, note=f"{many:,.0f} KB"),
        Figure(
            "looks for a decision in a loop", counter.looks / (DECISIONS * MANY + 1), "", 1.0, note="and one at the end"
        ),
        Figure("a step of a loop, on a phone that takes no time", took / counter.steps * 1_000, "ms"),
    ]


def _peak_kb(rounds: int) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _run(rounds)
        return (tracemalloc.get_traced_memory()[1] - before) / 1024
    finally:
        tracemalloc.stop()


def _run(rounds: int) -> _Counter:
    rows: Sequence[str] = ("Next", "Title", *(f"Row {place}" for place in range(20)))
    page = Page(
        dump(window(*(node(text, (0, 60 * at, 500, 60 * at + 50), clickable=True) for at, text in enumerate(rows))))
    )
    clock = SystemClock()
    phone = MemoryPhone({"a": page}, start="a", clock=clock)
    counter = _Counter(phone)
    until = {"visible": {"text": "The end"}}
    task = task_of({"action": "REPEAT", "maxIterations": rounds, "until": until, "steps": ROUND})
    engine = Engine(phone, clock=clock)
    result: TaskResult = asyncio.run(
        engine.run(task, execution_id="e", agent_name=AGENT, observer=counter, control=RunControl())
    )
    assert result.successful, result.message
    return counter
