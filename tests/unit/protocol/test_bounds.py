"""What a task can take at most, read off its document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from droidfleet_shared.protocol.bounds import FAILURE_LOOK_MS, Bound, TaskBound, task_bound
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from droidfleet_shared.protocol.task import Task
from unit.protocol.documents import task

OK = {"text": "OK"}
SHOWN = {"visible": OK}


def bound_of(*steps: object, **fields: object) -> TaskBound:
    return task_bound(Task.model_validate_json(json.dumps(task(*steps, **fields))))


def steps_of(*steps: object) -> Bound:
    """The bound on the steps: without the look that a failing task ends with."""
    total = bound_of(*steps).total
    return replace(total, time_ms=total.time_ms - FAILURE_LOOK_MS)


def step(action: str, **fields: object) -> dict[str, object]:
    return {"id": f"{action}-{id(fields)}", "action": action} | fields


LEAVES: dict[str, tuple[dict[str, object], Bound]] = {
    "CLICK": (step("CLICK", selector=OK, times=3), Bound(5_000, 3, 1)),
    "LONG_CLICK": (step("LONG_CLICK", selector=OK), Bound(5_000, 1, 1)),
    "INPUT": (step("INPUT", selector=OK, value="a"), Bound(5_000, 3, 1)),
    "BACK": (step("BACK"), Bound(5_000, 1)),
    "KEY": (step("KEY", key="HOME"), Bound(5_000, 1)),
    "OPEN": (step("OPEN", packageName="com.shop"), Bound(15_000, 1)),
    "STOP_APP": (step("STOP_APP", packageName="com.shop"), Bound(5_000, 1)),
    "SCROLL": (step("SCROLL", maxScrolls=7), Bound(30_000, 7)),
    "SWIPE": (step("SWIPE", direction="UP"), Bound(5_000, 1)),
    "DRAG": (step("DRAG", selector=OK, to=OK), Bound(5_000, 1, 1)),
    "SELECT_OPTION": (step("SELECT_OPTION", selector=OK, option=OK, maxScrolls=7), Bound(30_000, 9, 2)),
    "WAKE": (step("WAKE"), Bound(5_000, 2)),
    "WAIT": (step("WAIT", selector=OK), Bound(5_000)),
    "DELAY": (step("DELAY", minMs=100, maxMs=700), Bound(700)),
    "EXTRACT_TEXT": (step("EXTRACT_TEXT", selector=OK, outputField="a"), Bound(5_000)),
    "EXTRACT": (step("EXTRACT", selector=OK, fields=[{"outputField": "a"}]), Bound(5_000)),
    "SCREENSHOT": (step("SCREENSHOT"), Bound(5_000)),
    "ASSERT": (step("ASSERT", condition=SHOWN), Bound(5_000)),
    "BRANCH": (step("BRANCH", condition=SHOWN, goto="x"), Bound(5_000)),
}
CONTAINERS = {"GROUP", "IF", "REPEAT"}


def test_a_task_may_look_at_its_failure_once() -> None:
    assert bound_of(step("BACK"), step("BACK")).total == Bound(10_000 + FAILURE_LOOK_MS, 2)


def test_every_action_is_in_the_table() -> None:
    assert LEAVES.keys() | CONTAINERS == set(IMPLEMENTED_ACTIONS)


@pytest.mark.parametrize("action", LEAVES)
def test_bound_of_a_step_with_defaults(action: str) -> None:
    written, expected = LEAVES[action]
    assert steps_of(written) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"timeoutMs": 8_000}, Bound(8_000, 1, 1)),
        ({"after": {"condition": SHOWN}}, Bound(10_000, 1, 1)),
        ({"after": {"condition": SHOWN, "timeoutMs": 700}}, Bound(5_700, 1, 1)),
        ({"redo": True}, Bound(10_000, 2, 2)),
        ({"redo": True, "after": {"condition": SHOWN, "timeoutMs": 700}}, Bound(11_400, 2, 2)),
        ({"probability": 1}, Bound(5_000, 1, 1)),
        ({"probability": 0}, Bound()),
        ({"optional": True, "when": SHOWN}, Bound(5_000, 1, 1)),
    ],
)
def test_common_fields_change_the_bound_of_a_tap(fields: dict[str, object], expected: Bound) -> None:
    assert steps_of(step("CLICK", selector=OK) | fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected_ms"),
    [
        ({}, 700),
        ({"when": SHOWN}, 5_700),
        ({"packageName": "com.shop"}, 5_700),
        ({"after": {"condition": SHOWN}}, 5_700),
        ({"maxMs": None}, 100),
    ],
)
def test_a_delay_takes_its_longest_time_and_what_it_looks_for(fields: dict[str, object], expected_ms: int) -> None:
    written = {key: value for key, value in (LEAVES["DELAY"][0] | fields).items() if value is not None}
    assert steps_of(written) == Bound(expected_ms)


def test_submitting_a_text_is_one_effect_more() -> None:
    assert bound_of(step("INPUT", selector=OK, value="a", submit=True)).total.effects == 4


def test_stopping_an_app_first_is_one_effect_more() -> None:
    assert bound_of(step("OPEN", packageName="com.shop", stopFirst=True)).total.effects == 2


def test_a_group_is_the_sum_of_its_steps() -> None:
    assert steps_of(step("GROUP", steps=[step("BACK"), step("WAIT", selector=OK)])) == Bound(10_000, 1)


def test_an_if_is_the_larger_of_its_branches_and_its_own_look() -> None:
    branches = {"then": [step("BACK"), step("BACK")], "else": [step("WAIT", selector=OK, timeoutMs=30_000)]}
    assert steps_of(step("IF", condition=SHOWN, timeoutMs=1_000, **branches)) == Bound(31_000, 2)


def test_a_repeat_is_so_many_rounds() -> None:
    assert steps_of(step("REPEAT", maxIterations=20, steps=[step("BACK")])) == Bound(100_000, 20)


def test_a_repeat_looks_for_its_end_before_each_round_and_after_the_last() -> None:
    repeat = step("REPEAT", maxIterations=20, timeoutMs=1_000, until=SHOWN, steps=[step("BACK")])
    assert steps_of(repeat) == Bound(121_000, 20)


def test_a_repeat_with_a_time_of_its_own_goes_on_for_one_more_round() -> None:
    repeat = step("REPEAT", maxIterations=20, maxDurationMs=30_000, steps=[step("BACK")])
    assert steps_of(repeat) == Bound(35_000, 20)


def test_a_jump_leaves_steps_out_and_so_adds_nothing() -> None:
    steps = [step("BRANCH", condition=SHOWN, goto="end"), step("BACK"), step("BACK", id="end")]
    assert steps_of(*steps) == Bound(15_000, 2)


def test_the_task_ends_by_its_own_time() -> None:
    assert bound_of(step("BACK"), step("BACK"), maxDurationMs=7_000).total == Bound(7_000, 2)


def test_every_step_has_its_own_bound_and_how_often_it_runs() -> None:
    inner = step("REPEAT", maxIterations=3, steps=[step("CLICK", selector=OK)])
    bound = bound_of(step("REPEAT", maxIterations=5, steps=[inner]), step("BACK"))
    assert [(path, each.once.effects, each.runs) for path, each in bound.steps.items()] == [
        ("/steps/0", 15, 1),
        ("/steps/0/steps/0", 3, 5),
        ("/steps/0/steps/0/steps/0", 1, 15),
        ("/steps/1", 1, 1),
    ]


def test_bounds_beyond_every_calendar_are_still_numbers() -> None:
    steps = step("DELAY", minMs=600_000)
    for _ in range(4):
        steps = step("REPEAT", maxIterations=1_000, steps=[steps])
    assert steps_of(steps) == Bound(600_000 * 1_000**4)
