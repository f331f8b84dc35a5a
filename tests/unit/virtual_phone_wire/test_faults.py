"""Fault plans: which call is hit, and what a wrong plan is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone import calls
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind, FaultPlan, decide, load_faults, parse_faults
from droidfleet_shared.errors import InvalidInputError

CLICK = calls.RPC_CALLS["click"]
DUMP = calls.RPC_CALLS["dumpWindowHierarchy"]


def fault(**values: object) -> Fault:
    return Fault.model_validate({"on": "click", "do": "drop", **values})


def hits(plan: FaultPlan, count: int) -> list[bool]:
    return [plan.take(CLICK) is not None for _ in range(count)]


def test_a_fault_hits_the_next_matching_call_once() -> None:
    assert hits(FaultPlan([fault()]), 3) == [True, False, False]


def test_nth_and_times_choose_calls_in_a_row() -> None:
    assert hits(FaultPlan([fault(nth=2, times=2)]), 5) == [False, True, True, False, False]


def test_times_null_means_from_then_on() -> None:
    assert hits(FaultPlan([fault(nth=2, times=None)]), 4) == [False, True, True, True]


def test_other_calls_neither_hit_nor_count() -> None:
    plan = FaultPlan([fault(nth=2)])
    plan.take(CLICK)
    assert plan.take(DUMP) is None
    assert plan.take(CLICK) is not None


@pytest.mark.parametrize("name", ["click", "tap", "action", "rpc", "http"])
def test_a_click_answers_to_every_one_of_its_names(name: str) -> None:
    assert FaultPlan([fault(on=name)]).take(CLICK) is not None


def test_the_first_due_fault_wins_and_both_count() -> None:
    first, second = fault(do="hang"), fault(on="rpc", do="http_error", times=2)
    plan = FaultPlan([first, second])
    assert [plan.take(CLICK), plan.take(CLICK), plan.take(CLICK)] == [first, second, None]


def test_a_shell_fault_is_about_commands_that_begin_so() -> None:
    plan = FaultPlan([fault(on="shell:dumpsys window", do="hang")])
    assert plan.take(calls.SHELL, "dumpsys battery") is None
    assert plan.take(calls.SHELL, "dumpsys window windows") is not None


def test_fired_faults_are_listed_with_their_call() -> None:
    plan = FaultPlan([fault()])
    plan.take(CLICK)
    assert [(fired.fault.do, fired.call) for fired in plan.fired] == [(FaultKind.DROP, "click")]


def test_a_fault_added_later_counts_from_then_on() -> None:
    plan = FaultPlan([fault(on="rpc", do="hang", nth=9)])
    plan.take(CLICK)
    plan.add(fault())
    assert plan.take(CLICK) is not None


def test_a_cleared_plan_is_inactive() -> None:
    plan = FaultPlan([fault()])
    plan.clear()
    assert not plan.active


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 12))
def test_exactly_the_stated_calls_are_hit(nth: int, times: int, made: int) -> None:
    plan = [fault(nth=nth, times=times)]
    seen = [0]
    hit_calls: list[int] = []
    for number in range(1, made + 1):
        hit, seen = decide(plan, seen, CLICK.names, "")
        if hit is not None:
            hit_calls.append(number)
    assert hit_calls == [number for number in range(nth, nth + times) if number <= made]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"on": "clik"}, "did you mean `click`"),
        ({"do": "explode"}, "Input should be"),
        ({"do": "slow"}, "needs `seconds`"),
        ({"seconds": 3}, "has no meaning"),
        ({"do": "cut"}, "only happen on `dumpWindowHierarchy`"),
        ({"on": "connect"}, "cannot happen on `connect`"),
        ({"on": "connect", "do": "hang", "after": True}, "nothing is carried out"),
        ({"do": "stale", "after": True}, "`after` has no meaning"),
        ({"nth": 0}, "greater than or equal to 1"),
        ({"when": 3}, "Extra inputs"),
    ],
)
def test_a_wrong_fault_is_told_what_is_wrong(values: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInputError, match="FAULTS_INVALID") as caught:
        parse_faults([{"on": "click", "do": "drop", **values}])
    assert words in str(caught.value)


def test_every_wrong_fault_of_a_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("faults:\n- {on: clik, do: drop}\n- {on: click, do: slow}\n- {on: click, do: drop}\n")
    with pytest.raises(InvalidInputError) as caught:
        load_faults(path)
    assert [getattr(issue, "path", "") for issue in caught.value.issues] == ["/faults/0", "/faults/1"]


@pytest.mark.parametrize("text", ["[", "faults: 3", "3", "", "\x00"])
def test_a_file_that_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match="FAULTS_INVALID"):
        load_faults(path)


def test_false_is_a_kind_in_yaml_too(tmp_path: Path) -> None:
    path = tmp_path / "faults.yaml"
    path.write_text("- {on: click, do: false}\n- {on: click, do: drop, after: true}\n")
    assert [(fault.do, fault.after) for fault in load_faults(path)] == [("false", False), ("drop", True)]


def test_a_plan_may_be_json(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps([{"on": "http", "do": "http_error", "times": None}]))
    assert load_faults(path) == [Fault(on="http", do=FaultKind.HTTP_ERROR, times=None)]
