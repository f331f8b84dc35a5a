import json
import re

from hypothesis import given
from hypothesis import strategies as st

from droidfleet_shared.protocol.codes import ValidationCode, WarningCode
from droidfleet_shared.protocol.issues import Validation
from droidfleet_shared.protocol.pointers import resolve
from droidfleet_shared.protocol.task import Task, TaskTemplate
from droidfleet_shared.protocol.validate import validate_document, validate_task
from support.random_tasks import BROKEN_TASKS, VALID_TASKS
from unit.protocol.strategies import TREES, Document, mutated

PYDANTIC = re.compile(r"Input should|valid (string|integer|dictionary|tuple)|pydantic|discriminator|tagged", re.I)
"""How the library behind the models would say it."""


def check_outcome(outcome: Validation[Task] | Validation[TaskTemplate]) -> None:
    """What holds for every outcome, whatever the document."""
    assert (outcome.task is None) == bool(outcome.errors)
    assert all(isinstance(issue.code, ValidationCode) for issue in outcome.errors)
    assert all(isinstance(issue.code, WarningCode) for issue in outcome.warnings)
    for issue in (*outcome.errors, *outcome.warnings):
        assert issue.message
        assert not PYDANTIC.search(issue.message + issue.hint)
        assert len(issue.message) + len(issue.hint) < 1_500
        f"{issue.path}{issue.message}{issue.hint}".encode()
        assert not any(ord(char) < 0x20 for char in issue.message + issue.hint)
        resolve(outcome.document, issue.path)


@given(VALID_TASKS)
def test_valid_task_is_accepted_and_comes_back_from_its_own_json(document: Document) -> None:
    outcome = validate_task(json.dumps(document))
    assert outcome.errors == ()
    again = validate_task(outcome.require().model_dump_json(by_alias=True, exclude_unset=True))
    assert again.task == outcome.task
    assert again.document == outcome.document == document


@given(mutated())
def test_mutated_task_is_answered_with_places_that_exist(document: Document) -> None:
    check_outcome(validate_task(json.dumps(document)))


@given(BROKEN_TASKS)
def test_broken_task_is_answered_with_places_that_exist(document: Document) -> None:
    check_outcome(validate_task(json.dumps(document)))


@given(TREES)
def test_any_tree_is_answered_with_places_that_exist(document: object) -> None:
    check_outcome(validate_document(json.dumps(document)))


@given(st.text() | st.binary(max_size=100))
def test_any_text_is_answered(text: str | bytes) -> None:
    outcome = validate_document(text)
    assert outcome.errors
    check_outcome(outcome)


@given(mutated())
def test_validation_gives_the_same_answer_again(document: Document) -> None:
    text = json.dumps(document)
    assert validate_task(text) == validate_task(text)


@given(mutated(changes=1))
def test_order_of_fields_does_not_change_what_is_wrong(document: Document) -> None:
    turned = json.dumps(reversed_fields(document))
    found = {(issue.path, issue.code) for issue in validate_task(json.dumps(document)).errors}
    assert {(issue.path, issue.code) for issue in validate_task(turned).errors} == found


def reversed_fields(value: object) -> object:
    if isinstance(value, dict):
        return {key: reversed_fields(value[key]) for key in reversed(value)}
    return [reversed_fields(each) for each in value] if isinstance(value, list) else value
