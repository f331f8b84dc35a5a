"""Which tools other AI clients are told of."""

from __future__ import annotations

import jsonschema
import pytest

from droidfleet_controller.mcp.tools import ACTING, LEASE, OWN, tools
from droidfleet_designer.observation.quoting import FROM_THE_SCREEN
from droidfleet_designer.tools import catalogue


def test_the_tools_of_the_designer_are_offered_but_for_what_only_it_has() -> None:
    offered = set(catalogue.offered(allow_points=False)) - {catalogue.SUBMIT}
    assert set(tools()) == offered | set(OWN)


def test_nothing_begins_on_many_phones_or_by_the_clock() -> None:
    assert not [
        name for name in tools() if "rollout" in name or "schedule" in name or "group" in name.partition("_")[0]
    ]


@pytest.mark.parametrize("name", sorted(tools()))
def test_the_arguments_of_a_tool_are_a_described_schema(name: str) -> None:
    parameters = dict(tools()[name].spec.parameters)
    jsonschema.Draft202012Validator.check_schema(parameters)
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    assert all(isinstance(each, dict) and each["description"] for each in properties.values())
    assert parameters["additionalProperties"] is False


@pytest.mark.parametrize("name", sorted(name for name, tool in tools().items() if tool.leased))
def test_a_tool_that_works_a_phone_asks_for_the_lease_and_says_that_a_screen_is_data(name: str) -> None:
    spec = tools()[name].spec
    required = spec.parameters["required"]
    assert isinstance(required, list)
    assert required[0] == LEASE
    assert FROM_THE_SCREEN in spec.description


def test_the_tools_that_act_are_the_designers() -> None:
    assert set(tools()) >= ACTING
    assert {name for name, tool in tools().items() if tool.acts} == ACTING | {"run_task"}
