"""In which order several workers take the tests: the long ones first, dealt out, so that all workers end together.

Long is what is allowed more time than other tests (`pytest.mark.timeout`). The rest stays in the order of its files:
those with processes, which wait, fall to the first worker, beside those that compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TypeVar

import pytest

T = TypeVar("T")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    workers: int = getattr(config, "workerinput", {}).get("workercount", 1)
    usual = float(config.getini("timeout"))
    allowed = {item: _allowed_s(item, usual) for item in items}
    long = sorted((item for item in items if allowed[item] > usual), key=lambda item: -allowed[item])
    items[:] = dealt(long, [item for item in items if allowed[item] <= usual], workers)


def dealt(long: Sequence[T], others: Sequence[T], workers: int) -> list[T]:
    """All of them, for a scheduler that gives each worker one equal part after the other (`--dist worksteal`)."""
    order: list[T] = []
    left = iter(others)
    count = len(long) + len(others)
    for worker in range(workers):
        firsts = long[worker::workers]
        share = (count - len(order)) // (workers - worker)
        order += firsts
        order += islice(left, max(0, share - len(firsts)))
    return [*order, *left]


def _allowed_s(item: pytest.Item, usual: float) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0]) if mark is not None and mark.args else usual
