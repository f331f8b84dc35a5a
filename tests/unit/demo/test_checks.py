"""The demo's checks fail when what the phones felt and what was reported differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from droidfleet_demo.checks import Report, app_effects, check, unproved

GOOD = Report("phone-01", "SUCCEEDED", "OK", candidates=0, dispatched=2, order_number="Order A-1")
TWIN = Report("phone-05", "FAILED", "TARGET_AMBIGUOUS", candidates=2, dispatched=1, order_number="")
TAP: dict[str, object] = {"kind": "tap"}
TEXT: dict[str, object] = {"kind": "set_text"}
ORDER: dict[str, object] = {"kind": "order_placed", "details": {"order": "A-1"}}
ORDERED = "phone-01 placed exactly one order and reported its number"
FELT = "phone-01 felt as many touches as were dispatched"
EFFECTS = {"phone-01": [TAP, TEXT, ORDER], "phone-05": [TAP]}


def test_all_holds_when_phones_and_reports_agree() -> None:
    assert all(item.held for item in check([GOOD, TWIN], EFFECTS, twins={"phone-05"}))


@pytest.mark.parametrize(
    ("good", "twin", "effects", "wrong"),
    [
        (GOOD, TWIN, {**EFFECTS, "phone-01": [TAP, TEXT, ORDER, ORDER]}, ORDERED),
        (GOOD, TWIN, {**EFFECTS, "phone-01": [TAP, TEXT]}, ORDERED),
        (
            GOOD,
            TWIN,
            {**EFFECTS, "phone-01": [TAP, TAP, TEXT, ORDER]},
            "phone-01 felt as many touches as were dispatched",
        ),
        (GOOD, TWIN, {**EFFECTS, "phone-05": [TAP, ORDER]}, "phone-05 placed no order"),
        (replace(GOOD, order_number="Order A-2"), TWIN, EFFECTS, ORDERED),
        (
            GOOD,
            replace(TWIN, candidates=0),
            EFFECTS,
            "phone-05 stopped with TARGET_AMBIGUOUS and named its candidates",
        ),
    ],
)
def test_one_difference_fails_its_own_check_alone(
    good: Report, twin: Report, effects: dict[str, list[dict[str, object]]], wrong: str
) -> None:
    assert [item.what for item in check([good, twin], effects, twins={"phone-05"}) if not item.held] == [wrong]


def test_report_is_read_from_the_document_that_the_command_line_writes() -> None:
    step = {"dispatched": 2, "candidates": [{}, {}]}
    result = {"code": "OK", "steps": [{"dispatched": 1}, step], "outputs": {"orderNumber": "A-1"}}
    report = Report.of({"device": "phone-01", "state": "SUCCEEDED", "result": result})
    assert report == Report("phone-01", "SUCCEEDED", "OK", candidates=2, dispatched=3, order_number="A-1")


def test_execution_without_a_result_is_a_report_of_nothing() -> None:
    assert Report.of({"device": "a", "state": "LOST", "result": None}) == Report("a", "LOST", "", 0, 0, "")


def test_each_selector_of_a_draft_wants_evidence_of_its_own() -> None:
    task = {
        "steps": [
            {"action": "CLICK", "selector": {"text": "A"}, "unlessVisible": {"text": "B"}},
            {"action": "REPEAT", "steps": [{"action": "ASSERT", "condition": {"visible": {"text": "C"}}}]},
        ]
    }
    evidence = [{"path": "/steps/0/selector"}]
    assert unproved(task, evidence) == ["/steps/0/unlessVisible", "/steps/1/steps/0/condition/visible"]


def test_what_apps_report_is_counted_without_what_they_only_show() -> None:
    searched = {"kind": "searched", "origin": "app"}
    shown = {"kind": "toast", "origin": "app"}
    touched = {"kind": "tap", "origin": "outside"}
    assert app_effects([searched, shown, touched, searched]) == {"searched": 2}
