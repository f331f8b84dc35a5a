"""Which steps of a task are marked as ones that cannot be undone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from droidfleet_designer.draft.draft import Mark
from droidfleet_designer.draft.marks import LOWERED_PERCENT, Marked, marked
from droidfleet_shared.protocol.task import TaskTemplate
from support.workshops import CHAT, QUESTION, SHOP, TEA, WORDS

SEEN = {"s1": SHOP, "s2": TEA, "s3": CHAT, "s4": QUESTION}

Steps = list[dict[str, JsonValue]]
SEARCH: dict[str, JsonValue] = {"hint": "Search the shop"}
MESSAGE: dict[str, JsonValue] = {"hint": "Message"}


def judged(steps: Steps, *, before: Sequence[Mark] | None = None, inputs: JsonValue = None) -> Marked:
    task: dict[str, JsonValue] = {"schemaVersion": 1, "taskId": "t", "steps": [*steps]}
    if inputs is not None:
        task["inputs"] = inputs
    model = TaskTemplate.model_validate(task)
    return marked(task, model, snapshots=SEEN, words=WORDS, before=before)


def step(action: str, **fields: JsonValue) -> dict[str, JsonValue]:
    return {"id": f"{action.lower()}-1", "action": action, **fields}


MARKED: list[Steps] = [
    [step("CLICK", selector={"text": "Delete account"})],
    [step("CLICK", selector={"description": "Send"})],
    [step("LONG_CLICK", selector={"text": "Delete account"})],
    [step("CLICK", selector={"text": "OK"})],
    [step("INPUT", selector=MESSAGE, value="hello", submit=True)],
    [step("INPUT", selector=MESSAGE, value="hello\n")],
    [step("INPUT", selector=MESSAGE, value="hello"), step("KEY", key="ENTER")],
    [step("KEY", key="ENTER")],
    [step("KEY", key="DELETE")],
    [step("INPUT", selector=SEARCH, value="x"), step("CLICK", selector=MESSAGE), step("KEY", key="ENTER")],
    [step("INPUT", selector=SEARCH, value="x"), step("OPEN", packageName="com.example.chat"), step("KEY", key="ENTER")],
    [step("SELECT_OPTION", selector={"text": "Delete account"}, option={"text": "Cancel"})],
    [step("DRAG", selector={"text": "Green tea"}, to={"text": "Delete account"})],
    [step("SWIPE", selector={"text": "Delete account"}, direction="LEFT")],
    [step("CLICK", selector={"point": {"xPercent": 1, "yPercent": 1}, "allowPoint": True})],
    [
        step("EXTRACT_TEXT", selector={"text": "Cancel"}, outputField="z"),
        step("CLICK", selector={"description": "${outputs.z}"}),
    ],
]

UNMARKED: list[Steps] = [
    [step("CLICK", selector={"text": "Green tea"})],
    [step("CLICK", selector={"text": "Cancel"})],
    [step("INPUT", selector=SEARCH, value="green tea", submit=True)],
    [step("INPUT", selector=SEARCH, value="green tea"), step("KEY", key="ENTER")],
    [step("INPUT", selector=MESSAGE, value="hello")],
    [step("BACK")],
    [step("SWIPE", selector={"text": "Green tea"}, direction="LEFT")],
]


@pytest.mark.parametrize("steps", MARKED, ids=str)
def test_the_last_step_may_not_be_undone(steps: Steps) -> None:
    made = judged(steps)
    assert [mark.path for mark in made.marks] == [f"/steps/{len(steps) - 1}"]
    assert made.marks[0].why
    lowered = made.task["steps"]
    assert isinstance(lowered, list)
    assert isinstance(lowered[-1], dict)
    assert lowered[-1]["probability"] == LOWERED_PERCENT


@pytest.mark.parametrize("steps", UNMARKED, ids=str)
def test_nothing_says_that_it_cannot_be_undone(steps: Steps) -> None:
    made = judged(steps)
    assert made.marks == ()


def test_a_value_is_judged_as_it_will_be() -> None:
    typed: dict[str, JsonValue] = {"text": {"type": "string", "default": "hi\n"}}
    assert judged([step("INPUT", selector=MESSAGE, value="${inputs.text}")], inputs=typed).marks
    named: dict[str, JsonValue] = {"name": {"type": "string", "default": "Delete account"}}
    assert judged([step("CLICK", selector={"text": "${inputs.name}"})], inputs=named).marks


def test_a_field_that_was_typed_into_in_one_branch_is_not_where_a_key_goes_after_it() -> None:
    condition: JsonValue = {"visible": {"text": "Green tea"}}
    then: JsonValue = [step("INPUT", selector=SEARCH, value="x")]
    assert judged([step("IF", condition=condition, then=then), step("KEY", key="ENTER")]).marks


def test_a_probability_that_a_person_sets_back_stays() -> None:
    steps: Steps = [step("CLICK", selector={"text": "Delete account"})]
    first = judged(steps)
    assert [(mark.lowered, mark.probability) for mark in first.marks] == [(True, 100)]
    kept = judged([{**steps[0], "probability": LOWERED_PERCENT}], before=first.marks)
    assert [(mark.lowered, mark.probability) for mark in kept.marks] == [(True, 100)]
    back = judged([{**steps[0], "probability": 100}], before=first.marks)
    assert [(mark.lowered, mark.probability) for mark in back.marks] == [(False, 100)]
    assert back.task["steps"] == [{**steps[0], "probability": 100}]
