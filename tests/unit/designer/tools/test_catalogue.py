"""What a model is told of the tools is whole, in each language, and a schema that any server reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import jsonschema
import pytest
from pydantic import JsonValue

from droidfleet_designer.prompts.load import prompt
from droidfleet_designer.tools.arguments import Acting
from droidfleet_designer.tools.catalogue import TOOLS, specs
from droidfleet_designer.tools.guard import _listed

LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


def keys(value: object) -> Iterator[str]:
    """Every key in a schema, but the names of fields."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from keys(list(each.values()) if key == "properties" and isinstance(each, dict) else each)
    elif isinstance(value, list):
        for each in value:
            yield from keys(each)


@LANGUAGES
def test_every_tool_and_every_field_is_described(language: str) -> None:
    for spec in specs(language, allow_points=True):
        properties = spec.parameters["properties"]
        assert isinstance(properties, dict)
        assert spec.description
        assert all(isinstance(each, dict) and each["description"] for each in properties.values())


@LANGUAGES
def test_nothing_is_described_that_is_not_there(language: str) -> None:
    told = prompt("tools", language)

    assert [line.removeprefix("# ") for line in told.splitlines() if line.startswith("# ")] == list(TOOLS)
    assert told.count("\n- `") == sum(len(model.model_fields) for model in TOOLS.values())


@LANGUAGES
def test_schemas_are_plain_enough_for_any_server(language: str) -> None:
    for spec in specs(language, allow_points=True):
        assert not {"$ref", "$defs", "anyOf", "title"} & set(keys(spec.parameters))


def test_schemas_are_schemas() -> None:
    for spec in specs("en", allow_points=True):
        jsonschema.Draft202012Validator.check_schema(spec.parameters)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("tap", {"screen": 1, "element": 2}),
        ("scroll", {"direction": "DOWN"}),
        (
            "submit_task",
            {
                "summary": "Buys tea",
                "task": {"steps": [{"id": "buy", "action": "CLICK"}]},
                "target": {"group": "lab"},
                "schedule": {"cron": "@daily"},
                "notes": ["one"],
            },
        ),
    ],
)
def test_a_right_call_is_right_by_its_schema(tool: str, arguments: dict[str, JsonValue]) -> None:
    [spec] = [each for each in specs("en", allow_points=False) if each.name == tool]

    jsonschema.Draft202012Validator(dict(spec.parameters)).validate(arguments)


def test_a_point_can_be_touched_only_where_that_is_allowed() -> None:
    with_points = {spec.name for spec in specs("en", allow_points=True)}

    assert with_points - {spec.name for spec in specs("en", allow_points=False)} == {"tap_point"}


def test_every_action_has_its_tool() -> None:
    assert set(get_args(Acting)) <= set(TOOLS.values())


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("confirming", "OK"),
        ("confirming", "确定"),
        ("confirming", "Yes, continue"),
        ("searching", "Search messages"),
        ("searching", "search_src_text"),
        ("searching", "搜索"),
    ],
)
def test_the_words_of_the_guard_are_found(words: str, label: str) -> None:
    assert _listed(words).found_in(label)


@pytest.mark.parametrize(
    ("words", "label"), [("confirming", "Cancel"), ("searching", "Message"), ("searching", "备注")]
)
def test_other_words_are_not(words: str, label: str) -> None:
    assert not _listed(words).found_in(label)
