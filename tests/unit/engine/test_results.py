"""What a run keeps of its steps' results."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from droidfleet_agent.engine.results import FAILURES, FIRST, LAST, Results
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import StepResult


def result(number: int, *, failed: bool = False) -> StepResult:
    return StepResult(
        id=f"s{number}", action="BACK", path="/steps/0", iteration=number, successful=not failed,
        code=StepCode.ACTION_FAILED if failed else StepCode.OK, started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ms=0, looks=0, dispatched=0,
    )  # fmt: skip


def kept(count: int, *, failures: frozenset[int] = frozenset()) -> tuple[list[int], int]:
    results = Results()
    for number in range(count):
        results.add(result(number, failed=number in failures))
    return [each.iteration for each in results.kept()], results.omitted


@pytest.mark.parametrize("count", [0, 1, FIRST, FIRST + 1, FIRST + LAST])
def test_what_fits_is_kept_whole(count: int) -> None:
    assert kept(count) == (list(range(count)), 0)


def test_of_a_long_run_the_first_and_the_last_are_kept() -> None:
    numbers, omitted = kept(1000)
    assert numbers == [*range(FIRST), *range(1000 - LAST, 1000)]
    assert omitted == 1000 - FIRST - LAST


def test_failures_between_are_kept_in_order() -> None:
    failures = frozenset({300, 301, 500})
    numbers, omitted = kept(1000, failures=failures)
    assert numbers == [*range(FIRST), 300, 301, 500, *range(1000 - LAST, 1000)]
    assert len(numbers) + omitted == 1000


def test_so_many_failures_between_are_kept_and_no_more() -> None:
    numbers, omitted = kept(1000, failures=frozenset(range(1000)))
    assert numbers[FIRST : FIRST + FAILURES] == list(range(FIRST, FIRST + FAILURES))
    assert (len(numbers), len(numbers) + omitted) == (FIRST + FAILURES + LAST, 1000)
