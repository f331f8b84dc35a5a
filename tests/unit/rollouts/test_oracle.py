"""The planner agrees with the slow oracle. A failing case is a number: `Case(number).run()` is the same again."""

from __future__ import annotations

import pytest

from oracle.cases import Case, MismatchError

CASES = 20_000
"""About a minute on one core; `make oracle` runs a million."""

PARTS = 20
"""So that several workers share them."""


@pytest.mark.timeout(300)  # on a busy machine
@pytest.mark.parametrize("part", range(PARTS))
def test_the_planner_decides_as_the_oracle_does(part: int) -> None:
    for number in range(part, CASES, PARTS):
        Case(number).run()


def test_a_difference_is_told_with_its_history() -> None:
    case = Case(7)
    case.oracle.version += 1
    with pytest.raises(MismatchError, match=r"(?s)case 7\n.*RolloutSpec.*decide.*the planner says"):
        case.run()
