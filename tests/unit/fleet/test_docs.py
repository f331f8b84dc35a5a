"""docs/groups.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from droidfleet_controller.fleet.facts import BUILT_IN
from droidfleet_controller.fleet.query import parse
from droidfleet_shared.errors import InvalidInputError

PAGE = (Path(__file__).parents[3] / "docs" / "groups.md").read_text()


def rows(heading: str) -> list[str]:
    """The first cells of the table below a heading."""
    table = PAGE.partition(heading)[2].partition("\n\n#")[0]
    return re.findall(r"^\| (`.*?) \|", table, flags=re.M)


def test_the_page_names_exactly_the_built_in_facts() -> None:
    named = {word for row in rows("### Built-in facts") for word in re.findall(r"`(.*?)`", row)}
    assert {word for word in named if not word.startswith("capability.")} == set(BUILT_IN)


@pytest.mark.parametrize("condition", [row.split("`")[1] for row in rows("## Queries\n") if "/" not in row])
def test_each_condition_of_the_page_is_read(condition: str) -> None:
    parse(condition)


@pytest.mark.parametrize("query", re.findall(r'--query "([^"]+)"', PAGE))
def test_each_query_of_the_page_is_read(query: str) -> None:
    parse(query)


def test_the_error_of_the_page_is_the_one_that_is_given() -> None:
    shown = re.search(r"^BAD_QUERY: (.*)$", PAGE, flags=re.M)
    assert shown is not None
    with pytest.raises(InvalidInputError) as caught:
        parse("site=berlin, android>=, !retired")
    assert caught.value.message == shown[1]
