"""Outputs that grow: lists with a bound."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.engine.ending import StepFailed
from droidfleet_agent.engine.outputs import MAX_LIST, appended
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import OutputValue
from support.runs import run_steps
from support.screens import dump, node, window


@pytest.mark.parametrize(
    ("before", "expected"),
    [({}, ["c", None]), ({"x": "a"}, ["a", "c", None]), ({"x": ["a", None]}, ["a", None, "c", None])],
)
def test_values_are_added_to_what_was_read_before(before: dict[str, OutputValue], expected: list[str | None]) -> None:
    assert appended(before, "x", ["c", None]) == expected


def test_a_list_that_would_be_too_long_stays_as_it_was() -> None:
    outputs: dict[str, OutputValue] = {"x": ["a"] * MAX_LIST}
    with pytest.raises(StepFailed) as failed:
        appended(outputs, "x", ["b"])
    assert failed.value.code is StepCode.ACTION_FAILED
    assert outputs == {"x": ["a"] * MAX_LIST}


async def test_lists_that_are_read_together_grow_together_or_not_at_all() -> None:
    clock = VirtualClock()
    rows = [node(f"row {place}", (0, 100 * place, 900, 100 * place + 90), resource_id="row") for place in range(10)]
    phone = MemoryPhone({"rows": Page(dump(window(*rows)))}, start="rows", clock=clock)
    long = {"id": "long", "action": "EXTRACT", "all": True, "append": True, "selector": {"resourceId": "row"}}
    filled = {
        "action": "REPEAT",
        "maxIterations": MAX_LIST // 10,
        "steps": [{**long, "fields": [{"outputField": "b"}]}],
    }
    both = {**long, "id": "both", "onFailure": "CONTINUE", "fields": [{"outputField": "a"}, {"outputField": "b"}]}
    result = await run_steps(phone, clock, filled, both)
    assert result.steps[-1].code is StepCode.ACTION_FAILED
    assert "a" not in result.outputs
