"""Templates are substituted and never evaluated; conditions read variables only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from droidfleet_agent.virtual_phone.model.assign import add_to, append_to, assign, remove_from
from droidfleet_agent.virtual_phone.scenario.conditions import Condition, holds
from droidfleet_agent.virtual_phone.scenario.template import Template, Value

SCOPE: tuple[dict[str, JsonValue], ...] = (
    {"item": {"title": "Tea", "price": 1990}},
    {"name": "", "count": 3, "cart": [1, 2], "on": True, "title": "outer", "text": "Hello World", "half": 0.5},
)
CONDITION: TypeAdapter[Condition] = TypeAdapter(Condition)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain", "plain"),
        ("{{item.title}}", "Tea"),
        ("{{ item.title }}", "Tea"),
        ("{{item.price|money}} EUR", "19.90 EUR"),
        ("{{cart|length}} x {{count}}", "2 x 3"),
        ("{{cart.1}}", "2"),
        ("{{cart.7}}", ""),
        ("{{text|upper}}", "HELLO WORLD"),
        ("{{text|initial}}", "H"),
        ("{{count|negative}}", "-3"),
        ("{{on}}", "true"),
        ("{{half}}", "0.5"),
        ("{{item.missing.deeper}}", ""),
        ("{{item}}", ""),
        ("{{title}}", "outer"),
        ("{ {name} } }}", "{ {name} } }}"),
        ("100 % {safe} $1", "100 % {safe} $1"),
    ],
)
def test_template_reads(template: str, text: str) -> None:
    assert Template.parse(template).text(SCOPE) == text


@given(st.text(max_size=60).filter(lambda text: "{{" not in text))
def test_text_without_placeholders_stays_as_it_is(text: str) -> None:
    assert Template.parse(text).text(SCOPE) == text


@given(st.text(max_size=60))
def test_substituted_text_is_never_substituted_again(text: str) -> None:
    assert Template.parse("{{name}}").text(({"name": text},)) == text


def test_single_placeholder_keeps_the_type_of_its_value() -> None:
    assert Value("{{item}}").resolve(SCOPE) == {"title": "Tea", "price": 1990}


def test_resolved_value_is_a_copy() -> None:
    copy = Value("{{item}}").resolve(SCOPE)

    assert copy is not SCOPE[0]["item"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("count", True),
        ("name", False),
        ("!name", True),
        ("cart", True),
        ("missing", False),
        ({"var": "count", "equals": 3}, True),
        ({"var": "count", "equals": "3"}, True),
        ({"var": "count", "not_equals": 3}, False),
        ({"var": "item.title", "equals": "{{title}}"}, False),
        ({"var": "text", "contains": "WORLD"}, True),
        ({"var": "text", "contains": ""}, True),
        ({"var": "cart", "contains": 2}, True),
        ({"var": "cart", "contains": 5}, False),
        ({"var": "cart", "at_least": 2}, True),
        ({"var": "count", "at_least": 4}, False),
        ({"var": "count", "at_least": 1, "at_most": 3}, True),
        ({"all": ["count", "cart"]}, True),
        ({"all": ["count", "name"]}, False),
        ({"any": ["name", "on"]}, True),
        ({"not": {"any": ["name", "on"]}}, False),
    ],
)
def test_condition_holds(condition: object, expected: bool) -> None:
    assert holds(CONDITION.validate_python(condition), SCOPE) is expected


def test_assignment_goes_to_the_innermost_scope_that_has_the_name() -> None:
    scope: tuple[dict[str, JsonValue], ...] = ({"a": 1}, {"a": 2, "b": 3})
    assign(scope, "a", 9)
    assign(scope, "b", 8)

    assert scope == ({"a": 9}, {"a": 2, "b": 8})


def test_assignment_through_a_row_changes_the_list_itself() -> None:
    row: dict[str, JsonValue] = {"n": 1}
    rows: list[JsonValue] = [row]
    scope: tuple[dict[str, JsonValue], ...] = ({"item": row}, {"rows": rows})
    add_to(scope, "item.n", 2)

    assert rows == [{"n": 3}]


@pytest.mark.parametrize("path", ["missing", "n.deeper", "rows.x", "rows.9"])
def test_assignment_that_leads_nowhere_changes_nothing(path: str) -> None:
    scope: tuple[dict[str, JsonValue], ...] = ({"n": 1, "rows": [1]},)
    assign(scope, path, 5)

    assert scope == ({"n": 1, "rows": [1]},)


def test_list_grows_and_shrinks() -> None:
    scope: tuple[dict[str, JsonValue], ...] = ({"rows": ["a"]},)
    append_to(scope, "rows", "b")
    remove_from(scope, "rows", 0)
    remove_from(scope, "rows", 7)

    assert scope == ({"rows": ["b"]},)
