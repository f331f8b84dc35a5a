"""The constants beside the models say what the models say."""

import json
import typing

import pytest
from pydantic import BaseModel, ValidationError

from droidfleet_shared.protocol import codes, condition_rules, phrasing, rules
from droidfleet_shared.protocol.condition import Condition
from droidfleet_shared.protocol.names import OutputField, StepId
from droidfleet_shared.protocol.schema import schema_of
from droidfleet_shared.protocol.selector import PATTERN_FIELDS, RELATIONS, TEXT_FIELDS, Selector
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS, Goto, Step
from droidfleet_shared.protocol.steps.reading import ExtractField
from droidfleet_shared.protocol.task import Task
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.protocol.values import IDENTIFIERS
from unit.protocol.documents import click, task


def aliases(model: type[Selector], annotation: object) -> set[str]:
    return {
        field.alias or name
        for name, field in model.model_fields.items()
        if annotation in (field.annotation, *typing.get_args(field.annotation))
    }


def test_relations_are_the_fields_that_hold_a_selector() -> None:
    assert aliases(Selector, Selector) == set(RELATIONS)


def test_every_text_field_of_a_selector_has_its_rule() -> None:
    exact = {"resourceId", "className", "packageName", "xpath", "ocrText"}
    texts = {
        field.alias
        for field in Selector.model_fields.values()
        if str in (field.annotation, *typing.get_args(field.annotation))
        or any(typing.get_origin(part) is typing.Annotated for part in typing.get_args(field.annotation))
    }
    assert texts - {"index"} == {*TEXT_FIELDS, *PATTERN_FIELDS, *exact}


def test_selector_fields_of_steps_are_those_that_the_rules_check() -> None:
    found = {
        field.alias or name
        for step in IMPLEMENTED_ACTIONS.values()
        for name, field in step.model_fields.items()
        if Selector in (field.annotation, *typing.get_args(field.annotation))
    }
    assert found == set(rules.SELECTOR_FIELDS)


def test_condition_fields_of_steps_are_those_that_the_rules_check() -> None:
    found = {
        field.alias or name
        for step in IMPLEMENTED_ACTIONS.values()
        for name, field in step.model_fields.items()
        if Condition in (field.annotation, *typing.get_args(field.annotation))
    }
    assert found == set(condition_rules.CONDITION_FIELDS)


def test_fields_in_which_no_reference_stands_are_identifiers() -> None:
    names = {typing.get_args(kind)[1].metadata[-1].pattern for kind in (StepId, OutputField)}
    models: tuple[type[BaseModel], ...] = (*IMPLEMENTED_ACTIONS.values(), Condition, ExtractField, Goto)
    found = {
        field.alias or name
        for model in models
        for name, field in model.model_fields.items()
        if any(getattr(rule, "pattern", None) in names for rule in field.metadata)
    }
    assert found
    assert found <= IDENTIFIERS


def test_union_of_steps_has_every_implemented_action() -> None:
    (union, _discriminator) = typing.get_args(Step)
    assert {*typing.get_args(union)} == set(IMPLEMENTED_ACTIONS.values())
    assert all(
        typing.get_args(step.model_fields["action"].annotation) == (action,)
        for action, step in IMPLEMENTED_ACTIONS.items()
    )


def test_every_action_of_the_protocol_is_implemented() -> None:
    assert len(IMPLEMENTED_ACTIONS) == 22


def test_given_fields_of_a_selector_have_their_protocol_names() -> None:
    selector = Selector(text_contains="a", enabled=False, within=Selector(text="b"))
    assert selector.given() == {"textContains": "a", "enabled": False, "within": Selector(text="b")}


def test_task_cannot_be_changed() -> None:
    checked = validate_task(json.dumps(task(click()))).require()
    with pytest.raises(ValidationError, match="frozen"):
        checked.task_id = "other"  # type: ignore[misc]  # that is what must fail


BACK = {"id": "back", "action": "BACK"}
EVERY_KIND_OF_ERROR = [
    5,
    task(5, {}, {"id": "a", "action": "?"}, BACK | {"id": "", "timeoutMs": 1, "zzz": 1}),
    task(click(selector=5, times=99, optional="x"), revision="x", taskId="x" * 999, steps=5),
    task(BACK | {"id": 5, "timeoutMs": 99_999, "packageName": "a b"}, click(selector=5, optional="x"), revision="x"),
    {"taskId": "x" * 999, "steps": []},
    task(BACK | {"when": {"all": []}}, {"id": "k", "action": "KEY", "key": "?"}, inputs=5),
    task({"id": "s", "action": "SWIPE", "direction": "?"}, BACK | {"when": {"all": [{"gone": {}}] * 21}}),
]


def test_every_kind_of_error_of_the_models_has_its_code() -> None:
    kinds: set[str] = set()
    for document in EVERY_KIND_OF_ERROR:
        with pytest.raises(ValidationError) as refused:
            Task.model_validate(document, by_alias=True, by_name=False)
        kinds |= {error["type"] for error in refused.value.errors()}
    assert kinds == set(phrasing._CODES)


def test_every_field_can_be_explained_with_an_example() -> None:
    root = schema_of(Task)
    for definition in (root, *root["$defs"].values()):
        for name, field in definition.get("properties", {}).items():
            if name in ("onFailure", "default"):  # said by the rules
                continue
            resolved = root["$defs"][field["$ref"].rpartition("/")[2]] | field if "$ref" in field else field
            assert phrasing.expectation(resolved), name
            assert name not in definition.get("required", []) or name == "action" or resolved["examples"], name


def test_optional_skips_are_the_timeout_class_of_failures() -> None:
    assert {code.value for code in codes.OPTIONAL_SKIPS} == {
        "PACKAGE_MISMATCH",
        "ACTIVITY_MISMATCH",
        "TARGET_NOT_FOUND",
        "TARGET_DISABLED",
        "CONDITION_NOT_MET",
        "ACTION_FAILED",
        "AFTER_NOT_MET",
    }


@pytest.mark.parametrize("words", [codes.ValidationCode, codes.WarningCode, codes.StepCode])
def test_codes_are_spelt_as_their_names(words: type[codes.ValidationCode]) -> None:
    assert all(word.value == word.name for word in words)
