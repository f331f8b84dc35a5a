"""Documents are read strictly: each thing that is wrong in its place, with what was found, expected and meant."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.rollouts.documents import MAX_SPEC_BYTES, read
from droidfleet_controller.rollouts.issues import SpecIssue
from droidfleet_controller.rollouts.spec import RolloutSpec
from droidfleet_controller.schedules.spec import ScheduleSpec
from droidfleet_shared.protocol.issues import MAX_ISSUES
from droidfleet_shared.protocol.pointers import resolve

GOOD: dict[str, object] = {"task": "tea", "target": {"devices": ["a"]}}

Case = tuple[dict[str, object], str, str, str, str]

CASES: list[Case] = [
    ({"wavse": []}, "/wavse", "UNKNOWN_FIELD", "`wavse` is not a field here", "Did you mean `waves`?"),
    ({"zzz": 1}, "/zzz", "UNKNOWN_FIELD", "`zzz`", "The fields here are `name`, `task`"),
    ({"waves": [{"gate": {"minSucess": "1%"}}]}, "/waves/0/gate/minSucess", "UNKNOWN_FIELD", "", "`minSuccessPercent`"),
    ({"task": None}, "/task", "WRONG_TYPE", "expected a text", "Leave the field out instead of writing `null`."),
    ({"task": 3}, "/task", "WRONG_TYPE", "found `3`, a whole number; expected a text", "buy-tea"),
    ({"task": ""}, "/task", "OUT_OF_RANGE", "at least 1", ""),
    ({"priority": 10}, "/priority", "OUT_OF_RANGE", "`10` is out of range; expected at most 9", ""),
    ({"priority": "5"}, "/priority", "WRONG_TYPE", "expected a whole number", ""),
    ({"offline": "WIAT"}, "/offline", "BAD_VALUE", "expected `WAIT`, `SKIP`, `FAIL` or `SUBSTITUTE`", "`WAIT`?"),
    ({"offline": "skip"}, "/offline", "BAD_VALUE", "", "Did you mean `SKIP`?"),
    ({"retry": []}, "/retry", "WRONG_TYPE", "found an empty list; expected an object", ""),
    ({"retry": {"delay": 30}}, "/retry/delay", "BAD_VALUE", "expected a duration as a text", ""),
    ({"retry": {"delay": "soon"}}, "/retry/delay", "BAD_VALUE", "'soon' is no duration", ""),
    ({"retry": {"backoff": 0.5}}, "/retry/backoff", "OUT_OF_RANGE", "at least 1", ""),
    ({"waves": [{"size": "ten"}]}, "/waves/0/size", "BAD_VALUE", "'ten' is no percent", ""),
    ({"waves": [{"size": True}]}, "/waves/0/size", "BAD_VALUE", 'a percent as "10%"', ""),
    ({"waves": [{"gate": {"minSuccessPercent": 90}}]}, "/waves/0/gate/minSuccessPercent", "BAD_VALUE", '"90%"', ""),
    ({"waves": []}, "/waves", "OUT_OF_RANGE", "found an empty list; expected at least 1", "left out: one wave of all"),
    ({"waves": [3]}, "/waves/0", "WRONG_TYPE", "expected an object", ""),
    ({"ratePerMinute": 0}, "/ratePerMinute", "OUT_OF_RANGE", "at least 1", ""),
    ({"ratePerMinute": "9"}, "/ratePerMinute", "WRONG_TYPE", "a whole number or an object", ""),
    ({"ratePerMinute": {}}, "/ratePerMinute", "MISSING_FIELD", "`base` is missing", ""),
    ({"ratePerMinute": {"base": 0}}, "/ratePerMinute/base", "OUT_OF_RANGE", "at least 1", ""),
    ({"window": {"start": "0 1 * * *"}}, "/window", "MISSING_FIELD", "`stop` is missing", "0 6 * * *"),
    ({"inputs": [1]}, "/inputs", "WRONG_TYPE", "found something else; expected an object", ""),
    ({"deviceInputs": {" a": {}}}, "/deviceInputs/ a", "BAD_VALUE", 'the name `" a"`', ""),
    ({"deviceInputs": {"a": 3}}, "/deviceInputs/a", "WRONG_TYPE", "found something else", ""),
]


@pytest.mark.parametrize(("fields", "path", "code", "message", "hint"), CASES)
def test_what_is_wrong_is_said_once_in_its_place(
    fields: dict[str, object], path: str, code: str, message: str, hint: str
) -> None:
    issues = read(json.dumps({**GOOD, **fields}), RolloutSpec).issues
    assert [(issue.path, issue.code.value) for issue in issues] == [(path, code)]
    assert message in issues[0].message
    assert hint in issues[0].hint


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "BAD_JSON"),
        ("{", "BAD_JSON"),
        ("[]", "WRONG_TYPE"),
        ("null", "WRONG_TYPE"),
        ('{"task": "a", "task": "b"}', "BAD_JSON"),
        ('{"task": NaN}', "BAD_JSON"),
        (" " * (MAX_SPEC_BYTES + 1), "TOO_LARGE"),
    ],
)
def test_what_is_no_document_is_refused(text: str, code: str) -> None:
    assert [issue.code.value for issue in read(text, RolloutSpec).issues] == [code]


def test_what_lacks_is_named_at_the_object_that_lacks_it() -> None:
    issues = read("{}", RolloutSpec).issues
    assert [(issue.path, issue.message) for issue in issues] == [
        ("", "`task` is missing"),
        ("", "`target` is missing"),
    ]


def test_a_rollout_inside_a_schedule_is_read_the_same_way() -> None:
    schedule = {"name": "s", "when": {"cron": "@daily"}, "rollout": {**GOOD, "wavse": 1}}
    issues = read(json.dumps(schedule), ScheduleSpec).issues
    assert [(issue.path, issue.hint) for issue in issues] == [("/rollout/wavse", "Did you mean `waves`?")]


def test_a_list_of_issues_ends_somewhere() -> None:
    wrong = {f"field-{number}": 1 for number in range(MAX_ISSUES + 50)}
    issues = read(json.dumps({**GOOD, **wrong}), RolloutSpec).issues
    assert (len(issues), issues[-1].code.value) == (MAX_ISSUES + 1, "TOO_MANY_ERRORS")


def test_an_issue_moves_with_its_document() -> None:
    issue = read("[]", RolloutSpec).issues[0]
    assert issue.under("/rollout") == SpecIssue("/rollout", issue.code, issue.message, issue.hint)


leaves = st.none() | st.booleans() | st.integers(-3, 20) | st.sampled_from(["", "10%", "1h", "WAIT", "PAUSE", "x"])
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["size", "gate", "a"]), inner),
    max_leaves=6,
)
fields = st.sampled_from([each.alias or name for name, each in RolloutSpec.model_fields.items()])


@given(st.dictionaries(fields, trees, max_size=5))
def test_every_document_is_read_or_refused_at_places_that_it_has(changes: dict[str, object]) -> None:
    document = {**GOOD, **changes}
    found = read(json.dumps(document), RolloutSpec)
    assert (found.model is None) == bool(found.issues)
    for issue in found.issues:
        resolve(found.document, issue.path)
    if found.model is not None:
        again = found.model.model_dump_json(by_alias=True, exclude_none=True)
        assert read(again, RolloutSpec).model == found.model
