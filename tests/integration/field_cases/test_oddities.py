"""Screens that break other tools, on a phone over the real adb server. The judge is what the phone did."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.protocol.codes import Detail, StepCode
from integration.field_cases.conftest import Handset, MakeHandset
from support.runs import JsonStep

pytestmark = pytest.mark.integration

PACKAGE = "com.example.odd"
TOUCHES = {"tap", "set_text", "key", "type_text"}


@pytest.fixture(scope="session")
def form() -> Scenario:
    """In place of the form: an app of odd screens."""
    return load_scenario(Path(__file__).with_name("oddities.yaml"))


def click(_short_ms: int | None = None, /, **selector: object) -> JsonStep:
    step: JsonStep = {"action": "CLICK", "selector": selector}
    return step if _short_ms is None else {**step, "timeoutMs": _short_ms}


async def on(handset: MakeHandset, page: str) -> Handset:
    """A phone with that page in front."""
    one = await handset()
    there = {"packageName": PACKAGE, "activityName": f".{page}Activity"}
    opened = await one.run(click(text=page), {"action": "WAIT", "selector": {"resourceId": "content"}, **there})
    assert opened.successful, opened.message
    return one


def happened(one: Handset) -> list[str]:
    """What the app did, after its page was opened."""
    return [kind for kind in one.seen() if kind not in TOUCHES]


@pytest.mark.parametrize(
    ("selector", "effect"),
    [
        ({"text": "Health Club at Disney's Resort"}, "quote"),
        ({"className": "a b"}, "quote"),
        ({"text": 'It\'s "ok"'}, "quotes"),
        ({"textContains": "'s \"o"}, "quotes"),
        ({"text": "50%"}, "percent"),
        ({"className": "1abc", "text": "50%"}, "percent"),
        ({"text": "/help"}, "slash"),
        ({"className": "a/b"}, "slash"),
        ({"text": "@home"}, "at"),
        ({"text": "^_^"}, "smile"),
        ({"textStartsWith": "^"}, "smile"),
        ({"text": "%d items"}, "format"),
        ({"text": "${price} <b>&amp;"}, "markup"),
        ({"text": "Gift \U0001f381"}, "gift"),
        ({"textMatches": r"Gift .."}, "gift"),
        ({"text": "Continue"}, "continued"),
        ({"xpath": '//*[@text="Health Club at Disney\'s Resort"]'}, "quote"),
    ],
)
async def test_f01_f03_f04_odd_classes_labels_and_twins(
    handset: MakeHandset, selector: dict[str, object], effect: str
) -> None:
    one = await on(handset, "Labels")
    assert (await one.run(click(**selector))).successful
    assert happened(one) == [effect]


@pytest.mark.parametrize("label", ["Nowhere", "Outside", "Health", "help", "%", "_"])
async def test_f03_f04_a_label_in_part_or_without_a_place_is_not_found(handset: MakeHandset, label: str) -> None:
    one = await on(handset, "Labels")
    before = one.seen("tap")
    assert (await one.run(click(400, text=label))).code is StepCode.TARGET_NOT_FOUND
    assert one.seen("tap") == before


async def test_f05_f06_rows_labels_and_their_buttons(handset: MakeHandset) -> None:
    one = await on(handset, "Rows")
    task = await one.run({**click(text="Delete"), "optional": True})
    assert task.code is StepCode.TARGET_AMBIGUOUS
    assert len(task.steps[0].candidates) == 3
    assert happened(one) == []
    row = {"has": {"text": "Chi"}, "className": "android.widget.LinearLayout", "within": {"resourceId": "content"}}
    task = await one.run(
        click(text="Delete", rightOf={"text": "Bo"}),
        click(text="Ada"),
        click(text="Delete", within=row),
        click(text="Delete", index=0),
    )
    assert happened(one)[:2] == ["deleted_bo", "row"], task.message
    assert task.steps[1].detail is Detail.DISPATCHED_UNVERIFIED


async def test_a_button_under_another_is_touched_where_it_is_free(handset: MakeHandset) -> None:
    one = await on(handset, "Layers")
    task = await one.run(click(resourceId="wide"))
    assert task.successful, task.message
    assert happened(one) == ["booked"]


async def test_a_button_wholly_under_another_is_not_touched_through_it(handset: MakeHandset) -> None:
    one = await on(handset, "Layers")
    task = await one.run(click(500, text="Pay"))
    assert task.code is StepCode.TARGET_NOT_FOUND
    assert "Accept cookies" in task.message
    assert happened(one) == []


async def test_a_field_under_a_list_of_suggestions_takes_no_suggestion(handset: MakeHandset) -> None:
    one = await on(handset, "Suggestions")
    assert (await one.run({"action": "INPUT", "selector": {"resourceId": "query"}, "value": "Mai"})).successful
    task = await one.run({"action": "INPUT", "selector": {"resourceId": "city"}, "value": "Bonn", "timeoutMs": 2000})
    assert task.code is StepCode.TARGET_NOT_FOUND
    assert "covered" in task.message
    task = await one.run({"action": "INPUT", "selector": {"resourceId": "half"}, "value": "DE"})
    assert task.successful, task.message
    assert happened(one) == []


async def test_f09_a_disabled_button_is_waited_for_and_then_named(handset: MakeHandset) -> None:
    one = await on(handset, "Waiting")
    task = await one.run(
        {**click(text="Continue"), "packageName": PACKAGE, "activityName": ".WaitingActivity"},
        {"action": "WAIT", "selector": {"text": "Arrived"}, "packageName": PACKAGE, "activityName": ".ArrivedActivity"},
    )
    assert task.successful, task.message
    assert happened(one) == ["continued"]
    one = await on(handset, "Waiting")
    assert (await one.run(click(400, text="Never"))).code is StepCode.TARGET_DISABLED
    assert happened(one) == []


async def test_the_activity_of_another_page_is_waited_for_and_then_named(handset: MakeHandset) -> None:
    one = await on(handset, "Waiting")
    here = {"packageName": PACKAGE, "activityName": f"{PACKAGE}.ArrivedActivity"}
    task = await one.run({**click(500, text="Continue"), **here})
    assert task.code is StepCode.ACTIVITY_MISMATCH
    assert ".WaitingActivity" in task.message
    assert happened(one) == []


async def test_thousands_of_nodes_are_one_screen(handset: MakeHandset) -> None:
    one = await on(handset, "Crowd")
    started = time.monotonic()
    task = await one.run(
        {**click(text="Last one"), "timeoutMs": 10_000},
        {"action": "WAIT", "selector": {"text": "Person 700"}, "timeoutMs": 10_000},
        {**click(text="Call"), "timeoutMs": 10_000},
    )
    assert task.code is StepCode.TARGET_AMBIGUOUS
    assert len(task.steps[2].candidates) == 5
    assert happened(one) == ["last"]
    assert time.monotonic() - started < 20


async def test_content_that_moves_between_looks_is_not_tapped_in_passing(handset: MakeHandset) -> None:
    one = await on(handset, "Waiting")
    one.running.faults.add(Fault(on="dumpWindowHierarchy", do=FaultKind.MOVE, times=9))
    task = await one.run(click(text="Continue"))
    assert task.successful, task.message
    assert happened(one) == ["continued"]
