"""The long tests begin first, and every test is run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.order import dealt


def test_each_worker_begins_with_its_part_of_the_long_ones() -> None:
    assert dealt("ABC", "tuvwxyz", 2) == [*"ACtuv", *"Bwxyz"]


@given(st.integers(0, 20), st.integers(0, 40), st.integers(1, 4))
def test_none_is_left_out_or_run_twice(long: int, others: int, workers: int) -> None:
    assert sorted(dealt(range(long), range(long, long + others), workers)) == list(range(long + others))
