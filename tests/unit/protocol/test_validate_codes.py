"""Each code: what gives it, and where. Wording is tested in `test_validate_wording`."""

import json

import pytest

from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.steps import ClickStep
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import (
    check_agent,
    validate_document,
    validate_task,
    validate_template,
)
from unit.protocol.documents import click, click_on, codes, errors, task


def nested(*, depth: int) -> dict[str, object]:
    """A selector of ``depth`` levels."""
    selector: dict[str, object] = {"text": "a"}
    for _ in range(depth - 1):
        selector = {"within": selector}
    return selector


def group(identity: str, *steps: object) -> dict[str, object]:
    return {"id": identity, "action": "GROUP", "steps": list(steps)}


BACK = {"id": "back", "action": "BACK"}
READ = {"id": "read", "action": "EXTRACT_TEXT", "selector": {"text": "x"}}

VALID = [
    task(),
    task(revision=7, maxDurationMs=60_000, repeatable=True),
    task(click(times=3, intervalMs=500, unlessVisible={"text": "In cart"}, label="tap", optional=True)),
    task({"id": "i", "action": "INPUT", "selector": {"focused": True}, "value": "", "clear": False, "submit": True}),
    task({"id": "w", "action": "WAIT", "selector": {"hint": "Search"}, "packageName": "android", "activityName": ".A"}),
    task(
        {"id": "e", "action": "EXTRACT_TEXT", "selector": {"index": 2, "below": {"text": "Total"}}, "outputField": "t"}
    ),
    click_on(xpath="//node[@text='OK']"),
    click_on(textMatches=r"Order #\d+", descriptionContains="^_^", resourceId="a:id/b", className="x", password=False),
    click_on(text='It\'s "ok" 50% %d /help @home'),
    click_on(**nested(depth=5)),
    task(*[BACK | {"id": str(number)} for number in range(200)]),
    task(taskId="Aufgabe 1/2 für 茶"),
]


@pytest.mark.parametrize("document", VALID)
def test_valid_document_gives_the_task(document: object) -> None:
    outcome = validate_task(json.dumps(document))
    assert outcome.errors == ()
    assert outcome.document == document
    assert outcome.require() is outcome.task


INVALID = [
    ([], [("", "WRONG_TYPE")]),
    ("{", [("", "BAD_JSON")]),
    (" " * 300_000, [("", "TOO_LARGE")]),
    ('{"schemaVersion": 1, "schemaVersion": 1}', [("", "MISSING_FIELD")] * 3 + [("/schemaVersion", "BAD_JSON")]),
    (task(schemaVersion=2), [("/schemaVersion", "UNSUPPORTED_VERSION")]),
    (task(schemaVersion=0), [("/schemaVersion", "UNSUPPORTED_VERSION")]),
    (task(schemaVersion="1"), [("/schemaVersion", "WRONG_TYPE")]),
    (task(schemaVersion=True), [("/schemaVersion", "WRONG_TYPE")]),
    (task(schemaVersion=1.0), [("/schemaVersion", "WRONG_TYPE")]),
    (task(taskId=""), [("/taskId", "OUT_OF_RANGE")]),
    (task(taskId=" x"), [("/taskId", "BAD_VALUE")]),
    (task(taskId="a\nb"), [("/taskId", "BAD_VALUE")]),
    (task(taskId="x" * 129), [("/taskId", "OUT_OF_RANGE")]),
    (task(taskId=None), [("/taskId", "WRONG_TYPE")]),
    (task(revision=None), [("/revision", "WRONG_TYPE")]),
    (task(revision=0), [("/revision", "OUT_OF_RANGE")]),
    (task(revision=2**31), [("/revision", "OUT_OF_RANGE")]),
    (task(revision=10**300), [("/revision", "OUT_OF_RANGE")]),
    (task(revision=1.5), [("/revision", "WRONG_TYPE")]),
    (task(maxDurationMs=999), [("/maxDurationMs", "OUT_OF_RANGE")]),
    (task(maxDurationMs=86_400_001), [("/maxDurationMs", "OUT_OF_RANGE")]),
    (task(repeatable="yes"), [("/repeatable", "WRONG_TYPE")]),
    (task(repeatable=None), [("/repeatable", "WRONG_TYPE")]),
    (task(BACK | {"repeatable": True}), [("/steps/0/repeatable", "UNKNOWN_FIELD")]),
    (task(assignedAgentName="phone-01 "), [("/assignedAgentName", "BAD_VALUE")]),
    (task(inputs={"a": None, "b": "${x}"}), [("/inputs/a", "WRONG_TYPE"), ("/inputs/b", "WRONG_TYPE")]),
    (task(steps=[]), [("/steps", "EMPTY_STEPS")]),
    (task(steps={}), [("/steps", "WRONG_TYPE")]),
    (task(steps="BACK"), [("/steps", "WRONG_TYPE")]),
    (task(*[BACK | {"id": str(number)} for number in range(201)]), [("/steps", "TOO_MANY_STEPS")]),
    (task(BACK, None, 5), [("/steps/1", "WRONG_TYPE"), ("/steps/2", "WRONG_TYPE")]),
    (task(BACK, BACK), [("/steps/1/id", "DUPLICATE_ID")]),
    (task({"action": "BACK"}), [("/steps/0", "MISSING_FIELD")]),
    (task({"id": "a"}), [("/steps/0", "MISSING_FIELD")]),
    (task({"id": "a", "action": 5}), [("/steps/0/action", "WRONG_TYPE")]),
    (task({"id": "a", "action": ["BACK"]}), [("/steps/0/action", "WRONG_TYPE")]),
    (task({"id": "a", "action": "click"}), [("/steps/0", "MISSING_FIELD"), ("/steps/0/action", "UNKNOWN_ACTION")]),
    (task({"id": "a", "action": "XYZZY"}), [("/steps/0/action", "UNKNOWN_ACTION")]),
    (task({"id": 5, "action": "XYZZY"}), [("/steps/0/id", "WRONG_TYPE"), ("/steps/0/action", "UNKNOWN_ACTION")]),
    (task({"id": "a", "action": "SWIPE", "direction": "up"}), [("/steps/0/direction", "BAD_VALUE")]),
    (task(BACK | {"selector": {}}), [("/steps/0/selector", "UNKNOWN_FIELD")]),
    (task(BACK | {"timeoutMs": 99}), [("/steps/0/timeoutMs", "OUT_OF_RANGE")]),
    (task(BACK | {"timeoutMs": 30_001}), [("/steps/0/timeoutMs", "OUT_OF_RANGE")]),
    (task(BACK | {"optional": "yes"}), [("/steps/0/optional", "WRONG_TYPE")]),
    (task(BACK | {"optional": None}), [("/steps/0/optional", "WRONG_TYPE")]),
    (task(BACK | {"label": None}), [("/steps/0/label", "WRONG_TYPE")]),
    (task(BACK | {"packageName": "com.shop/.Main"}), [("/steps/0/packageName", "BAD_VALUE")]),
    (task(BACK | {"activityName": ".Main"}), [("/steps/0", "MISSING_FIELD")]),
    (task(BACK | {"packageName": "a", "activityName": "a/.Main"}), [("/steps/0/activityName", "BAD_VALUE")]),
    (task(click(times=0)), [("/steps/0/times", "OUT_OF_RANGE")]),
    (task(click(times=11)), [("/steps/0/times", "OUT_OF_RANGE")]),
    (task(click(times=3, intervalMs=2_500)), [("/steps/0", "CONFLICTING_FIELDS")]),
    (task(click(times=2, timeoutMs=100)), [("/steps/0", "CONFLICTING_FIELDS")]),
    (task({"id": "a", "action": "CLICK"}), [("/steps/0", "MISSING_FIELD")]),
    (task({"id": "a", "action": "WAIT"}), [("/steps/0", "MISSING_FIELD")]),
    (task({"id": "a", "action": "INPUT", "selector": {"text": "x"}}), [("/steps/0", "MISSING_FIELD")]),
    (task(READ | {"outputField": "a b"}), [("/steps/0/outputField", "BAD_VALUE")]),
    (task(click(selector="OK")), [("/steps/0/selector", "WRONG_TYPE")]),
    (task(click(unlessVisible={})), [("/steps/0/unlessVisible", "EMPTY_SELECTOR")]),
    (click_on(), [("/steps/0/selector", "EMPTY_SELECTOR")]),
    (click_on(index=0), [("/steps/0/selector", "EMPTY_SELECTOR")]),
    (click_on(text="x", within={}), [("/steps/0/selector/within", "EMPTY_SELECTOR")]),
    (click_on(text=""), [("/steps/0/selector/text", "OUT_OF_RANGE")]),
    (click_on(text=" \u200b\u00a0"), [("/steps/0/selector/text", "BAD_VALUE")]),
    (click_on(textContains="\n"), [("/steps/0/selector/textContains", "BAD_VALUE")]),
    (click_on(text=5), [("/steps/0/selector/text", "WRONG_TYPE")]),
    (click_on(text=None), [("/steps/0/selector", "EMPTY_SELECTOR"), ("/steps/0/selector/text", "WRONG_TYPE")]),
    (click_on(text="x", enabled=1), [("/steps/0/selector/enabled", "WRONG_TYPE")]),
    (click_on(text="x", index=-1), [("/steps/0/selector/index", "OUT_OF_RANGE")]),
    (click_on(text="x", index="0"), [("/steps/0/selector/index", "WRONG_TYPE")]),
    (click_on(text="x", packageName="My App"), [("/steps/0/selector/packageName", "BAD_VALUE")]),
    (click_on(textMatches="(a"), [("/steps/0/selector/textMatches", "BAD_REGEX")]),
    (click_on(has={"descriptionMatches": r"\1"}), [("/steps/0/selector/has/descriptionMatches", "BAD_REGEX")]),
    (click_on(textMatches="a" * 513), [("/steps/0/selector/textMatches", "OUT_OF_RANGE")]),
    (click_on(xpath="//*["), [("/steps/0/selector/xpath", "BAD_XPATH")]),
    (click_on(xpath="//a", text="b"), [("/steps/0/selector/xpath", "CONFLICTING_FIELDS")]),
    (click_on(xpath="//a", index=0), [("/steps/0/selector/xpath", "CONFLICTING_FIELDS")]),
    (click_on(**nested(depth=6)), [("/steps/0/selector" + "/within" * 5, "TOO_DEEP")]),
    (click_on(**nested(depth=60)), [("/steps/0/selector" + "/within" * 5, "TOO_DEEP")]),
    (click_on(text="${inputs.name}"), [("/steps/0/selector/text", "UNKNOWN_REFERENCE")]),
    (click_on(text="a ${x"), [("/steps/0/selector/text", "UNKNOWN_REFERENCE")]),
    (task(taskId="${outputs.x}"), [("/taskId", "UNKNOWN_REFERENCE")]),
    (task(group("a", BACK), BACK), [("/steps/1/id", "DUPLICATE_ID")]),
    (task(group("a")), [("/steps/0/steps", "EMPTY_STEPS")]),
]  # fmt: skip


@pytest.mark.parametrize(("document", "expected"), INVALID)
def test_invalid_document_gives_its_codes_in_document_order(document: object, expected: list[tuple[str, str]]) -> None:
    assert codes(document) == expected


def test_too_many_selectors_in_one_are_refused() -> None:
    relations = ("within", "has", "leftOf", "rightOf", "above")
    inner = {relation: {"text": "a"} for relation in relations}
    wide = dict.fromkeys(relations, inner)
    assert codes(click_on(**wide)) == [("/steps/0/selector", "TOO_DEEP")]


def test_steps_are_counted_over_the_whole_tree() -> None:
    steps = [group(f"g{outer}", *[BACK | {"id": f"{outer}.{inner}"} for inner in range(99)]) for outer in range(2)]
    assert ("/steps", "TOO_MANY_STEPS") not in codes(task(*steps))
    assert ("/steps", "TOO_MANY_STEPS") in codes(task(*steps, BACK))


def test_steps_nested_six_deep_are_too_deep() -> None:
    inner = group("5", BACK)
    for identity in "4321":
        inner = group(identity, inner)
    place = "/steps/0" * 5 + "/steps"
    assert (place, "TOO_DEEP") in codes(task(inner))
    assert (place, "TOO_DEEP") not in codes(task(inner["steps"][0]))  # type: ignore[index]  # a tree of the test


def test_all_errors_of_a_document_are_reported() -> None:
    document = task(
        {"id": "a", "action": "CLICK", "selektor": {"text": "x"}, "timeoutMs": 5},
        click(id="a", selector={"txt": "OK", "textMatches": "("}, times="two"),
        revision=-1,
    )
    assert codes(document) == [
        ("/steps/0", "MISSING_FIELD"),
        ("/steps/0/selektor", "UNKNOWN_FIELD"),
        ("/steps/0/timeoutMs", "OUT_OF_RANGE"),
        ("/steps/1/id", "DUPLICATE_ID"),
        ("/steps/1/selector/txt", "UNKNOWN_FIELD"),
        ("/steps/1/selector/textMatches", "BAD_REGEX"),
        ("/steps/1/times", "WRONG_TYPE"),
        ("/revision", "OUT_OF_RANGE"),
    ]


def test_repeated_key_does_not_hide_other_errors() -> None:
    text = json.dumps(task(BACK | {"timeoutMs": 1})).replace('"id": "back"', '"id": "back", "id": "back"')
    assert codes(text) == [("/steps/0/id", "BAD_JSON"), ("/steps/0/timeoutMs", "OUT_OF_RANGE")]


def test_what_is_in_an_unknown_field_is_not_reported() -> None:
    assert codes(task(BACK | {"whem": {"visible": {}, "x": None, "y": "${z}"}})) == [("/steps/0/whem", "UNKNOWN_FIELD")]


def test_snake_case_names_of_the_models_are_no_protocol() -> None:
    document = task()
    document["task_id"] = document.pop("taskId")
    assert codes(document) == [("", "MISSING_FIELD"), ("/task_id", "UNKNOWN_FIELD")]


def test_long_list_of_errors_is_cut_and_says_so() -> None:
    found = errors(task(*[{"id": f"{number}", "action": "BACK", "a": 1, "b": 2} for number in range(150)]))
    assert len(found) == 201
    assert found[-1].code is ValidationCode.TOO_MANY_ERRORS


def test_answer_stays_small_whatever_the_keys_are() -> None:
    key = "k" * 100_000
    text = json.dumps(task(**{key: 0})).replace(f'"{key}": 0', f'"{key}": [{"NaN," * 100}1]')
    found = errors(text)
    assert found[-1].code is ValidationCode.TOO_MANY_ERRORS
    assert sum(len(issue.path) + len(issue.message) for issue in found) < 700_000


def test_literal_dollar_brace_is_kept_as_it_is_written() -> None:
    document = click_on(text="$${name} costs $5", textContains="$$${")
    outcome = validate_task(json.dumps(document))
    step = outcome.require().steps[0]
    assert isinstance(step, ClickStep)
    assert (step.selector.text, step.selector.text_contains) == ("$${name} costs $5", "$$${")
    assert outcome.document == document


def test_escaped_dollar_is_a_dollar_too() -> None:
    assert codes(json.dumps(task(taskId="$x")).replace("$x", "\\u0024{x}")) == [("/taskId", "UNKNOWN_REFERENCE")]


def test_template_bears_no_agent_name_and_a_task_must() -> None:
    document = task()
    bare = {field: value for field, value in document.items() if field != "assignedAgentName"}
    (refused,) = validate_template(json.dumps(document)).errors
    assert (refused.path, refused.code) == ("/assignedAgentName", ValidationCode.UNKNOWN_FIELD)
    assert "A template bears no agent's name" in refused.hint
    assert [issue.code for issue in validate_task(json.dumps(bare)).errors] == [ValidationCode.MISSING_FIELD]
    assert validate_template(json.dumps(bare)).valid


def test_document_of_either_kind_is_validated_as_what_it_is() -> None:
    document = task()
    assert isinstance(validate_document(json.dumps(document)).task, Task)
    del document["assignedAgentName"]
    assert type(validate_document(json.dumps(document)).require()).__name__ == "TaskTemplate"
    assert validate_document("[]").errors[0].code is ValidationCode.WRONG_TYPE


def test_bytes_and_text_are_validated_alike() -> None:
    text = json.dumps(task(taskId="茶"), ensure_ascii=False)
    assert validate_task(text) == validate_task(text.encode())


def test_invalid_document_is_raised_with_every_issue() -> None:
    outcome = validate_task(json.dumps(task(revision=0, taskId="")))
    with pytest.raises(InvalidInputError) as raised:
        outcome.require()
    assert raised.value.code == "INVALID_TASK"
    assert raised.value.issues == outcome.errors
    assert "/taskId" in raised.value.message
    assert "1 more" in raised.value.message


def test_task_for_another_agent_is_refused_by_name() -> None:
    document = validate_task(json.dumps(task(assignedAgentName="phone-01"))).require()
    assert check_agent(document, "phone-01") == ""
    assert "Phone-01" in check_agent(document, "Phone-01")


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ({"text": "Pay now"}, "text"),
        ({"description": "Delete"}, "description"),
        ({"resourceId": "com.chat:id/sendButton"}, "resourceId"),
        ({"resourceId": "btn_place_order"}, "resourceId"),
    ],
)
def test_tap_that_cannot_be_undone_is_a_warning(selector: dict[str, object], field: str) -> None:
    outcome = validate_task(json.dumps(click_on(**selector)))
    assert outcome.valid
    assert [(warning.path, warning.code) for warning in outcome.warnings] == [
        (f"/steps/0/selector/{field}", "IRREVERSIBLE_EFFECT")
    ]


@pytest.mark.parametrize("text", ["Paypal", "Sender", "Add to cart", "Settings"])
def test_other_taps_give_no_warning(text: str) -> None:
    assert validate_task(json.dumps(click_on(text=text))).warnings == ()
