"""`docs/schedules.md` says what the code does."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import pytest

from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.schedules import policy, runner
from droidfleet_controller.schedules.check import check
from droidfleet_controller.schedules.cron import MACROS, CronError, parse
from droidfleet_controller.schedules.preview import local_text, planned
from droidfleet_controller.schedules.schedule import OccurrenceState
from droidfleet_controller.schedules.spec import (
    MAX_CATCH_UP,
    MAX_QUEUED,
    MIN_INTERVAL,
    Fold,
    Gap,
    Misfire,
    Overlap,
    ScheduleSpec,
    When,
)
from unit.schedules.documents import NOW, timetable, utc

PAGE = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text(encoding="utf-8")
WORDS = set(re.findall(r"`([^`\n]+)`", PAGE))


def test_the_example_is_valid() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert check(example, now=NOW).errors == ()


def test_every_field_is_described() -> None:
    fields = {info.alias or name for name, info in ScheduleSpec.model_fields.items()}
    described = {
        word for row in re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    }
    assert fields <= described


def test_the_defaults_are_those_of_the_models() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]*?)`? \|", PAGE, re.MULTILINE))
    for name, info in ScheduleSpec.model_fields.items():
        if info.default is not None and not info.is_required():
            value = duration_text(info.default) if isinstance(info.default, timedelta) else info.default
            assert rows[info.alias or name] == (json.dumps(value) if not isinstance(value, str) else str(value))


@pytest.mark.parametrize("words", [Gap, Fold, Misfire, Overlap, OccurrenceState])
def test_every_word_is_explained(words: type[StrEnum]) -> None:
    assert [word for word in words if word not in WORDS and f"{words.__name__.lower()}: {word}" not in WORDS] == []


def test_every_form_of_when_has_an_example_that_can_be_read() -> None:
    examples = [json.loads(word) for word in WORDS if word.startswith("{")]
    assert {key for example in examples for key in example} == set(When.model_fields)
    for example in examples:
        When.model_validate(example)


def test_the_short_forms_are_those_that_work() -> None:
    assert {word for word in WORDS if word.startswith("@")} == set(MACROS)


def test_the_mistakes_are_shown_as_they_are_told() -> None:
    for expression in ("0 25 * * *", "0 0 30 2 *"):
        with pytest.raises(CronError) as caught:
            parse(expression)
        assert caught.value.told(expression) in PAGE


def test_the_preview_is_what_it_is() -> None:
    table = timetable()
    for each in planned(table, "", after=utc("2027-03-26 12:00"), count=3):
        assert f"{local_text(each.at, table.zone)}   {each.note}".rstrip() in PAGE


@pytest.mark.parametrize(
    "sentence",
    [
        f"at least `{duration_text(MIN_INTERVAL)}`",
        f"at most {MAX_CATCH_UP} ",
        f"at most {MAX_QUEUED} wait",
        f"the newest {policy.MAX_LISTED} are put on record",
        {60: "within a minute of its time"}[int(policy.GRACE.total_seconds())],
        {5: "within five seconds"}[int(runner.LOOK.total_seconds())],
    ],
)
def test_the_limits_are_those_of_the_code(sentence: str) -> None:
    assert sentence in PAGE.replace("\n", " ")
