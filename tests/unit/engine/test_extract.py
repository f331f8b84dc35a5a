"""EXTRACT: values of one node, or of each row, all read on one look."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import ACTIONS, MemoryPhone, Page
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.screen.node import Node
from support.runs import run_step, run_steps
from support.screens import WIDTH, dump, field, node, window

TITLE = {"outputField": "title", "selector": {"resourceId": "title"}}
PRICE = {"outputField": "price", "selector": {"resourceId": "price"}}


def row(place: int, title: str, price: str | None, *, enabled: bool = True) -> Node:
    top = 100 + 200 * place
    texts = [node(title, (40, top, 500, top + 100), resource_id="title")]
    if price is not None:
        texts.append(node(price, (600, top, 900, top + 100), resource_id="price"))
    return node("", (0, top, WIDTH, top + 150), *texts, resource_id="row", class_name="Row", enabled=enabled)


def phone_with(clock: VirtualClock, *nodes: Node) -> MemoryPhone:
    return MemoryPhone({"p": Page(dump(window(*nodes)))}, start="p", clock=clock)


def extract(**more: object) -> dict[str, object]:
    return {"action": "EXTRACT", "selector": {"resourceId": "row"}, "fields": [TITLE, PRICE], **more}


async def test_several_values_of_one_node_are_read_on_one_look(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(0, "Tea", "3.50"))
    task = await run_steps(phone, clock, extract())
    assert task.outputs == {"title": "Tea", "price": "3.50"}
    assert (task.steps[0].detail, task.steps[0].looks, task.steps[0].dispatched) == (Detail.EXTRACTED, 1, 0)
    assert not ACTIONS & set(phone.calls)


async def test_one_node_is_waited_for_until_every_field_is_there(clock: VirtualClock) -> None:
    class Loads(MemoryPhone):
        async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
            shown = await super().dump(deadline=deadline, active_only=active_only)
            self.show("loaded")
            return shown

    pages = {
        "loading": Page(dump(window(row(0, "Tea", None)))),
        "loaded": Page(dump(window(row(0, "Green tea", "3.50")))),
    }
    task = await run_steps(Loads(pages, start="loading", clock=clock), clock, extract())
    assert task.outputs == {"title": "Green tea", "price": "3.50"}


async def test_a_field_that_never_comes_is_not_found_and_writes_nothing(clock: VirtualClock) -> None:
    task = await run_steps(phone_with(clock, row(0, "Tea", None)), clock, extract(timeoutMs=1000))
    assert task.code is StepCode.TARGET_NOT_FOUND
    assert "inside the step's node" in task.message
    assert task.outputs == {}


async def test_a_field_that_is_there_twice_is_ambiguous(clock: VirtualClock) -> None:
    twice = node(
        "",
        (0, 100, WIDTH, 300),
        node("3.50", (40, 100, 300, 200), resource_id="price"),
        node("2.90", (40, 200, 300, 300), resource_id="price"),
        resource_id="row",
    )
    result = await run_step(phone_with(clock, twice), clock, extract(fields=[PRICE], optional=True))
    assert result.code is StepCode.TARGET_AMBIGUOUS
    assert [candidate.text for candidate in result.candidates] == ["3.50", "2.90"]


async def test_a_field_is_looked_for_inside_its_node_alone(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(0, "Tea", "3.50"), row(1, "Coffee", "4.20"))
    step = extract(selector={"resourceId": "row", "has": {"text": "Coffee"}})
    assert (await run_steps(phone, clock, step)).outputs == {"title": "Coffee", "price": "4.20"}


async def test_of_two_rows_neither_is_guessed(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(0, "Tea", "3.50"), row(1, "Coffee", "4.20"))
    assert (await run_step(phone, clock, extract())).code is StepCode.TARGET_AMBIGUOUS


async def test_rows_are_columns_of_equal_length_in_reading_order(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(2, "Cocoa", "5.00"), row(0, "Tea", "3.50"), row(1, "Coffee", None))
    task = await run_steps(phone, clock, extract(all=True))
    assert task.outputs == {"title": ["Tea", "Coffee", "Cocoa"], "price": ["3.50", None, "5.00"]}
    assert task.steps[0].looks == 1


async def test_no_more_rows_than_asked_for_are_read(clock: VirtualClock) -> None:
    phone = phone_with(clock, *(row(place, f"Tea {place}", "1") for place in range(5)))
    task = await run_steps(phone, clock, extract(all=True, maxItems=2))
    assert task.outputs["title"] == ["Tea 0", "Tea 1"]


async def test_rows_that_never_come_are_not_found_and_write_nothing(clock: VirtualClock) -> None:
    task = await run_steps(phone_with(clock, node("Empty", (0, 0, 10, 10))), clock, extract(all=True, timeoutMs=1000))
    assert task.code is StepCode.TARGET_NOT_FOUND
    assert task.outputs == {}
    assert clock.monotonic() == pytest.approx(1.0)


async def test_a_field_that_a_row_holds_twice_is_ambiguous_among_rows_too(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(0, "Tea", "3.50"))
    step = extract(all=True, fields=[{"outputField": "both", "selector": {"className": "android.widget.TextView"}}])
    assert (await run_step(phone, clock, step)).code is StepCode.TARGET_AMBIGUOUS


async def test_rows_are_added_to_what_was_read_before(clock: VirtualClock) -> None:
    phone = phone_with(clock, row(0, "Tea", "3.50"), row(1, "Coffee", None))
    step = extract(all=True, append=True)
    task = await run_steps(phone, clock, step, step)
    assert task.outputs == {"title": ["Tea", "Coffee"] * 2, "price": ["3.50", None] * 2}


async def test_an_output_that_no_row_has_is_named(clock: VirtualClock) -> None:
    step = extract(all=True)
    task = await run_steps(phone_with(clock, row(0, "Tea", None), row(1, "Coffee", None)), clock, step)
    assert task.steps[0].message == "2 rows. No row has price."


async def test_a_single_value_that_is_added_makes_a_list(clock: VirtualClock) -> None:
    task = await run_steps(phone_with(clock, row(0, "Tea", "3.50")), clock, extract(append=True))
    assert task.outputs == {"title": ["Tea"], "price": ["3.50"]}


async def test_rows_that_are_read_again_replace_the_former(clock: VirtualClock) -> None:
    step = extract(all=True)
    task = await run_steps(phone_with(clock, row(0, "Tea", "3.50")), clock, step, step)
    assert task.outputs["title"] == ["Tea"]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("label", "Tea"),
        ("text", "Tea"),
        ("description", "a drink"),
        ("hint", "What to drink"),
        ("resourceId", "drink"),
        ("className", "android.widget.CheckBox"),
        ("packageName", "com.example.shop"),
        ("checked", "true"),
        ("enabled", "false"),
        ("selected", "false"),
        ("bounds", "[40,100][1080,200]"),
    ],
)
async def test_an_attribute_is_read_as_a_text(clock: VirtualClock, attribute: str, value: str) -> None:
    drink = node(
        "Tea",
        (40, 100, 1200, 200),
        description="a drink",
        hint="What to drink",
        resource_id="drink",
        class_name="android.widget.CheckBox",
        checked=True,
        enabled=False,
    )
    step = extract(selector={"resourceId": "drink"}, fields=[{"outputField": "x", "attribute": attribute}])
    assert (await run_steps(phone_with(clock, drink), clock, step)).outputs == {"x": value}


async def test_the_label_is_the_description_where_there_is_no_text(clock: VirtualClock) -> None:
    icon = node("", (0, 0, 100, 100), description="Cart", resource_id="row")
    assert (await run_steps(phone_with(clock, icon), clock, extract(fields=[{"outputField": "x"}]))).outputs == {
        "x": "Cart"
    }


async def test_the_hint_of_an_empty_field_is_not_its_text(clock: VirtualClock) -> None:
    step = extract(fields=[{"outputField": "x", "attribute": "text"}])
    phone = phone_with(clock, field((0, 0, 500, 100), hint="Search", resource_id="row"))
    assert (await run_steps(phone, clock, step)).outputs == {"x": ""}
