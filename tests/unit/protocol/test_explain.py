"""Explanations: in words, complete, and without secrets."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest

from droidfleet_shared.protocol.explain import Explanation, StepExplanation, explain
from droidfleet_shared.protocol.explain_phrases import LANGUAGES, PHRASES, Language
from droidfleet_shared.protocol.explain_words import Words
from droidfleet_shared.protocol.selector import PATTERN_FIELDS, TEXT_FIELDS, Selector
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.steps.base import StepBase
from droidfleet_shared.protocol.task import Task
from unit.protocol.documents import Document, task

OK: Document = {"text": "OK"}
SHOWN: Document = {"visible": OK}

COMMON: dict[str, object] = {
    "label": "For people",
    "packageName": "com.shop",
    "timeoutMs": 9_999,
    "optional": True,
    "when": SHOWN,
    "after": {"condition": SHOWN},
    "redo": True,
    "onFailure": "CONTINUE",
    "probability": 30,
}
REQUIRED: dict[str, Document] = {
    "CLICK": {"selector": OK},
    "LONG_CLICK": {"selector": OK},
    "INPUT": {"selector": OK, "value": "tea"},
    "BACK": {},
    "KEY": {"key": "HOME"},
    "OPEN": {"packageName": "com.shop"},
    "STOP_APP": {"packageName": "com.shop"},
    "SCROLL": {},
    "SWIPE": {"direction": "LEFT"},
    "DRAG": {"selector": OK},
    "SELECT_OPTION": {"selector": OK, "option": OK},
    "WAKE": {},
    "WAIT": {},
    "DELAY": {"minMs": 5},
    "EXTRACT_TEXT": {"selector": OK, "outputField": "total"},
    "EXTRACT": {"selector": OK, "fields": [{"outputField": "a"}]},
    "SCREENSHOT": {},
    "ASSERT": {"condition": SHOWN},
    "GROUP": {"steps": [{"id": "b", "action": "BACK"}]},
    "IF": {"condition": SHOWN, "then": [{"id": "b", "action": "BACK"}]},
    "REPEAT": {"steps": [{"id": "b", "action": "BACK"}]},
    "BRANCH": {"condition": SHOWN, "goto": "end"},
}
OTHER: Document = {"text": "Other"}
CHANGED: dict[str, object] = {
    "selector": OTHER,
    "times": 2,
    "unlessVisible": OK,
    "durationMs": 999,
    "value": "coffee",
    "clear": False,
    "submit": True,
    "key": "BACK",
    "stopFirst": True,
    "direction": "UP",
    "until": OK,
    "maxScrolls": 3,
    "distancePercent": 33,
    "to": OTHER,
    "byPercent": {"x": 3, "y": 4},
    "requireVisible": OK,
    "option": OTHER,
    "condition": {"gone": OK},
    "minMs": 7,
    "maxMs": 8,
    "outputField": "other",
    "append": True,
    "fields": [{"outputField": "a", "attribute": "hint"}],
    "all": True,
    "name": "other",
    "steps": [{"id": "c", "action": "BACK"}],
    "then": [{"id": "c", "action": "BACK"}],
    "else": [{"id": "c", "action": "BACK"}],
    "maxIterations": 3,
    "maxDurationMs": 7_000,
    "goto": "other",
}
NEEDS: dict[tuple[str, str], Document] = {
    ("CLICK", "intervalMs"): {"times": 2},
    ("EXTRACT", "maxItems"): {"all": True},
    ("REPEAT", "until"): {},
}
OVERRIDES: dict[tuple[str, str], object] = {
    ("KEY", "key"): "ENTER",
    ("OPEN", "packageName"): "com.other",
    ("STOP_APP", "packageName"): "com.other",
    ("REPEAT", "until"): SHOWN,
    ("CLICK", "intervalMs"): 333,
    ("EXTRACT", "maxItems"): 33,
}


def explained(*steps: Document, language: Language = "en", **fields: object) -> Explanation:
    document = task(*steps, **fields)
    return explain(Task.model_validate_json(json.dumps(document)), document, language=language)


def first(step: Document, language: Language = "en") -> StepExplanation:
    return explained({"id": "s"} | step, language=language).steps[0]


def own_fields() -> list[tuple[str, str]]:
    names = []
    for action, model in IMPLEMENTED_ACTIONS.items():
        for name, field in model.model_fields.items():
            alias = field.alias or name
            if alias in ("id", "action") or (name in StepBase.model_fields and (action, alias) not in OVERRIDES):
                continue
            names.append((action, alias))
    return names


def test_every_action_has_words_of_its_own() -> None:
    assert len({first({"action": action} | REQUIRED[action]).does for action in IMPLEMENTED_ACTIONS}) == len(
        IMPLEMENTED_ACTIONS
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("action", "field"), own_fields())
def test_every_field_of_an_action_changes_the_explanation(action: str, field: str, language: Language) -> None:
    before: Document = {"action": action} | REQUIRED[action] | NEEDS.get((action, field), {})
    after = before | {field: OVERRIDES.get((action, field), CHANGED.get(field))}
    assert first(after, language) != first(before, language)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("field", COMMON)
def test_every_common_field_changes_the_explanation(field: str, language: Language) -> None:
    assert set(COMMON) | {"id", "activityName"} == {each.alias or name for name, each in StepBase.model_fields.items()}
    before: Document = {"action": "CLICK", "selector": OK}
    assert first(before | {field: COMMON[field]}, language) != first(before, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_of_a_selector_has_its_words(language: Language) -> None:
    given: dict[str, Any] = dict.fromkeys(("xpath", "ocrText", "resourceId", "className"), "words")
    given |= dict.fromkeys((*TEXT_FIELDS, *PATTERN_FIELDS), "words")
    given |= dict.fromkeys(("within", "has", "leftOf", "rightOf", "above", "below"), OTHER)
    given |= dict.fromkeys(("enabled", "checked", "selected", "focused", "clickable", "scrollable"), True)
    given |= {"password": True, "packageName": "com.shop", "index": 0, "allowPoint": True}
    given |= {"image": {"artifact": "cart"}, "point": {"xPercent": 1, "yPercent": 2}}
    assert set(given) == {field.alias or name for name, field in Selector.model_fields.items()}
    words = Words(language)
    whole = words.selector(Selector.model_validate(given))
    for name in set(given) - {"allowPoint"}:
        without = {key: value for key, value in given.items() if key != name}
        assert words.selector(Selector.model_validate(without)) != whole, name


def test_all_languages_have_the_same_phrases_with_the_same_places() -> None:
    def places(language: Language) -> dict[str, set[str | None]]:
        return {key: {part[1] for part in string.Formatter().parse(text)} for key, text in PHRASES[language].items()}

    blank = {None}
    first_language = {key: found - blank for key, found in places("en").items()}
    assert [
        language for language in LANGUAGES if {k: v - blank for k, v in places(language).items()} != first_language
    ] == []


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_501, "1.6 s"),
        (60_000, "1 min"),
        (200_000, "3 min 20 s"),
        (200_001, "3 min 21 s"),
        (3_599_001, "60 min"),
        (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "1 d 1 h"),
        (600_000 * 1_000**4, "6,944,444,444 d 11 h"),
    ],
)
def test_a_time_is_told_in_its_two_largest_units_and_never_rounded_down(milliseconds: int, text: str) -> None:
    assert Words("en").time(milliseconds) == text


def test_a_whole_task_is_explained_step_by_step() -> None:
    loop = {
        "id": "loop",
        "action": "REPEAT",
        "maxIterations": 4,
        "steps": [{"id": "tap", "action": "CLICK", "selector": OK}],
    }
    explanation = explained(loop, maxDurationMs=9_000)
    assert (explanation.bound.time_ms, explanation.bound.effects) == (9_000, 4)
    (step,) = explanation.steps
    ((field, (inner,)),) = step.lists
    assert (step.does, field, inner.path, inner.does, inner.runs) == (
        "repeat at most 4 times",
        "steps",
        "/steps/0/steps/0",
        'tap text "OK"',
        4,
    )


def test_what_stands_beside_an_action_is_told_in_order() -> None:
    step = {"id": "a", "action": "CLICK", "selector": OK, **COMMON, "onFailure": {"goto": "end"}}
    del step["label"]
    assert explained(step, {"id": "end", "action": "BACK"}).steps[0].notes == (
        "first waits until com.shop is in front",
        "runs with a chance of 30 %",
        'only when text "OK" is visible',
        'afterwards, within 5 s: text "OK" is visible',
        "once more if nothing changed",
        "skipped when it cannot be done in time",
        'if it fails, the task goes on with "end"',
    )


def test_references_are_resolved_to_where_they_come_from() -> None:
    inputs = {
        "item": {"type": "string", "default": "tea"},
        "count": {"type": "integer", "default": 2},
        "who": {"type": "string"},
        "pin": {"type": "secret", "default": "hunter2"},
        "key": {"type": "secret"},
    }
    typed = "${inputs.item} ${inputs.count} ${inputs.who} ${inputs.pin} ${inputs.key} ${outputs.a} ${outputs.b}"
    steps: list[Document] = [
        {"id": "one", "action": "EXTRACT_TEXT", "selector": OK, "outputField": "a"},
        {"id": "two", "action": "EXTRACT", "selector": OK, "fields": [{"outputField": "b"}]},
        {"id": "three", "action": "EXTRACT_TEXT", "selector": OK, "outputField": "b"},
        {"id": "type", "action": "INPUT", "selector": OK, "value": f"{typed} $${{inputs.no}}"},
    ]
    found = explained(*steps, inputs=inputs, inputValues={"count": 3}).references
    assert [(each.name, each.resolves) for each in found] == [
        ("${inputs.item}", '"tea" (the default)'),
        ("${inputs.count}", "3 (given)"),
        ("${inputs.who}", "to be given with the run (string)"),
        ("${inputs.pin}", "[secret] (the default)"),
        ("${inputs.key}", "to be given with the run (secret)"),
        ("${outputs.a}", 'what step "one" reads'),
        ("${outputs.b}", 'what the last of the steps "two", "three" reads'),
    ]
    assert {each.places for each in found} == {("/steps/3/value",)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_secret_is_never_shown(language: Language) -> None:
    step = {"id": "a", "action": "INPUT", "selector": OK, "value": "${inputs.pin}"}
    inputs = {"pin": {"type": "secret", "default": "hunter2"}}
    assert "hunter" not in repr(explained(step, inputs=inputs, inputValues={"pin": "hunter3"}, language=language))


def test_texts_of_the_document_cannot_disturb_a_terminal() -> None:
    assert "\x1b" not in repr(first({"action": "CLICK", "selector": {"text": "\x1b[2J\u202e"}}))


def test_once_and_twice_are_words() -> None:
    assert first({"action": "SCROLL", "maxScrolls": 1}).does == "scroll down in what scrolls, at most once"
    assert first({"action": "REPEAT", "maxIterations": 2} | REQUIRED["REPEAT"]).does == "repeat at most twice"
