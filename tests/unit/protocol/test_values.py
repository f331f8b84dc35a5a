"""References are substituted as text, never read as anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from pydantic import TypeAdapter

from droidfleet_shared.protocol.regexes import compile_pattern
from droidfleet_shared.protocol.steps import ClickStep, GroupStep, InputStep, RepeatStep, Step
from droidfleet_shared.protocol.task import TaskTemplate
from droidfleet_shared.protocol.values import (
    MissingValueError,
    UnfitValueError,
    escaped,
    holds_reference,
    input_texts,
    resolve_step,
    secret_values,
    xpath_literal,
)

STEPS: TypeAdapter[Step] = TypeAdapter(Step)


def step(**fields: object) -> Step:
    return STEPS.validate_python({"id": "a", **fields})


def typing(value: str) -> Step:
    return step(action="INPUT", selector={"text": "Search"}, value=value)


def resolved(made: Step, **values: str) -> Step:
    return resolve_step(made, inputs=values, outputs={"seen": "42", "rows": ["a", None, "", "b"]})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("buy ${inputs.item} now", "buy green tea now"),
        ("${inputs.item}${inputs.item}", "green teagreen tea"),
        ("$${inputs.item}", "${inputs.item}"),
        ("$$${inputs.item}", "$${inputs.item}"),
        ("cost: $5 $", "cost: $5 $"),
        ("${outputs.seen}", "42"),
        ("${outputs.rows}", "a, , b"),
    ],
)
def test_a_reference_is_replaced_by_its_value(written: str, meant: str) -> None:
    made = resolved(typing(written), item="green tea")

    assert isinstance(made, InputStep)
    assert made.value == meant


def test_a_value_that_looks_like_a_reference_is_not_replaced_again() -> None:
    made = resolved(typing("${inputs.item}"), item="${outputs.seen} $${")

    assert isinstance(made, InputStep)
    assert made.value == "${outputs.seen} $${"


@pytest.mark.parametrize("reference", ["${outputs.later}", "${inputs.unknown}"])
def test_a_reference_without_a_value_is_named(reference: str) -> None:
    with pytest.raises(MissingValueError) as raised:
        resolved(typing(reference))

    assert raised.value.reference == reference


def test_a_value_that_does_not_fit_its_field_is_refused_with_the_field() -> None:
    made = step(action="OPEN", packageName="${inputs.app}")

    with pytest.raises(UnfitValueError) as raised:
        resolved(made, app="no package!")

    assert raised.value.field == "packageName"
    assert (
        raised.value.reason == "expected an Android package, a text of words joined by dots (letters, digits and `_`)"
    )


@pytest.mark.parametrize("nothing", ["", " ", "\u200b\u00a0"])
@pytest.mark.parametrize("field", ["text", "textContains", "ocrText"])
def test_a_value_that_leaves_nothing_to_compare_with_is_no_label(field: str, nothing: str) -> None:
    with pytest.raises(UnfitValueError, match="nothing that can be read"):
        resolved(step(action="CLICK", selector={field: "${inputs.label}"}), label=nothing)


def test_an_empty_value_is_said_to_be_empty() -> None:
    with pytest.raises(UnfitValueError, match="it is empty"):
        resolved(step(action="CLICK", selector={"resourceId": "${inputs.label}"}), label="")


def test_a_value_that_makes_a_text_too_long_is_told_the_length() -> None:
    with pytest.raises(UnfitValueError, match="longer than 4096 characters"):
        resolved(step(action="CLICK", selector={"text": "x${inputs.label}"}), label="y" * 4096)


def test_a_value_that_makes_a_pattern_too_large_is_refused_before_anything_is_matched() -> None:
    made = step(action="CLICK", selector={"textMatches": "(${inputs.v}){1,900}"})
    assert resolved(made, v="a") != made

    with pytest.raises(UnfitValueError, match="too large"):
        resolved(made, v="abcdefghij" * 40)


def test_a_step_without_a_dollar_is_given_back_as_it_is() -> None:
    made = typing("green tea")

    assert not holds_reference(made)
    assert resolved(made) is made


def test_of_a_container_only_its_own_texts_are_replaced() -> None:
    inner = {"id": "b", "action": "CLICK", "selector": {"text": "${inputs.item}"}}
    made = step(action="REPEAT", until={"visible": {"text": "${inputs.item}"}}, label="$${", steps=[inner])

    found = resolved(made, item="tea")

    assert isinstance(found, RepeatStep)
    assert isinstance(made, RepeatStep)
    assert found.until is not None
    assert found.until.visible is not None
    assert found.until.visible.text == "tea"
    assert found.label == "${"
    assert found.steps is made.steps


def test_a_container_whose_steps_alone_hold_references_needs_no_replacing() -> None:
    inner = {"id": "b", "action": "CLICK", "selector": {"text": "${inputs.item}"}}
    made = step(action="GROUP", steps=[inner])

    assert isinstance(made, GroupStep)
    assert not holds_reference(made)


def test_inputs_are_the_defaults_under_the_given_values_as_json_writes_them() -> None:
    declared = {
        "item": {"type": "string", "default": "tea"},
        "count": {"type": "integer", "default": 3},
        "price": {"type": "number"},
        "gift": {"type": "boolean", "default": False},
        "pin": {"type": "secret"},
        "unset": {"type": "string"},
    }
    task = TaskTemplate.model_validate(
        {
            "schemaVersion": 1,
            "taskId": "t",
            "steps": [{"id": "a", "action": "BACK"}],
            "inputs": declared,
            "inputValues": {"item": "coffee", "price": 2.5, "pin": "4711"},
        }
    )

    assert input_texts(task) == {"item": "coffee", "count": "3", "price": "2.5", "gift": "false", "pin": "4711"}
    assert secret_values(task) == ("4711",)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30))
def test_a_value_in_a_pattern_means_itself(value: str) -> None:
    text = value.strip()
    if text and " ".join(text.split()) == text:
        made = resolved(step(action="CLICK", selector={"textMatches": "x${inputs.v}y"}), v=text)
        assert isinstance(made, ClickStep)
        assert made.selector.text_matches == f"x{escaped(text)}y"


@pytest.mark.parametrize(
    "value", ["a.b", "a+b", "(x)", "[1]", "50%", "$5", "c:\\d", "a|b", "{2}", "^_^", "a-b", "/help"]
)
def test_an_escaped_value_matches_itself_alone(value: str) -> None:
    pattern = compile_pattern(escaped(value))

    assert pattern.fullmatch(value)
    assert not pattern.fullmatch(f"{value}x")
    assert compile_pattern(f"{escaped(value)}{{2}}").fullmatch(value * 2)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30))
def test_a_value_in_an_xpath_is_a_string_whatever_it_holds(value: str) -> None:
    root = etree.fromstring("<a/>")

    assert root.xpath(f"string({xpath_literal(value)})") == value
