import json
from pathlib import Path

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from droidfleet_shared.protocol import schema
from droidfleet_shared.protocol.schema import FILES, schema_of
from droidfleet_shared.protocol.structure import check
from droidfleet_shared.protocol.task import Task
from support.random_tasks import VALID_TASKS
from unit.protocol.strategies import Document, mutated

DOCS = Path(__file__).parents[3] / "docs" / "protocol"
VALIDATOR = Draft202012Validator(schema_of(Task))


@pytest.mark.parametrize("name", FILES)
def test_committed_schema_is_what_the_models_say(name: str) -> None:
    committed = json.loads((DOCS / name).read_text(encoding="utf-8"))
    assert committed == schema_of(FILES[name]), "run `python -m droidfleet_shared.protocol.schema`"


@pytest.mark.parametrize("name", FILES)
def test_schema_is_a_valid_schema(name: str) -> None:
    Draft202012Validator.check_schema(schema_of(FILES[name]))


def test_schema_files_are_written_where_they_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema.main([str(tmp_path)])
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(FILES)
    assert str(tmp_path / "task.schema.json") in capsys.readouterr().out


@given(VALID_TASKS)
def test_valid_tasks_satisfy_the_schema(document: Document) -> None:
    assert list(VALIDATOR.iter_errors(document)) == []


@given(mutated(changes=2))
def test_schema_and_models_agree_on_structure(document: Document) -> None:
    document = json.loads(json.dumps(document))
    by_models = check(Task, document)[0] is not None and not list_length_is_wrong(document) and not has_null(document)
    assert VALIDATOR.is_valid(document) == by_models


def list_length_is_wrong(document: Document) -> bool:
    """What the models leave to the rules, to count what is written."""
    return not 1 <= len(document.get("steps", [0])) <= 200


def has_null(value: object) -> bool:
    """The models take null for a field that is left out, the schema and the rules do not."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(has_null(each) for each in inner)


def test_examples_of_the_schema_are_valid_where_they_stand() -> None:
    schema_of_task = schema_of(Task)
    for definition in (schema_of_task, *schema_of_task["$defs"].values()):
        for name, field in definition.get("properties", {}).items():
            part = Draft202012Validator(field | {"$defs": schema_of_task["$defs"]})
            assert all(part.is_valid(example) for example in field.get("examples", [])), name
