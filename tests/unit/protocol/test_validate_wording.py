"""Messages and hints: a person or a program must be able to repair the document from them alone."""

import json
import re

import pytest

from droidfleet_shared.protocol import phrasing, synonyms
from droidfleet_shared.protocol.schema import schema_of
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.wording import listed
from unit.protocol.documents import Document, click, click_on, errors, task

BACK = {"id": "back", "action": "BACK"}


def asking(**condition: object) -> Document:
    return task({"id": "a", "action": "ASSERT", "condition": condition})


def reading(**field: object) -> Document:
    return task({"id": "e", "action": "EXTRACT", "selector": {"text": "x"}, "fields": [field]})


def said(document: object, path: str) -> str:
    """Message and hint of the one error at a place."""
    (found,) = [issue for issue in errors(document) if issue.path == path]
    return f"{found.message} | {found.hint}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("click", "CLICK"),
        ("Click", "CLICK"),
        ("CLIK", "CLICK"),
        ("TAP", "CLICK"),
        ("tapElement", None),
        ("double_click", "CLICK"),
        ("swipe_until", "SCROLL"),
        ("type", "INPUT"),
        ("SET_TEXT", "INPUT"),
        ("sendKeys", "INPUT"),
        ("go back", "BACK"),
        ("waitFor", "WAIT"),
        ("EXTRACT-TEXT", "EXTRACT_TEXT"),
        ("getText", "EXTRACT_TEXT"),
        ("launchApp", "OPEN"),
        ("long_press", "LONG_CLICK"),
        ("sleep", "DELAY"),
        ("swipe", "SWIPE"),
        ("loop", "REPEAT"),
        ("goto", "BRANCH"),
        ("if_else", "IF"),
        ("", None),
        ("XYZZY", None),
    ],
)
def test_misspelt_action_is_recognised(written: str, meant: str | None) -> None:
    text = said(
        task({"id": "a", "action": written, "selector": {"text": "x"}, "value": "", "outputField": "o"}),
        "/steps/0/action",
    )
    assert ("Did you mean" in text) == (meant is not None)
    assert meant is None or f"Did you mean `{meant}`?" in text
    assert f"The actions are {listed([f'`{action}`' for action in IMPLEMENTED_ACTIONS])}." in text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Text", "text"),
        ("txt", "text"),
        ("text_contains", "textContains"),
        ("text-starts-with", "textStartsWith"),
        ("textRegex", "textMatches"),
        ("contentDescription", "description"),
        ("content-desc", "description"),
        ("accessibilityId", "description"),
        ("id", "resourceId"),
        ("resource-id", "resourceId"),
        ("resourceID", "resourceId"),
        ("class", "className"),
        ("nth", "index"),
        ("instance", "index"),
        ("parent", "within"),
        ("child", "has"),
        ("xPath", "xpath"),
        ("isEnabled", "enabled"),
    ],
)
def test_misspelt_selector_field_is_recognised(written: str, meant: str) -> None:
    text = said(click_on(**{written: "x"}), f"/steps/0/selector/{written}")
    assert f"`{written}` is not a field of a selector | Did you mean `{meant}`?" in text


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("timeout_ms", "timeoutMs"),
        ("timeout", "timeoutMs"),
        ("Optional", "optional"),
        ("package", "packageName"),
        ("app", "packageName"),
        ("count", "times"),
        ("skipIf", "unlessVisible"),
        ("comment", "label"),
    ],
)
def test_misspelt_step_field_is_recognised(written: str, meant: str) -> None:
    assert f"Did you mean `{meant}`?" in said(task(click(**{written: 1})), f"/steps/0/{written}")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("name", "taskId"), ("version", "schemaVersion"), ("agent", "assignedAgentName"), ("actions", "steps")],
)
def test_misspelt_task_field_is_recognised(written: str, meant: str) -> None:
    document = task(**{written: "x"})
    del document[meant]
    assert f"Did you mean `{meant}`?" in said(document, f"/{written}")


@pytest.mark.parametrize(
    ("document", "path", "meant"),
    [
        (asking(exists={"text": "x"}), "/steps/0/condition/exists", "visible"),
        (asking(notVisible={"text": "x"}), "/steps/0/condition/notVisible", "gone"),
        (asking(**{"and": []}), "/steps/0/condition/and", "all"),
        (asking(Or=[]), "/steps/0/condition/Or", "any"),
        (asking(packageName="a.b"), "/steps/0/condition/packageName", "foreground"),
        (reading(outputField="a", attr="text"), "/steps/0/fields/0/attr", "attribute"),
        (reading(name="a"), "/steps/0/fields/0/name", "outputField"),
        (reading(outputField="a", attribute="content-desc"), "/steps/0/fields/0/attribute", "description"),
        (click_on(image={"file": "a"}), "/steps/0/selector/image/file", "artifact"),
        (click_on(point={"x": 1, "yPercent": 1}, allowPoint=True), "/steps/0/selector/point/x", "xPercent"),
        (task(BACK | {"onFailure": "continue"}), "/steps/0/onFailure", "CONTINUE"),
        (task(BACK | {"onFailure": "ignore"}), "/steps/0/onFailure", "CONTINUE"),
        (task(inputs={"a": {"type": "int", "default": 1}}), "/inputs/a/type", "integer"),
        (task(inputs={"a": {"type": "string", "value": ""}}), "/inputs/a/value", "default"),
        (task({"id": "d", "action": "DELAY", "durationMs": 1}), "/steps/0/durationMs", "minMs"),
        (task({"id": "r", "action": "REPEAT", "count": 1, "steps": [BACK]}), "/steps/0/count", "maxIterations"),
    ],
)
def test_misspelt_word_of_another_object_is_recognised(document: Document, path: str, meant: str) -> None:
    assert f"Did you mean `{meant}`?" in said(document, path)


def test_every_synonym_is_of_a_word_of_ours() -> None:
    definitions = schema_of(Task)["$defs"]
    fields = {title: set(definition.get("properties", ())) for title, definition in definitions.items()}
    fields["step"] = set().union(*(fields[step.__name__] for step in IMPLEMENTED_ACTIONS.values()))
    objects = {word: fields[title] for title, (word, _) in phrasing._OBJECTS.items()} | {
        "step": fields["step"],
        "task": set(schema_of(Task)["properties"]),
    }
    assert set(synonyms.ACTIONS) <= set(IMPLEMENTED_ACTIONS)
    assert [where for where, known in synonyms.FIELDS.items() if not set(known) <= objects[where]] == []
    words = set(re.findall(r'"([^"]+)"', json.dumps(definitions)))
    assert set(synonyms.VALUES) <= words


def test_field_that_stands_already_is_not_suggested() -> None:
    assert "Did you mean" not in said(task(click(key="x")), "/steps/0/key")


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        (task(BACK | {"text": "OK"}), "/steps/0/text", 'stands in a step\'s selector: `"selector": {"text": ...}`'),
        (task(click(value="x")), "/steps/0/value", "`value` stands in `INPUT` steps."),
        (task(click(outputField="x")), "/steps/0/outputField", "`outputField` stands in `EXTRACT_TEXT` steps."),
        (task(BACK | {"selector": {}}), "/steps/0/selector", "`selector` stands in `CLICK`, `LONG_CLICK`, `INPUT`, "),
        (click_on(timeoutMs=1), "/steps/0/selector/timeoutMs", "`timeoutMs` stands in steps."),
        (
            task(BACK | {"maxDurationMs": 1}),
            "/steps/0/maxDurationMs",
            "`REPEAT` steps, and at the top of the document.",
        ),
        (task({"id": "a", "action": "WAIT", "seconds": 3}), "/steps/0/seconds", '`"action": "DELAY", "minMs": 3000`'),
        (task({"id": "a", "action": "IF", "if": {}}), "/steps/0/if", "Did you mean `condition`?"),
        (
            task({"id": "a", "action": "KEY", "key": "keycode_back"}),
            "/steps/0/key",
            "For Back there is the action `BACK`.",
        ),
        (task(BACK | {"repeatable": True}), "/steps/0/repeatable", "`repeatable` stands at the top of the document."),
        (task(idempotent=True), "/idempotent", "Did you mean `repeatable`?"),
        (task(timeoutMs=1), "/timeoutMs", "Did you mean `maxDurationMs`?"),
        (asking(text="Done"), "/steps/0/condition/text", 'stands in a selector: `"visible": {"text": ...}`'),
        (click_on(visible={"text": "Done"}), "/steps/0/selector/visible", "Here stands a selector alone"),
        (task(BACK | {"after": {"gone": {}}}), "/steps/0/after/gone", 'in a condition: `"condition": {"gone": ...}`'),
    ],
)
def test_field_in_the_wrong_place_is_sent_to_the_right_one(document: object, path: str, expected: str) -> None:
    assert expected in said(document, path)


def test_field_of_no_kind_gets_the_list_of_fields() -> None:
    assert "The fields here are `id`, `label`, " in said(task(BACK | {"zzz": 1}), "/steps/0/zzz")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("timeoutMs", "5s", 'found `"5s"`, a text; expected a whole number from 100 to 30000'),
        ("timeoutMs", 5, "`5` is out of range; expected a whole number from 100 to 30000"),
        ("timeoutMs", 5, 'For example `"timeoutMs": 8000`.'),
        ("timeoutMs", 1.5, "found `1.5`, a number with a fraction"),
        ("optional", 1, "found `1`, a whole number; expected `true` or `false`"),
        ("optional", None, "Leave the field out instead of writing `null`."),
        ("label", None, "Leave the field out instead of writing `null`."),
        ("packageName", "a b", 'For example `"packageName": "com.android.settings"`.'),
        ("selector", "OK", 'found `"OK"`, a text; expected a selector, an object'),
        ("selector", [1, 2], "found a list of 2; expected a selector"),
        ("action", None, "found `null`; expected the name of an action"),
    ],
)
def test_wrong_value_of_a_step_is_explained(field: str, value: object, expected: str) -> None:
    assert expected in said(task(click(**{field: value})), f"/steps/0/{field}")


@pytest.mark.parametrize(
    ("selector", "field", "expected"),
    [
        ({"textMatches": "a(b"}, "textMatches", "is not accepted: a group is not closed"),
        ({"xpath": "//a", "text": "b", "index": 0}, "xpath", "`text` and `index` cannot stand beside it"),
        ({"text": "${user}"}, "text", "A literal `${` is written `$${`."),
    ],
)
def test_wrong_value_of_a_selector_is_explained(selector: dict[str, object], field: str, expected: str) -> None:
    assert expected in said(click_on(**selector), f"/steps/0/selector/{field}")


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (5, "expected a step, an object with `id` and `action`"),
        (5, 'For example `"steps": [{'),
        ({"id": "a"}, "a step has no `action` | The actions are"),
        ({"id": "a", "action": "CLICK"}, 'Add it; for example `"selector": {"text": "Add to cart"}`.'),
        ({"id": "a", "action": "INPUT", "selector": {"text": "x"}}, "an `INPUT` step must have `value`: a text"),
        (click(times=5, intervalMs=2000), "5 taps with 2000 ms between them take at least 8000 ms"),
    ],
)  # fmt: skip
def test_wrong_step_is_explained(step: object, expected: str) -> None:
    assert expected in said(task(step), "/steps/0")


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        ([], "", "found an empty list; expected a task, an object"),
        (task(steps={}), "/steps", "found an empty object; expected a list of steps"),
        (task(inputs={"a": "string"}), "/inputs/a", 'For example `"inputs": {"item": {"type": "string"}}`.'),
        (task(inputs={"a b": {"type": "string", "default": ""}}), "/inputs/a b", 'For example `"inputs": {"item": '),
        (task(artifacts={"a": 5}), "/artifacts/a", 'For example `"artifacts": {"cart_icon": '),
        (task(BACK, BACK), "/steps/1/id", "the id `back` is used already, by the step at /steps/0"),
        (task(taskId="x" * 5000), "/taskId", "…` (5,000 characters) is out of range"),
        (task(taskId="a\u202eb\x00"), "/taskId", '`"a\\u202eb\\u0000"`'),
        (task(revision=10**300), "/revision", "a very large number is out of range"),
        (task(schemaVersion=3), "/schemaVersion", 'Write `"schemaVersion": 1`'),
    ],
)
def test_wrong_task_is_explained(document: object, path: str, expected: str) -> None:
    assert expected in said(document, path)


def test_a_missing_value_is_asked_for_with_the_run_and_a_secret_never_in_the_document() -> None:
    inputs = {"item": {"type": "string"}, "pin": {"type": "secret"}}
    hints = [issue.hint for issue in errors(task(BACK, inputs=inputs, assignedAgentName="phone-01"))]
    assert hints == [
        'Give one with the run, `--input item=VALUE`, or in the document: `"inputValues": {"item": "green tea"}`.',
        "Give it with the run: `--secret pin`.",
    ]
