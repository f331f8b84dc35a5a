"""`docs/rollout.schema.json` and `docs/schedule.schema.json` say what the models say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from droidfleet_controller.rollouts import schema
from droidfleet_controller.rollouts.documents import read
from droidfleet_controller.rollouts.schema import FILES, schema_of, schema_text
from droidfleet_controller.rollouts.spec import RolloutSpec
from unit.rollouts.test_documents import CASES, GOOD, Case

DOCS = Path(__file__).parents[3] / "docs"

BEYOND = {"a duration as a text", "is no percent", "is no duration", 'as "10%"', '"90%"'}
"""What a schema does not say: the form of percents and durations."""


@pytest.mark.parametrize("name", FILES)
def test_the_committed_schema_is_what_the_models_say(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == schema_text(FILES[name]), "run `python -m droidfleet_controller.rollouts.schema`"
    Draft202012Validator.check_schema(json.loads(committed))


def test_the_files_are_written_where_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema.main([str(tmp_path)])
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)
    assert str(tmp_path / "rollout.schema.json") in capsys.readouterr().out


def test_defaults_in_the_schema_are_those_that_are_read() -> None:
    described = schema_of(RolloutSpec)
    written = {name: each["default"] for name, each in described["properties"].items() if "default" in each}
    assert {"waves", "offline", "priority"} <= written.keys()
    assert read(json.dumps({**GOOD, **written}), RolloutSpec).model == read(json.dumps(GOOD), RolloutSpec).model


@pytest.mark.parametrize("case", [each for each in CASES if not any(word in each[3] for word in BEYOND)])
def test_what_the_models_refuse_the_schema_refuses(case: Case) -> None:
    validator = Draft202012Validator(schema_of(RolloutSpec))
    assert list(validator.iter_errors(GOOD)) == []
    assert list(validator.iter_errors({**GOOD, **case[0]}))
