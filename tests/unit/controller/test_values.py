"""The values of a run in a document's text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.tasks.documents import check_run
from droidfleet_controller.tasks.values import RunValues, filled, own_values, read_values, written
from droidfleet_shared.errors import InvalidInputError
from droidfleet_shared.protocol.pointers import Json
from support.controller import document

scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False) | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
objects = st.dictionaries(st.sampled_from(["inputValues", "randomSeed", "steps", "{", '"', "ü"]) | st.text(), values)


@given(body=objects, members=objects, indent=st.none() | st.integers(0, 3), ascii_only=st.booleans())
def test_members_replace_those_that_are_there_and_leave_the_others(
    body: dict[str, Json], members: dict[str, Json], indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(body, indent=indent, ensure_ascii=ascii_only)
    read = json.loads(written(text, members))
    assert read == {**body, **members}
    assert [name for name in read if name in body] == list(body)


def test_the_authors_text_stays_as_it_was_around_a_member() -> None:
    body = '\ufeff{ "b": 1.50,\n\t"randomSeed" : 3 , "a": "\\u00e9" }'
    assert written(body, {"randomSeed": 7}) == body.replace(": 3", ": 7")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a"}', '{"a": 1 "b": 2}', '{"a": 1,}', "{a: 1}"])
def test_what_is_no_object_is_left_to_the_validator(text: str) -> None:
    with pytest.raises(ValueError):
        written(text, {"x": 1})


def test_given_values_go_over_those_of_the_document() -> None:
    body = '{"inputValues": {"a": 1, "b": 2}}'
    text = filled(body, RunValues(values={"b": 3}, secrets={"c": "x"}, random_seed=5))
    assert json.loads(text) == {"randomSeed": 5, "inputValues": {"a": 1, "b": 3, "c": "x"}}


def test_no_values_change_nothing() -> None:
    assert filled(document(), RunValues()) == document()


@pytest.mark.parametrize("text", ["[1]", "{", '{"pin": "hunter2", "pin": "hunter3"}', '{"pin": "hunter2" x}', "NaN"])
def test_values_that_are_no_object_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_values(text, random_seed=None)
    assert caught.value.code == "INVALID_TASK"
    assert [issue.path for issue in caught.value.issues] == ["/inputValues"]  # type: ignore[attr-defined]  # an Issue
    assert "hunter" not in str(caught.value)


def test_a_forgotten_secret_equals_every_other_and_nothing_else_does() -> None:
    kept = RunValues(values={"n": 1}, secrets={"pin": None})
    assert kept.equals(RunValues(values={"n": 1, "pin": "4711"}))
    assert not kept.equals(RunValues(values={"n": True, "pin": "4711"}))
    assert not kept.equals(RunValues(values={"n": 1}))
    assert not kept.equals(RunValues(values={"n": 1, "pin": "4711"}, random_seed=1))


def test_values_are_shown_without_secrets() -> None:
    assert RunValues(values={"b": 1}, secrets={"a": "hunter2"}).shown() == {"a": "[secret]", "b": 1}


DECLARED = {"item": {"type": "string"}, "pin": {"type": "secret"}}


def test_secrets_of_a_document_that_is_not_stored_leave_its_text() -> None:
    body = document(inputs=DECLARED, inputValues={"item": "tea", "pin": "hunter2"})
    checked, values = check_run(body, RunValues(values={"item": "coffee"}), stored=False)
    assert "hunter2" not in checked.body
    assert own_values(checked.body) == {"item": "tea"}
    assert (values.values, values.secrets) == ({"item": "coffee"}, {"pin": "hunter2"})
    assert own_values(filled(checked.body, values)) == {"item": "coffee", "pin": "hunter2"}


def test_a_document_without_secrets_is_kept_as_it_was_written() -> None:
    body = document(inputs={"item": {"type": "string"}}, inputValues={"item": "tea"})
    checked, values = check_run(body, RunValues(), stored=False)
    assert (checked.body, bool(values)) == (body, False)


@pytest.mark.parametrize("agent", ["", "phone-01"])
@pytest.mark.parametrize(
    ("given_values", "path"),
    [
        ({}, "/inputValues"),
        ({"item": "tea", "pin": "hunter2", "itme": "x"}, "/inputValues/itme"),
        ({"item": 7, "pin": "hunter2"}, "/inputValues/item"),
        ({"item": "tea", "pin": 47114711}, "/inputValues/pin"),
    ],
)
def test_missing_unknown_and_unfit_values_are_issues_with_their_places(
    agent: str, given_values: dict[str, Json], path: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        check_run(document(agent=agent, inputs=DECLARED), RunValues(values=given_values), stored=True)
    assert caught.value.code == "INVALID_TASK"
    assert any(issue.path in {path, "/inputs/item", ""} for issue in caught.value.issues)  # type: ignore[attr-defined]  # an Issue
    said = repr([vars(caught.value), [repr(issue) for issue in caught.value.issues]])
    assert "hunter2" not in said
    assert "47114711" not in said


def test_a_template_without_its_values_may_be_stored_and_not_run() -> None:
    with pytest.raises(InvalidInputError):
        check_run(document(inputs=DECLARED), RunValues(), stored=True)


def test_steps_are_counted_over_the_whole_tree() -> None:
    back = {"action": "BACK"}
    loop = {"id": "loop", "action": "REPEAT", "steps": [{"id": "a", **back}, {"id": "b", **back}]}
    body = json.dumps({"schemaVersion": 1, "taskId": "t", "steps": [loop]})
    checked, _ = check_run(body, RunValues(), stored=True)
    assert checked.step_count == 3
