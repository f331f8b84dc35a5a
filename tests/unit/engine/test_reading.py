"""WAIT and EXTRACT_TEXT: they read, and touch nothing."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import ACTIONS, MemoryPhone, Page
from droidfleet_agent.engine.outputs import MAX_OUTPUT
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.screen.node import Node
from support.runs import run_step, run_steps
from support.screens import dump, field, node, window
from support.shop import shop


def phone_with(clock: VirtualClock, *nodes: Node) -> MemoryPhone:
    return MemoryPhone({"p": Page(dump(window(*nodes)))}, start="p", clock=clock)


def extract(**more: object) -> dict[str, object]:
    return {"action": "EXTRACT_TEXT", "selector": {"resourceId": "price"}, "outputField": "price", **more}


async def test_a_wait_sees_a_disabled_node_too(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "WAIT", "selector": {"text": "Sold out"}})
    assert (result.successful, result.detail, result.dispatched) == (True, Detail.SEEN, 0)
    assert not ACTIONS & set(phone.calls)


async def test_a_wait_needs_exactly_one(clock: VirtualClock) -> None:
    result = await run_step(shop(clock), clock, {"action": "WAIT", "selector": {"text": "Delete"}})
    assert result.code is StepCode.TARGET_AMBIGUOUS


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (node("12 €", (0, 0, 9, 9), description="price", resource_id="price"), "12 €"),
        (node("", (0, 0, 9, 9), description="twelve", resource_id="price"), "twelve"),
        (node(" 12\n€ ", (0, 0, 9, 9), resource_id="price"), " 12\n€ "),
        (field((0, 0, 9, 9), hint="Price", description="field", resource_id="price"), "field"),
        (node("", (0, 0, 9, 9), resource_id="price"), ""),
    ],
)
async def test_the_text_else_the_description_becomes_the_output(clock: VirtualClock, shown: Node, text: str) -> None:
    task = await run_steps(phone_with(clock, shown), clock, extract())
    assert task.outputs == {"price": text}
    assert task.steps[0].detail is Detail.EXTRACTED


async def test_a_later_value_replaces_the_former(clock: VirtualClock) -> None:
    phone = phone_with(clock, node("1", (0, 0, 9, 9), resource_id="price"), node("2", (0, 9, 9, 19)))
    task = await run_steps(phone, clock, extract(), extract(selector={"text": "2"}))
    assert task.outputs == {"price": "2"}


async def test_append_makes_a_list(clock: VirtualClock) -> None:
    phone = phone_with(clock, node("1", (0, 0, 9, 9), resource_id="price"))
    assert (await run_steps(phone, clock, extract(append=True))).outputs == {"price": ["1"]}
    task = await run_steps(phone, clock, extract(), extract(append=True), extract(append=True))
    assert task.outputs == {"price": ["1", "1", "1"]}


async def test_an_endless_text_is_cut(clock: VirtualClock) -> None:
    phone = phone_with(clock, node("9" * (MAX_OUTPUT + 9), (0, 0, 9, 9), resource_id="price"))
    output = (await run_steps(phone, clock, extract())).outputs["price"]
    assert len(output) == MAX_OUTPUT


async def test_a_text_that_is_missing_leaves_no_output(clock: VirtualClock) -> None:
    task = await run_steps(phone_with(clock), clock, extract(optional=True))
    assert task.successful
    assert task.outputs == {}
