"""Cron expressions are checked, so that a bad one is said and not skipped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.importing.cron import cron_problem


@pytest.mark.parametrize(
    "expression",
    [
        "* * * * *",
        "30 8 * * 1-5",
        "*/10 0-6,22 1 jan-mar MON",
        "0 0 31 12 7",
        "@daily",
        " 5  4 * * sun ",
        "1-30/5 * * * *",
    ],
)
def test_an_expression_is_accepted(expression: str) -> None:
    assert cron_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields; expected 5: minute, hour"),
        ("0 0 9 * * *", "6 fields"),
        ("60 * * * *", "the minute '60': expected 0 to 59"),
        ("0 25 * * *", "the hour '25': expected 0 to 23"),
        ("0 0 0 * *", "the day of the month '0': expected 1 to 31"),
        ("0 0 * foo *", "the month 'foo': expected 1 to 12"),
        ("0 0 * * 5-1", "the range goes backwards"),
        ("*/0 * * * *", "a step of 0"),
        ("a-b-c * * * *", "is none of"),
        ("@often", "1 fields"),
    ],
)
def test_what_is_wrong_is_named(expression: str, problem: str) -> None:
    assert problem in cron_problem(expression)


@given(st.text(alphabet="0123456789*/-,? a@", max_size=30))
def test_any_text_is_judged(expression: str) -> None:
    assert isinstance(cron_problem(expression), str)
