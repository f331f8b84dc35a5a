"""F13: the first tap after a navigation is swallowed, on a phone over the real adb server."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from integration.field_cases.conftest import Handset, MakeHandset

pytestmark = pytest.mark.integration

SHOP = """
format: 1
name: swallowed
start: com.example.swallow
apps:
  - package: com.example.swallow
    label: Swallow
    home: list
    variables: {ordered: 0}
    screens:
      list:
        activity: .ListActivity
        root:
          type: column
          height: fill
          children:
            - {type: button, id: next, text: Next, on_click: [{effect: next_pressed}, {go: order}]}
      order:
        activity: .OrderActivity
        root:
          type: column
          height: fill
          children:
            - {type: button, id: order, text: Order, on_click: [{effect: ordered}, {add: {ordered: 1}}]}
            - {type: text, text: "Ordered {{ordered}} times"}
"""
SWALLOWS = Fault(on="first_tap", do=FaultKind.SWALLOW, times=None)


@pytest.fixture(scope="session")
def form() -> Scenario:
    """In place of the form: a button that stays after its tap, so that a second tap has a second effect."""
    return parse_scenario(SHOP, source="swallowed")


async def order(one: Handset, *, redo: bool, after: str) -> TaskResult:
    """Goes to the next page and taps at once."""
    return await one.run(
        {
            "action": "CLICK",
            "selector": {"text": "Next"},
            "after": {"condition": {"activity": ".OrderActivity"}, "timeoutMs": 3000},
            "redo": True,
        },
        {
            "action": "CLICK",
            "selector": {"text": "Order"},
            "after": {"condition": {"visible": {"textContains": after}}, "timeoutMs": 3000},
            "redo": redo,
        },
    )


async def test_f13_one_more_tap_where_the_first_was_swallowed(handset: MakeHandset) -> None:
    one = await handset(faults=[SWALLOWS])
    task = await order(one, redo=True, after="Ordered 1")
    assert task.successful, task.message
    assert [(step.code, step.detail, step.dispatched) for step in task.steps] == [
        (StepCode.OK, Detail.VERIFIED, 2),
        (StepCode.OK, Detail.VERIFIED, 2),
    ]
    assert one.seen("next_pressed", "ordered") == ["next_pressed", "ordered"]


@pytest.mark.parametrize("after", ["Ordered 1", "Thank you"], ids=["seen", "not seen"])
async def test_f13_exactly_one_effect_where_the_first_tap_did_work(handset: MakeHandset, after: str) -> None:
    one = await handset()
    task = await order(one, redo=True, after=after)
    assert task.steps[-1].code is (StepCode.OK if after == "Ordered 1" else StepCode.AFTER_NOT_MET)
    assert one.seen("next_pressed", "ordered") == ["next_pressed", "ordered"]


async def test_f13_without_redo_a_swallowed_tap_is_a_failure(handset: MakeHandset) -> None:
    one = await handset(faults=[SWALLOWS])
    task = await order(one, redo=False, after="Ordered 1")
    assert (task.code, task.failed_step_id) == (StepCode.AFTER_NOT_MET, "s2")
    assert one.seen("ordered") == []
