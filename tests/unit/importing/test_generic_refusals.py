"""What other programs skip without a word is refused, all at once, with what to write instead."""

from __future__ import annotations

import json

import pytest

from droidfleet_controller.importing.generic import MAX_DEPTH, MAX_NODES, import_generic
from droidfleet_controller.importing.report import MAX_REFUSED, What
from droidfleet_shared.protocol.pointers import Json
from unit.importing.documents import CLICK, DATA, OK, Object, checked, generic, refusals, step, the_refusal

BACK: Object = {"type": "key_event", "params": {"key": "back"}}
AT = "/params/steps/0"


@pytest.mark.parametrize(
    ("written", "code", "place", "hint"),
    [
        ({"type": "clik", "params": OK}, "UNKNOWN_TYPE", f"{AT}/type", "Did you mean `click`?"),
        ({"type": "tap", "params": OK}, "UNKNOWN_TYPE", f"{AT}/type", "Did you mean `click`?"),
        ({"type": "zzz"}, "UNKNOWN_TYPE", f"{AT}/type", "There are `open_app`"),
        ({"params": OK}, "MISSING_FIELD", AT, '"type": "click"'),
        ("click", "WRONG_TYPE", AT, '"type": "click"'),
        ({"type": "click"}, "MISSING_FIELD", AT, '"selector_type": "text"'),
        ({"type": "click", "params": []}, "WRONG_TYPE", f"{AT}/params", '"type": "click"'),
        (step("click", selector_value="OK"), "MISSING_FIELD", f"{AT}/params", '"selector_type": "text"'),
        (step("click", selector_type="text"), "MISSING_FIELD", f"{AT}/params", '"selector_value": "OK"'),
        (
            step("click", selector_type="text", selector_value=""),
            "EMPTY_SELECTOR",
            f"{AT}/params/selector_value",
            '"selector_value": "OK"',
        ),
        (
            step("click", selector_type="id", selector_value="x"),
            "BAD_VALUE",
            f"{AT}/params/selector_type",
            "Did you mean `resourceId`?",
        ),
        (
            step("click", selector_type="ocr", selector_value="x"),
            "BAD_VALUE",
            f"{AT}/params/selector_type",
            "There are `text`",
        ),
        (step("click", selector_type="xpath", selector_value="//["), "BAD_XPATH", AT, "For example"),
        (
            {"type": "click", "params": OK, "selector_type": "text"},
            "UNKNOWN_FIELD",
            f"{AT}/selector_type",
            "It belongs into `params`.",
        ),
        (step("click", **OK, speed=3), "UNKNOWN_FIELD", f"{AT}/params/speed", "Or take it out."),
        (step("open_app"), "MISSING_FIELD", f"{AT}/params", '"package": "com.example.shop"'),
        (step("open_app", package="not a package"), "BAD_VALUE", AT, ""),
        (step("open_app", package="a", wait_home=5), "WRONG_TYPE", f"{AT}/params/wait_home", '"type": "open_app"'),
        (step("swipe"), "MISSING_FIELD", f"{AT}/params", '"direction": "up"'),
        (step("swipe", direction="top"), "BAD_VALUE", f"{AT}/params/direction", "`up`, `down`, `left` and `right`"),
        (
            step("swipe", direction="up", duration_min=30),
            "OUT_OF_RANGE",
            f"{AT}/params/duration_min",
            "Write seconds",
        ),
        (step("swipe_until", direction="up", max_swipes=0, **OK), "OUT_OF_RANGE", f"{AT}/params/max_swipes", "example"),
        (step("wait"), "MISSING_FIELD", f"{AT}/params", '"min": 1'),
        (step("wait", min=900), "OUT_OF_RANGE", f"{AT}/params/min", "`loop` of several rounds"),
        (step("wait", min="soon"), "WRONG_TYPE", f"{AT}/params/min", '"min": 1'),
        (step("wait", min=True), "WRONG_TYPE", f"{AT}/params/min", '"min": 1'),
        (step("click_xy", x=1, y=2), "POINT_NOT_ALLOWED", AT, "--allow-points"),
        (step("key_event", key="camera"), "UNKNOWN_KEY", f"{AT}/params/key", "There are `APP_SWITCH`"),
        (step("key_event", key="homee"), "UNKNOWN_KEY", f"{AT}/params/key", "Did you mean `HOME`?"),
        (step("key_event", key=999), "UNKNOWN_KEY", f"{AT}/params/key", "There are"),
        (step("group", children=[]), "EMPTY_STEPS", f"{AT}/params/children", "Give it a step"),
        (step("group"), "MISSING_FIELD", f"{AT}/params", '"children"'),
        ({"type": "group"}, "MISSING_FIELD", AT, '"children"'),
        (step("group", children={}), "WRONG_TYPE", f"{AT}/params/children", "For example"),
        (step("if_el", **OK), "MISSING_FIELD", f"{AT}/params", '"then"'),
        (step("if_el", **OK, then=[]), "EMPTY_STEPS", f"{AT}/params/then", "Give it a step"),
        (
            {**step("if_el", **OK, then=[BACK]), "children": [BACK]},
            "UNKNOWN_FIELD",
            f"{AT}/children",
            "`then` or `else`",
        ),
        (step("loop", loop_mode="forever", children=[BACK]), "BAD_VALUE", f"{AT}/params/loop_mode", "`rounds`"),
        (step("loop", loop_mode="duration", children=[BACK]), "MISSING_FIELD", f"{AT}/params", "For example"),
        (step("loop", max_iterations=0, children=[BACK]), "OUT_OF_RANGE", f"{AT}/params/max_iterations", "example"),
        ({**BACK, "probability": 1}, "BAD_VALUE", f"{AT}/probability", '"1%"'),
        ({**BACK, "probability": 101}, "OUT_OF_RANGE", f"{AT}/probability", "example"),
    ],
)
def test_what_would_be_skipped_is_refused_with_its_place_and_a_repair(
    written: Json, code: str, place: str, hint: str
) -> None:
    entry = the_refusal(generic(written))
    assert (entry.code, entry.place) == (code, place)
    assert hint in entry.hint


@pytest.mark.parametrize(
    ("fields", "code", "place"),
    [
        ({"task_type": "script"}, "UNKNOWN_FORM", "/task_type"),
        ({"schedule": "0 25 * * *"}, "BAD_CRON", "/schedule"),
        ({"schedule": {"cron": "often"}}, "BAD_CRON", "/schedule/cron"),
        ({"priority": 3}, "UNKNOWN_FIELD", "/priority"),
        ({"params": None}, "MISSING_FIELD", ""),
        ({"params": [CLICK]}, "WRONG_TYPE", "/params"),
        ({"params": {}}, "MISSING_FIELD", "/params"),
        ({"params": {"steps": []}}, "EMPTY_STEPS", "/params/steps"),
        ({"params": {"steps": {}}}, "WRONG_TYPE", "/params/steps"),
        ({"params": {"steps": [CLICK], "max_duration": 0}}, "OUT_OF_RANGE", "/params/max_duration"),
        ({"steps": [CLICK]}, "UNKNOWN_FIELD", "/steps"),
    ],
)
def test_a_document_that_is_wrong_is_refused(fields: Object, code: str, place: str) -> None:
    assert refusals(generic(CLICK, **fields)) == [(code, place)]


@pytest.mark.parametrize("document", [None, [], "x", 3])
def test_what_is_no_object_is_refused(document: Json) -> None:
    assert refusals(checked(import_generic(document))) == [("UNKNOWN_FORM", "")]


def nested(depth: int) -> Json:
    """A step with lists of steps within each other, ``depth`` with the list that it stands in."""
    return BACK if depth == 1 else {"type": "group", "params": {"children": [nested(depth - 1)]}}


def test_steps_may_be_nested_to_the_limit_and_not_deeper() -> None:
    assert generic(nested(MAX_DEPTH)).document is not None
    assert the_refusal(generic(nested(MAX_DEPTH + 1))).code == "TOO_DEEP"


def test_there_may_be_steps_to_the_limit_and_not_more() -> None:
    assert generic(*[BACK] * MAX_NODES).document is not None
    assert refusals(generic(*[BACK] * (MAX_NODES + 1))) == [("TOO_MANY_STEPS", "/params/steps")]
    inside: Json = {"type": "group", "params": {"children": [BACK] * MAX_NODES}}
    assert refusals(generic(inside)) == [("TOO_MANY_STEPS", "/params/steps")]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    imported = import_generic(json.loads((DATA / "broken.json").read_text(encoding="utf-8")))
    assert [code for code, _ in refusals(checked(imported))] == [
        "BAD_CRON",
        "UNKNOWN_TYPE",
        "EMPTY_SELECTOR",
        "BAD_VALUE",
        "MISSING_FIELD",
        "EMPTY_STEPS",
        "POINT_NOT_ALLOWED",
        "UNKNOWN_KEY",
        "OUT_OF_RANGE",
    ]


def test_a_refused_step_is_not_called_mapped() -> None:
    assert generic(step("click_xy", x=1, y=2)).count(What.MAPPED) == 0


def test_a_report_is_bounded() -> None:
    junk: Object = {f"junk {number}": number for number in range(2 * MAX_REFUSED)}
    imported = generic(CLICK, **junk)
    assert imported.count(What.REFUSED) == MAX_REFUSED + 1
    assert refusals(imported)[-1] == ("TOO_MANY_ERRORS", "")
