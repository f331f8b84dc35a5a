"""Warnings: what is worth a look before a task runs."""

from __future__ import annotations

import json

import pytest

from droidfleet_shared.protocol.advice import MAX_WARNINGS, warnings
from droidfleet_shared.protocol.effects import EffectWords, effect_words
from droidfleet_shared.protocol.validate import validate_document, validate_task
from unit.protocol.documents import Document, click_on, task

LABELS_THAT_WARN = [
    "Send",
    "SEND",
    "Sending…",
    "Se\u200bnd",
    "deleted",
    "Delete all",
    "Removing",
    "pays",
    "Buying",
    "Place order",
    "Factory  reset",
    "btnSendMessage",
    "com.chat:id/send_button",
    "delete2",
    "发送",
    "确认支付",
    "付款",
    "删除这条消息",
    "立即购买",
    "下单",
    "提交订单",
    "转账给张三",
    "发布",
    "卸载",
    "清空回收站",
    "刪除",
]
LABELS_THAT_DO_NOT = [
    "border",
    "indeletable",
    "Sender",
    "Paypal",
    "Orders",
    "Posts",
    "reset",
    "Settings",
    "Add to cart",
    "information",
    "取消",
    "设置",
]


def warned(document: Document, words: EffectWords | None = None) -> list[tuple[str, str]]:
    outcome = validate_document(json.dumps(document), words=words)
    assert outcome.valid, outcome.errors
    return [(warning.path, warning.code.value) for warning in outcome.warnings]


@pytest.mark.parametrize("label", LABELS_THAT_WARN)
def test_a_word_for_what_cannot_be_undone_is_found(label: str) -> None:
    assert effect_words().found_in(label)


@pytest.mark.parametrize("label", LABELS_THAT_DO_NOT)
def test_other_words_are_not(label: str) -> None:
    assert effect_words().found_in(label) is None


def test_words_of_users_are_found_too() -> None:
    words = EffectWords(["# ours", "absenden", "Löschen  # German", "=Kauf"])
    assert [words.found_in(label) for label in ("Löschen", "LÖSCHEN", "Kaufen", "kauf", "Absenden")] == [
        "löschen",
        "löschen",
        None,
        "kauf",
        "absenden",
    ]


@pytest.mark.parametrize(
    ("step", "path"),
    [
        ({"action": "CLICK", "selector": {"text": "Send"}}, "/selector/text"),
        ({"action": "LONG_CLICK", "selector": {"descriptionContains": "Delete"}}, "/selector/descriptionContains"),
        ({"action": "CLICK", "selector": {"textMatches": "(Pay|Buy) now"}}, "/selector/textMatches"),
        ({"action": "CLICK", "selector": {"xpath": "//node[@text='Send']"}}, "/selector/xpath"),
        ({"action": "CLICK", "selector": {"className": "Row", "has": {"text": "删除"}}}, "/selector/has/text"),
        (
            {"action": "SELECT_OPTION", "selector": {"text": "More"}, "option": {"text": "Uninstall"}},
            "/option/text",
        ),
        ({"action": "INPUT", "selector": {"hint": "Send a message"}, "value": "a", "submit": True}, "/selector/hint"),
        ({"action": "DRAG", "selector": {"text": "Photo"}, "to": {"text": "Delete"}}, "/to/text"),
    ],
)
def test_a_step_that_touches_such_a_target_is_a_warning(step: Document, path: str) -> None:
    assert warned(task({"id": "a"} | step)) == [(f"/steps/0{path}", "IRREVERSIBLE_EFFECT")]


@pytest.mark.parametrize(
    "step",
    [
        {"action": "WAIT", "selector": {"text": "Send"}},
        {"action": "EXTRACT_TEXT", "selector": {"text": "Send"}, "outputField": "a"},
        {"action": "INPUT", "selector": {"hint": "Send a message"}, "value": "a"},
        {"action": "CLICK", "selector": {"text": "OK", "below": {"text": "Delete"}}},
        {"action": "CLICK", "selector": {"xpath": "//send"}},
    ],
)
def test_a_step_that_only_names_it_otherwise_is_not(step: Document) -> None:
    assert warned(task({"id": "a"} | step)) == []


def test_steps_inside_others_are_looked_at() -> None:
    inner = {"id": "a", "action": "CLICK", "selector": {"text": "Pay"}}
    group = {"id": "g", "action": "GROUP", "steps": [inner]}
    decide = {"id": "i", "action": "IF", "condition": {"visible": {"text": "x"}}, "then": [group], "else": [group]}
    decide["else"] = [group | {"id": "h", "steps": [inner | {"id": "b"}]}]
    assert [path for path, _ in warned(task(decide))] == [
        "/steps/0/then/0/steps/0/selector/text",
        "/steps/0/else/0/steps/0/selector/text",
    ]


def test_an_invalid_document_is_warned_of_as_well() -> None:
    document = task({"id": "a", "action": "CLICK", "selector": {"text": "Pay"}, "tiemoutMs": 1})
    assert [warning.code for warning in validate_task(json.dumps(document)).warnings] == ["IRREVERSIBLE_EFFECT"]


def test_a_point_is_a_warning_wherever_it_stands() -> None:
    point = {"point": {"xPercent": 50, "yPercent": 90}, "allowPoint": True}
    steps = [
        {"id": "a", "action": "CLICK", "selector": point},
        {"id": "b", "action": "DRAG", "selector": {"text": "x"}, "to": point},
    ]
    assert warned(task(*steps)) == [
        ("/steps/0/selector/point", "POINT_SELECTOR"),
        ("/steps/1/to/point", "POINT_SELECTOR"),
    ]


def test_a_loop_that_may_run_for_days_is_named() -> None:
    short = {"id": "s", "action": "REPEAT", "steps": [{"id": "w", "action": "DELAY", "minMs": 1}]}
    long = {
        "id": "poll",
        "action": "REPEAT",
        "maxIterations": 1_000,
        "steps": [{"id": "d", "action": "DELAY", "minMs": 600_000}],
    }
    outcome = validate_task(json.dumps(task(short, {"id": "g", "action": "GROUP", "steps": [long]})))
    (warning,) = outcome.warnings
    assert (warning.path, warning.code) == ("/steps/1/steps/0", "LONG_BOUND")
    assert "`poll`" in warning.message
    assert "166 hours" in warning.message


def test_a_loop_with_a_time_of_its_own_is_not() -> None:
    delay = {"id": "d", "action": "DELAY", "minMs": 600_000}
    loop = {"id": "l", "action": "REPEAT", "maxIterations": 1_000, "steps": [delay]}
    assert warned(task(loop | {"maxDurationMs": 60_000})) == []
    assert warned(task(loop, maxDurationMs=60_000)) == []


def test_a_secret_in_the_document_is_a_warning_that_does_not_show_it() -> None:
    inputs = {"pin": {"type": "secret", "default": "hunter2"}, "other": {"type": "secret"}}
    outcome = validate_task(json.dumps(task(inputs=inputs, inputValues={"other": "hunter3"})))
    assert [(warning.path, warning.code) for warning in outcome.warnings] == [
        ("/inputs/pin/default", "SECRET_IN_DOCUMENT"),
        ("/inputValues/other", "SECRET_IN_DOCUMENT"),
    ]
    assert "hunter" not in str(outcome.warnings)


def test_a_label_from_an_input_is_looked_at_with_its_value() -> None:
    def codes_with(default: str) -> list[str]:
        document = click_on(text="${inputs.button}") | {"inputs": {"button": {"type": "string", "default": default}}}
        return [warning.code for warning in warnings(document)]

    assert [codes_with("Send"), codes_with("Open")] == [["IRREVERSIBLE_EFFECT"], []]


def test_warnings_have_a_bound() -> None:
    steps = [{"id": str(number), "action": "CLICK", "selector": {"text": "Pay"}} for number in range(1_000)]
    assert len(validate_task(json.dumps(task(*steps))).warnings) == MAX_WARNINGS
