"""The codes of the tree: containers, jumps, conditions, inputs, references, pictures, and what single actions ask."""

from __future__ import annotations

import base64
import json

import pytest

from droidfleet_shared.protocol.validate import validate_template
from unit.protocol.documents import Document, click, click_on, codes, errors, task

BACK = {"id": "back", "action": "BACK"}
LAST = {"id": "last", "action": "BACK"}
SEEN = {"visible": {"text": "Done"}}
READ = {"id": "read", "action": "EXTRACT_TEXT", "selector": {"text": "x"}, "outputField": "total"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n rest").decode()


def branch(goto: str, **fields: object) -> Document:
    return {"id": "branch", "action": "BRANCH", "condition": SEEN, "goto": goto} | fields


def when(condition: object) -> Document:
    return task(BACK | {"when": condition}, READ)


def rows(*outputs: str, **fields: object) -> Document:
    made = {"id": "rows", "action": "EXTRACT", "selector": {"text": "x"}}
    return made | {"fields": [{"outputField": each} for each in outputs]} | fields


VALID = [
    task(branch("last"), BACK, LAST),
    task(BACK | {"onFailure": {"goto": "last"}}, LAST),
    task(BACK | {"onFailure": "CONTINUE"}),
    task({"id": "g", "action": "GROUP", "steps": [BACK | {"onFailure": {"goto": "last"}}, LAST]}),
    task({"id": "i", "action": "IF", "condition": SEEN, "then": [branch("back"), BACK], "else": [LAST]}),
    task({"id": "r", "action": "REPEAT", "steps": [BACK], "until": SEEN, "maxDurationMs": 5_000}),
    when({"all": [SEEN, {"any": [{"not": SEEN}, {"foreground": "a.b"}]}, {"activity": ".Main"}]}),
    when({"output": "total", "matches": "\\d+"}),
    task(BACK | {"after": {"condition": {"gone": {"text": "x"}}, "timeoutMs": 9_000}, "redo": True}),
    task(READ, click(selector={"textMatches": "a${outputs.total}b"})),
    task(READ, click(selector={"xpath": "//node[@text=${outputs.total}]"})),
    task(READ, {"id": "o", "action": "OPEN", "packageName": "${outputs.total}"}),
    task(
        {"id": "t", "action": "INPUT", "selector": {"text": "x"}, "value": "${inputs.pin}"},
        inputs={"pin": {"type": "secret"}},
        inputValues={"pin": "a ${literal} value"},
    ),
    task(inputs={"n": {"type": "integer", "default": -(2**53)}}, inputValues={"n": 2**53}),
    task(inputs={"n": {"type": "number", "default": 1}, "b": {"type": "boolean"}}, inputValues={"b": False}),
    click_on(ocrText="Start", index=1),
    click_on(point={"xPercent": 0, "yPercent": 100}, allowPoint=True),
    task(click(selector={"image": {"artifact": "icon"}}), artifacts={"icon": PNG}),
    task(artifacts={"icon": base64.b64encode(b"\xff\xd8\xff\xe0 rest").decode()}),
    task(click(unlessVisible={"ocrText": "In cart"})),
    task({"id": "s", "action": "SCROLL", "until": {"ocrText": "End"}}),
    task({"id": "w", "action": "WAIT", "selector": {"ocrText": "Start"}}),
    when({"visible": {"ocrText": "Start"}}),
    task({"id": "d", "action": "DELAY", "minMs": 0, "maxMs": 0}),
    task({"id": "d", "action": "DRAG", "selector": {"text": "a"}, "byPercent": {"y": -30}}),
    task({"id": "s", "action": "SCROLL", "until": {"text": "x"}}),
    task({"id": "k", "action": "KEY", "key": "QUICK_SETTINGS"}),
    task(READ, READ | {"id": "again"}),
    task(READ | {"append": True}, rows("total", all=True), rows("total") | {"id": "one", "append": True}),
]


@pytest.mark.parametrize("document", VALID)
def test_document_is_valid(document: object) -> None:
    assert errors(document) == ()


def inputs(**fields: object) -> Document:
    return task(**fields)


INVALID: list[tuple[Document, list[tuple[str, str]]]] = [
    # jumps
    (task(branch("nowhere"), LAST), [("/steps/0/goto", "UNKNOWN_STEP")]),
    (task(BACK, branch("back")), [("/steps/1/goto", "BACKWARD_GOTO")]),
    (task(branch("branch"), LAST), [("/steps/0/goto", "BACKWARD_GOTO")]),
    (
        task({"id": "g", "action": "GROUP", "steps": [branch("last")]}, LAST),
        [("/steps/0/steps/0/goto", "UNKNOWN_STEP")],
    ),
    (task(branch("back"), {"id": "g", "action": "GROUP", "steps": [BACK]}), [("/steps/0/goto", "UNKNOWN_STEP")]),
    (task(branch("")), [("/steps/0/goto", "OUT_OF_RANGE")]),
    (task(BACK | {"onFailure": "IGNORE"}), [("/steps/0/onFailure", "BAD_VALUE")]),
    (task(BACK | {"onFailure": 5}), [("/steps/0/onFailure", "WRONG_TYPE")]),
    (task(BACK | {"onFailure": {}}), [("/steps/0/onFailure", "MISSING_FIELD")]),
    (task(BACK | {"onFailure": {"goto": 5}}), [("/steps/0/onFailure/goto", "WRONG_TYPE")]),
    (
        task(BACK | {"onFailure": {"goto": "last", "x": 1}}, LAST),
        [("/steps/0/onFailure/x", "UNKNOWN_FIELD")],
    ),
    (click_on(text="x", onFailure={"goto": "tap"}), [("/steps/0/selector/onFailure", "UNKNOWN_FIELD")]),
    (task(onFailure="STOP"), [("/onFailure", "UNKNOWN_FIELD")]),
    (
        task({"id": "a", "action": "?", "onFailure": 5}),
        [("/steps/0/action", "UNKNOWN_ACTION"), ("/steps/0/onFailure", "WRONG_TYPE")],
    ),
    # containers
    (task({"id": "g", "action": "GROUP", "steps": []}), [("/steps/0/steps", "EMPTY_STEPS")]),
    (task({"id": "g", "action": "GROUP"}), [("/steps/0", "MISSING_FIELD")]),
    (
        task({"id": "i", "action": "IF", "condition": SEEN, "then": [BACK, BACK]}),
        [("/steps/0/then/1/id", "DUPLICATE_ID")],
    ),
    (task({"id": "r", "action": "REPEAT", "steps": [{"id": "x"}]}), [("/steps/0/steps/0", "MISSING_FIELD")]),
    (
        task({"id": "r", "action": "REPEAT", "steps": [BACK], "maxIterations": 0}),
        [("/steps/0/maxIterations", "OUT_OF_RANGE")],
    ),
    (task({"id": "r", "action": "REPEAT", "steps": [BACK], "redo": True}), [("/steps/0/redo", "CONFLICTING_FIELDS")]),
    # conditions
    (when({}), [("/steps/0/when", "MISSING_FIELD")]),
    (when({"visible": {}}), [("/steps/0/when/visible", "EMPTY_SELECTOR")]),
    (when(SEEN | {"gone": {"text": "x"}}), [("/steps/0/when", "CONFLICTING_FIELDS")]),
    (when({"all": []}), [("/steps/0/when/all", "OUT_OF_RANGE")]),
    (
        when({"any": [SEEN, {"vissible": {}}]}),
        [("/steps/0/when/any/1", "MISSING_FIELD"), ("/steps/0/when/any/1/vissible", "UNKNOWN_FIELD")],
    ),
    (when({"output": "total"}), [("/steps/0/when", "MISSING_FIELD")]),
    (when({"output": "total", "equals": "a", "contains": "b"}), [("/steps/0/when", "CONFLICTING_FIELDS")]),
    (when({"equals": "a"}), [("/steps/0/when", "MISSING_FIELD")] * 2),
    (when({"output": "other", "equals": "a"}), [("/steps/0/when/output", "UNKNOWN_REFERENCE")]),
    (when({"output": "total", "matches": "("}), [("/steps/0/when/matches", "BAD_REGEX")]),
    (when({"output": "total", "contains": " "}), [("/steps/0/when/contains", "BAD_VALUE")]),
    (when({"not": {"not": {"not": {"not": {"not": SEEN}}}}}), [("/steps/0/when" + "/not" * 5, "TOO_DEEP")]),
    (when({"any": [{"all": [SEEN] * 20}, SEEN]}), [("/steps/0/when", "TOO_DEEP")]),
    (when({"foreground": "not a package"}), [("/steps/0/when/foreground", "BAD_VALUE")]),
    (when("visible"), [("/steps/0/when", "WRONG_TYPE")]),
    # inputs
    (inputs(inputs={"a": {}}), [("", "MISSING_FIELD"), ("/inputs/a", "MISSING_FIELD")]),
    (inputs(inputs={"a": {"type": "text", "default": ""}}), [("/inputs/a/type", "BAD_VALUE")]),
    (inputs(inputs={"a b": {"type": "string", "default": ""}}), [("/inputs/a b", "BAD_VALUE")]),
    (inputs(inputs={"a": {"type": "integer", "default": 1.5}}), [("/inputs/a/default", "WRONG_TYPE")]),
    (inputs(inputs={"a": {"type": "integer", "default": True}}), [("/inputs/a/default", "WRONG_TYPE")]),
    (inputs(inputs={"a": {"type": "boolean", "default": "true"}}), [("/inputs/a/default", "WRONG_TYPE")]),
    (inputs(inputs={"a": {"type": "number", "default": 10**400}}), [("/inputs/a/default", "OUT_OF_RANGE")]),
    (inputs(inputs={"a": {"type": "string", "default": []}}), [("/inputs/a/default", "WRONG_TYPE")]),
    (inputs(inputs={"a": {"type": "string"}}), [("", "MISSING_FIELD")]),
    (inputs(inputs={"a": {"type": "string"}}, inputValues={}), [("/inputValues", "MISSING_FIELD")]),
    (inputs(inputValues={"a": 1}), [("/inputValues/a", "UNKNOWN_FIELD")]),
    (inputs(inputs={"a": {"type": "secret"}}, inputValues={"a": 4711}), [("/inputValues/a", "WRONG_TYPE")]),
    (inputs(randomSeed=2**53), [("/randomSeed", "OUT_OF_RANGE")]),
    *[
        (task(inputs={each: {"type": "?", "default": ""}}), [(f"/inputs/{each}/type", "BAD_VALUE")])
        for each in ("onFailure", "default", "steps", "inputs")
    ],
    (task(artifacts={"[key]": 5}), [("/artifacts/[key]", "WRONG_TYPE")]),
    (task(inputs={"[key]": 5}), [("/inputs/[key]", "BAD_VALUE"), ("/inputs/[key]", "WRONG_TYPE")]),
    # outputs
    (task(READ, READ | {"id": "b", "append": True}), [("/steps/1/outputField", "CONFLICTING_FIELDS")]),
    (
        task(READ, {"id": "r", "action": "REPEAT", "steps": [rows("a", "total", all=True)]}),
        [("/steps/1/steps/0/fields/1/outputField", "CONFLICTING_FIELDS")],
    ),
    # references
    (click_on(text="${inputs.a}"), [("/steps/0/selector/text", "UNKNOWN_REFERENCE")]),
    (click_on(text="${outputs.a}"), [("/steps/0/selector/text", "UNKNOWN_REFERENCE")]),
    (click_on(text="${a}"), [("/steps/0/selector/text", "UNKNOWN_REFERENCE")]),
    (task(READ, BACK | {"id": "${outputs.total}"}), [("/steps/1/id", "UNKNOWN_REFERENCE")]),
    (task(READ, click(selector={"xpath": "//a[@b='${outputs.total}']"})), [("/steps/1/selector/xpath", "BAD_XPATH")]),
    (
        task(click(selector={"text": "${inputs.pin}"}), inputs={"pin": {"type": "secret", "default": "1"}}),
        [("/steps/0/selector/text", "UNKNOWN_REFERENCE")],
    ),
    # sight
    (click_on(ocrText="a", text="b"), [("/steps/0/selector/ocrText", "CONFLICTING_FIELDS")]),
    (click_on(point={"xPercent": 1, "yPercent": 1}), [("/steps/0/selector", "MISSING_FIELD")]),
    (click_on(point={"xPercent": 1, "yPercent": 1}, allowPoint=False), [("/steps/0/selector", "MISSING_FIELD")]),
    (click_on(text="a", allowPoint=True), [("/steps/0/selector/allowPoint", "CONFLICTING_FIELDS")]),
    (
        click_on(point={"xPercent": 101}, allowPoint=True),
        [("/steps/0/selector/point", "MISSING_FIELD"), ("/steps/0/selector/point/xPercent", "OUT_OF_RANGE")],
    ),
    (click_on(text="a", within={"ocrText": "b"}), [("/steps/0/selector/within/ocrText", "CONFLICTING_FIELDS")]),
    (
        when({"visible": {"point": {"xPercent": 1, "yPercent": 1}, "allowPoint": True}}),
        [("/steps/0/when/visible/point", "CONFLICTING_FIELDS")],
    ),
    (
        task({"id": "i", "action": "INPUT", "selector": {"ocrText": "a"}, "value": ""}),
        [("/steps/0/selector/ocrText", "CONFLICTING_FIELDS")],
    ),
    (click_on(image={"artifact": "icon"}), [("/steps/0/selector/image/artifact", "UNKNOWN_ARTIFACT")]),
    (task(artifacts={"icon": "bm8gcGljdHVyZQ=="}), [("/artifacts/icon", "BAD_ARTIFACT")]),
    (task(artifacts={"icon": "%%%"}), [("/artifacts/icon", "BAD_ARTIFACT")]),
    (task(artifacts={"icon": 5}), [("/artifacts/icon", "WRONG_TYPE")]),
    # single actions
    (task({"id": "w", "action": "WAIT"}), [("/steps/0", "MISSING_FIELD")]),
    (
        task({"id": "w", "action": "WAIT", "selector": {"text": "a"}, "condition": SEEN}),
        [("/steps/0", "CONFLICTING_FIELDS")],
    ),
    (task({"id": "d", "action": "DELAY", "minMs": 2, "maxMs": 1}), [("/steps/0", "CONFLICTING_FIELDS")]),
    (task({"id": "d", "action": "DRAG", "selector": {"text": "a"}}), [("/steps/0", "MISSING_FIELD")]),
    (
        task({"id": "d", "action": "DRAG", "selector": {"text": "a"}, "to": {"text": "a"}}),
        [("/steps/0", "CONFLICTING_FIELDS")],
    ),
    (
        task({"id": "d", "action": "DRAG", "selector": {"text": "a"}, "byPercent": {}}),
        [("/steps/0", "CONFLICTING_FIELDS")],
    ),
    (
        task({"id": "l", "action": "LONG_CLICK", "selector": {"text": "a"}, "durationMs": 5_000}),
        [("/steps/0", "CONFLICTING_FIELDS")],
    ),
    (
        task({"id": "s", "action": "SWIPE", "direction": "UP", "durationMs": 300, "timeoutMs": 350}),
        [("/steps/0", "CONFLICTING_FIELDS")],
    ),
    (task({"id": "k", "action": "KEY", "key": "home"}), [("/steps/0/key", "BAD_VALUE")]),
    (
        task({"id": "e", "action": "EXTRACT", "selector": {"text": "a"}, "fields": [{"outputField": "x"}] * 2}),
        [("/steps/0/fields/1/outputField", "DUPLICATE_ID")],
    ),
    (
        task(
            {"id": "e", "action": "EXTRACT", "selector": {"text": "a"}, "fields": [{"outputField": "x"}], "maxItems": 5}
        ),
        [("/steps/0/maxItems", "CONFLICTING_FIELDS")],
    ),
    (
        task({"id": "e", "action": "EXTRACT", "selector": {"text": "a"}, "fields": [{}]}),
        [("/steps/0/fields/0", "MISSING_FIELD")],
    ),
    (
        task({"id": "d", "action": "DRAG", "selector": {"text": "a"}, "byPercent": {"dx": 5}}),
        [("/steps/0/byPercent/dx", "UNKNOWN_FIELD")],
    ),
    (
        task({"id": "e", "action": "EXTRACT", "selector": {"text": "a"}, "fields": []}),
        [("/steps/0/fields", "OUT_OF_RANGE")],
    ),
]


@pytest.mark.parametrize(("document", "expected"), INVALID)
def test_document_gives_its_codes(document: Document, expected: list[tuple[str, str]]) -> None:
    assert codes(document) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"a\Q.${inputs.x}\E", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"\Q${inputs.x}", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"\\Q${inputs.x}", []),
        (r"\Q.\E${inputs.x}", []),
        (r"\Q$${inputs.x}\E", []),
        (r"a{${inputs.x}}", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"[a-${inputs.x}]", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"[]${inputs.x}]", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"(?${inputs.x})", [("/steps/0/selector/textMatches", "BAD_REGEX")]),
        (r"\[${inputs.x}\]", []),
        (r"(?:${inputs.x})+[a-z]{2}", []),
        (r"(${inputs.x}|${inputs.x})?", []),
    ],
)
def test_a_value_is_not_put_where_it_could_not_mean_itself(pattern: str, expected: list[tuple[str, str]]) -> None:
    step = {"id": "tap", "action": "CLICK", "selector": {"textMatches": pattern}}
    assert codes(task(step, inputs={"x": {"type": "string", "default": "a.b"}})) == expected


def test_template_may_lack_the_values_of_its_inputs() -> None:
    document = task(inputs={"a": {"type": "string"}})
    del document["assignedAgentName"]
    assert validate_template(json.dumps(document)).errors == ()


def test_no_message_shows_the_value_of_an_input() -> None:
    wrong = task(
        inputs={"pin": {"type": "secret"}, "n": {"type": "integer"}},
        inputValues={"pin": 471147, "n": "s3cr3t", "p": "hunter2"},
    )
    said = " ".join(f"{issue.message} {issue.hint}" for issue in errors(wrong))
    assert not any(value in said for value in ("471147", "s3cr3t", "hunter2"))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (task(branch("las"), LAST), "Did you mean `last`?"),
        (task(BACK, branch("back")), "To run steps again use REPEAT."),
        (task({"id": "g", "action": "GROUP", "steps": [branch("last")]}, LAST), "is on another level, at /steps/1"),
        (task(BACK | {"onFailure": "last"}, LAST), 'A jump is written `{"goto": "last"}`.'),
        (when({"visible": {"text": "a"}, "gone": {"text": "b"}}), '`{"all": [{"visible": ...}, {"gone": ...}]}`'),
        (when({"vsible": {"text": "a"}}), "Did you mean `visible`?"),
        (task(BACK | {"after": SEEN}), '`"condition": {"visible": ...}`'),
        (task({"id": "k", "action": "KEY", "key": "home"}), "Did you mean `HOME`?"),
        (task(inputValues={"a": 1}), "The task declares no `inputs`"),
        (task(inputs={"item": {"type": "string", "default": ""}}, inputValues={"itme": "x"}), "Did you mean `item`?"),
        (click_on(text="${inputs.a}"), 'Declare it; for example `"inputs": {"a": {"type": "string"}}`.'),
        (task(READ, click(selector={"text": "${outputs.totl}"})), "Did you mean `total`?"),
        (click_on(image={"artifact": "icon"}), "Add the picture at the top"),
        (task(READ, rows("total", all=True)), "`total` is a list here, and a text in the step at /steps/0"),
    ],
)
def test_hint_says_what_to_write_instead(document: Document, expected: str) -> None:
    assert any(expected in f"{issue.message} | {issue.hint}" for issue in errors(document))
