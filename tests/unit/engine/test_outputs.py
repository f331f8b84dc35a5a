"""Outputs that grow: lists with a bound."""

from __future__ import annotations

import pytest

from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.outputs import MAX_LIST, append
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import OutputValue


@pytest.mark.parametrize(
    ("before", "expected"),
    [({}, ["c", None]), ({"x": "a"}, ["a", "c", None]), ({"x": ["a", None]}, ["a", None, "c", None])],
)
def test_values_are_added_to_what_was_read_before(before: dict[str, OutputValue], expected: list[str | None]) -> None:
    append(before, "x", ["c", None])
    assert before["x"] == expected


def test_a_list_that_would_be_too_long_stays_as_it_was() -> None:
    outputs: dict[str, OutputValue] = {"x": ["a"] * MAX_LIST}
    with pytest.raises(StepFailed) as failed:
        append(outputs, "x", ["b"])
    assert failed.value.code is StepCode.ACTION_FAILED
    assert outputs == {"x": ["a"] * MAX_LIST}
