"""What becomes of each type of step of a generic document, and of what people write carelessly."""

from __future__ import annotations

import json

import pytest

from droidfleet_controller.importing.generic import CONTAINERS, TYPES, import_generic
from droidfleet_controller.importing.generic_steps import LEAVES
from droidfleet_controller.importing.report import What
from droidfleet_shared.protocol.pointers import Json
from unit.importing.documents import CLICK, DATA, OK, Object, generic, generic_with_points, notes, step, steps_of

TEXT_OK: Json = {"text": "OK"}
BACK: Object = {"id": "b", "type": "key_event", "params": {"key": "back"}}

EMPTY_ELSE: Object = {**OK, "then": [BACK], "else": []}
IF_OCR: Object = {"selector_type": "ocr", "selector_value": "OK", "then": [BACK], "else": [step("screen_on")]}


@pytest.mark.parametrize(
    ("written", "made"),
    [
        (step("open_app", package="com.a.b"), {"action": "OPEN", "packageName": "com.a.b"}),
        (step("open_app", package="com.a.b", wait_home=True), {"action": "OPEN", "packageName": "com.a.b"}),
        (step("stop_app", package="com.a.b"), {"action": "STOP_APP", "packageName": "com.a.b"}),
        (step("click", **OK), {"action": "CLICK", "selector": TEXT_OK}),
        (step("long_click", **OK), {"action": "LONG_CLICK", "selector": TEXT_OK}),
        (step("wait_el", **OK), {"action": "WAIT", "condition": {"visible": TEXT_OK}}),
        (
            step("swipe_until", direction="up", max_swipes=7, **OK),
            {"action": "SCROLL", "direction": "DOWN", "until": TEXT_OK, "maxScrolls": 7},
        ),
        (
            step("swipe_until", direction="left", **OK),
            {"action": "SCROLL", "direction": "RIGHT", "until": TEXT_OK},
        ),
        (step("swipe", direction="up"), {"action": "SWIPE", "direction": "UP"}),
        (
            step("swipe", direction="left", duration_min=0.2, duration_max=0.4),
            {"action": "SWIPE", "direction": "LEFT", "durationMs": 300},
        ),
        (step("swipe", direction="up", duration_min=400), {"action": "SWIPE", "direction": "UP", "durationMs": 400}),
        (
            step("swipe", direction="up", duration_min=9),
            {"action": "SWIPE", "direction": "UP", "durationMs": 9_000, "timeoutMs": 14_000},
        ),
        (step("wait", min=1, max=2.5), {"action": "DELAY", "minMs": 1000, "maxMs": 2500}),
        (step("wait", min=1), {"action": "DELAY", "minMs": 1000}),
        (step("wait", min=3, max=1), {"action": "DELAY", "minMs": 1000, "maxMs": 3000}),
        (step("key_event", key="home"), {"action": "KEY", "key": "HOME"}),
        (step("key_event", key="KEYCODE_APP_SWITCH"), {"action": "KEY", "key": "RECENTS"}),
        (step("key_event", key=4), {"action": "BACK"}),
        (step("screen_on"), {"action": "WAKE"}),
        ({"id": "a", "type": "screen_on"}, {"action": "WAKE"}),
        (step("group", children=[BACK]), {"action": "GROUP", "steps": [{"action": "BACK"}]}),
        (
            step("loop", loop_mode="rounds", max_iterations=3, children=[BACK]),
            {"action": "REPEAT", "maxIterations": 3, "steps": [{"action": "BACK"}]},
        ),
        (step("loop", loop_mode="count", children=[BACK]), {"action": "REPEAT", "steps": [{"action": "BACK"}]}),
        (
            step("loop", loop_mode="duration", duration=90, max_iterations=100, children=[BACK]),
            {"action": "REPEAT", "maxIterations": 100, "maxDurationMs": 90_000, "steps": [{"action": "BACK"}]},
        ),
        (
            step("if_el", **OK, then=[BACK]),
            {"action": "IF", "condition": {"visible": TEXT_OK}, "then": [{"action": "BACK"}]},
        ),
        (
            step("if_el", **IF_OCR),
            {
                "action": "IF",
                "condition": {"visible": {"ocrText": "OK"}},
                "then": [{"action": "BACK"}],
                "else": [{"action": "WAKE"}],
            },
        ),
    ],
)
def test_a_step_becomes_the_step_that_does_the_same(written: Object, made: Object) -> None:
    assert steps_of(generic(written)) == [made]


def test_a_point_is_taken_when_it_is_allowed() -> None:
    made = steps_of(generic_with_points(step("click_xy", x=50, y="90")))
    point = {"point": {"xPercent": 50, "yPercent": 90}, "allowPoint": True}
    assert made == [{"action": "CLICK", "selector": point}]


@pytest.mark.parametrize("kind", ["text", "resourceId", "description", "descriptionContains", "className", "xpath"])
def test_a_selector_keeps_its_type(kind: str) -> None:
    value = "//a" if kind == "xpath" else "value"
    made = generic(step("click", selector_type=kind, selector_value=value))
    assert steps_of(made) == [{"action": "CLICK", "selector": {kind: value}}]


@pytest.mark.parametrize("kind", TYPES)
def test_the_example_of_every_type_can_be_imported(kind: str) -> None:
    example = LEAVES[kind].example if kind in LEAVES else CONTAINERS[kind]
    assert steps_of(generic_with_points(json.loads(example)))


@pytest.mark.parametrize(
    ("written", "percent"), [(30, 30), ("30%", 30), (0.5, 50), (0, 0), (100, 100), ("1%", 1), (12.4, 12)]
)
def test_a_probability_becomes_whole_percent(written: Json, percent: int) -> None:
    assert steps_of(generic({**BACK, "probability": written})) == [{"action": "BACK", "probability": percent}]
    inside = step("key_event", key="back", probability=written)
    assert steps_of(generic(inside)) == [{"action": "BACK", "probability": percent}]


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ({**CLICK, "type": "CLICK"}, "SPELLING"),
        (step("swipe", direction="UP"), "SPELLING"),
        (step("wait", min="2"), "SPELLING"),
        (step("wait", min=3, max=1), "SPELLING"),
        (step("click", selectorType="text", selector_value="OK"), "SPELLING"),
        (step("click", selector_type="resource_id", selector_value="ok"), "SPELLING"),
        (step("click", selector_type="text", selector_value=5), "SPELLING"),
        ({"type": "screen_on"}, "ID_GIVEN"),
        (step("open_app", package="a", wait_home="yes"), "DIFFERS"),
        (step("swipe", direction="up", duration_min=0.1, duration_max=0.3), "DIFFERS"),
        (step("swipe", direction="up", duration_min=300), "ASSUMED"),
        (step("swipe_until", direction="up", **OK), "ASSUMED"),
        (step("loop", children=[BACK]), "ASSUMED"),
        ({**BACK, "probability": 0.5}, "ASSUMED"),
        ({**BACK, "probability": None}, "NOT_NEEDED"),
        (step("if_el", **EMPTY_ELSE), "NOT_NEEDED"),
        ({"id": "g", "type": "group", "children": [BACK]}, "SPELLING"),
    ],
)
def test_what_is_read_in_another_way_is_said(written: Object, code: str) -> None:
    made = generic(written)
    assert made.document is not None
    assert code in notes(made)


def test_what_is_written_well_needs_no_note() -> None:
    assert generic(CLICK).count(What.NORMALISED) == 0


def test_ids_are_kept_and_made_unique() -> None:
    steps: list[Json] = [{"type": "screen_on"}, {**BACK, "id": "screen-on"}, {**BACK, "id": "b"}, {**BACK, "id": "b"}]
    document = generic(*steps).document
    assert document is not None
    assert [each["id"] for each in document["steps"] if isinstance(each, dict)] == [  # type: ignore[union-attr]  # a list
        "screen-on-2",
        "screen-on",
        "b",
        "b-2",
    ]


def test_ids_stay_when_the_document_grows_at_its_end() -> None:
    one, two = step("click", **OK), step("click", **{**OK, "selector_value": "Buy"})
    for each in (one, two):
        del each["id"]
    short, long = generic(one).document, generic(one, two).document
    assert short is not None
    assert long is not None
    assert isinstance(short["steps"], list)
    assert isinstance(long["steps"], list)
    assert long["steps"][0] == short["steps"][0]


def test_labels_and_texts_are_kept_as_they_are_read() -> None:
    written = {**step("click", **{**OK, "selector_value": "${price}"}), "label": "Pay ${price}"}
    assert steps_of(generic(written)) == [
        {"label": "Pay $${price}", "action": "CLICK", "selector": {"text": "$${price}"}}
    ]


def test_when_and_where_it_runs_is_kept_aside() -> None:
    made = generic(CLICK, target={"group": "all"}, schedule="*/5 * * * *", retry=3, enabled=False)
    assert made.document is not None
    assert made.aside == {"target": {"group": "all"}, "schedule": "*/5 * * * *", "retry": 3, "enabled": False}
    assert [entry.place for entry in made.report if entry.code == "KEPT_ASIDE"] == [
        "/target",
        "/schedule",
        "/retry",
        "/enabled",
    ]


def test_the_bound_on_the_task_is_kept() -> None:
    document = generic(params={"max_duration": "90", "steps": [CLICK]}).document
    assert document is not None
    assert document["maxDurationMs"] == 90_000


@pytest.mark.parametrize(
    ("name", "given", "made"),
    [
        ("buy", None, "buy"),
        ("buy", "other", "other"),
        (None, None, "file"),
        (" a\nb ", None, "a b"),
        ("\x00", None, "imported"),
    ],
)
def test_the_task_is_named(name: str | None, given: str | None, made: str) -> None:
    document: Object = {"name": name, "params": {"steps": [CLICK]}}
    imported = import_generic(document, fallback_id="file", task_id=given).document
    assert imported is not None
    assert imported["taskId"] == made


def test_a_real_document_becomes_the_task_that_is_kept_beside_it() -> None:
    imported = import_generic(json.loads((DATA / "daily.json").read_text(encoding="utf-8")))
    assert imported.document == json.loads((DATA / "daily.expected.json").read_text(encoding="utf-8"))
