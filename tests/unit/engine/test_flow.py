"""The walk through the tree of steps: containers, rounds, jumps, cancels, bounds."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from droidfleet_agent.driver.memory import Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.flow import BACK, NOT_SHOWN, SHOWN, Json, back, branch, details, fails, group, if_, ran, repeat
from support.runs import Recorder, run_steps
from support.screens import PACKAGE, dump
from support.shop import shop

# Containers.


async def test_a_group_runs_its_steps_and_ends_after_them(clock: VirtualClock) -> None:
    recorder = Recorder()
    task = await run_steps(shop(clock), clock, group("g", back("a"), back("b")), observer=recorder)
    assert task.successful
    assert [(each.id, each.path) for each in task.steps] == [
        ("a", "/steps/0/steps/0"),
        ("b", "/steps/0/steps/1"),
        ("g", "/steps/0"),
    ]
    assert [heard[:2] for heard in recorder.heard if heard[0] != "dispatching"] == [
        ("started", "g"), ("started", "a"), ("finished", "a"), ("started", "b"), ("finished", "b"), ("finished", "g"),
    ]  # fmt: skip


async def test_a_container_counts_its_own_looks_and_sends_nothing(clock: VirtualClock) -> None:
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "Tea"}}
    task = await run_steps(shop(clock), clock, if_("i", SHOWN, [tap]))
    assert [(each.id, each.looks, each.dispatched) for each in task.steps] == [("t", 1, 1), ("i", 1, 0)]


@pytest.mark.parametrize(
    ("condition", "otherwise", "expected", "detail"),
    [
        (SHOWN, [back("b")], ["a", "i"], Detail.THEN),
        (NOT_SHOWN, [back("b")], ["b", "i"], Detail.ELSE),
        (NOT_SHOWN, None, ["i"], Detail.ELSE),
    ],
)
async def test_if_runs_one_of_its_lists_by_one_look(
    clock: VirtualClock, condition: Json, otherwise: list[Json] | None, expected: list[str], detail: Detail
) -> None:
    task = await run_steps(shop(clock), clock, if_("i", condition, [back("a")], otherwise))
    assert (ran(task), details(task)["i"], task.steps[-1].looks) == (expected, detail, 1)


async def test_paths_name_the_list_of_an_if(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, BACK, if_("i", NOT_SHOWN, [back("a")], [back("b"), back("c")]))
    assert [each.path for each in task.steps[1:3]] == ["/steps/1/else/0", "/steps/1/else/1"]


async def test_a_container_waits_for_its_app_before_it_begins(clock: VirtualClock) -> None:
    other = group("g", back("a"), packageName="com.other", timeoutMs=500)
    task = await run_steps(shop(clock), clock, other)
    assert (task.code, ran(task), task.failed_step_id) == (StepCode.PACKAGE_MISMATCH, ["g"], "g")
    assert clock.monotonic() == pytest.approx(0.5)


async def test_the_time_of_a_container_is_for_its_own_looks_alone(clock: VirtualClock) -> None:
    delay = {"id": "d", "action": "DELAY", "minMs": 3000}
    task = await run_steps(shop(clock), clock, group("g", delay, packageName=PACKAGE, timeoutMs=200))
    assert task.successful
    assert task.steps[-1].duration_ms == 3000


async def test_an_if_that_cannot_see_a_window_waits_for_one(clock: VirtualClock) -> None:
    nothing = Page(dump())
    phone = shop(clock, start="nothing", more={"nothing": nothing})
    task = await run_steps(phone, clock, if_("i", NOT_SHOWN, [back("a")], timeoutMs=500))
    assert (task.code, ran(task)) == (StepCode.CONDITION_NOT_MET, ["i"])
    assert "could not be decided" in task.message


# Rounds.


async def test_a_repeat_runs_its_rounds_and_numbers_them(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", back("a"), maxIterations=3))
    assert [(each.id, each.iteration) for each in task.steps] == [("a", 0), ("a", 1), ("a", 2), ("r", 0)]
    assert task.steps[-1].detail is Detail.BOUND_REACHED


async def test_rounds_are_numbered_through_the_whole_run(clock: VirtualClock) -> None:
    inner = repeat("inner", group("g", back("a")), maxIterations=2)
    task = await run_steps(shop(clock), clock, repeat("outer", inner, maxIterations=2))
    assert [each.iteration for each in task.steps if each.id == "a"] == [0, 1, 2, 3]
    assert [each.iteration for each in task.steps if each.id == "g"] == [0, 1, 2, 3]
    assert [each.iteration for each in task.steps if each.id == "inner"] == [0, 1]


@pytest.mark.parametrize("condition", [SHOWN, NOT_SHOWN], ids=["then", "else"])
async def test_the_steps_of_an_if_know_their_round(clock: VirtualClock, condition: Json) -> None:
    choice = if_("i", condition, [back("a")], [back("b")])
    task = await run_steps(shop(clock), clock, repeat("r", choice, maxIterations=2))
    assert [each.iteration for each in task.steps if each.id in "ab"] == [0, 1]


async def test_until_is_asked_before_the_first_round(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", back("a"), until=SHOWN))
    assert (ran(task), task.steps[0].detail, task.steps[0].looks) == (["r"], Detail.UNTIL_HELD, 1)


async def test_until_is_asked_by_one_look_for_each_round_and_after_the_last(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", back("a"), until=NOT_SHOWN, maxIterations=4))
    assert (Counter(ran(task)), task.steps[-1].looks) == (Counter(a=4, r=1), 5)
    assert task.steps[-1].detail is Detail.BOUND_REACHED


async def test_a_repeat_ends_when_until_holds_after_a_round(clock: VirtualClock) -> None:
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "Tea"}}
    until = {"visible": {"text": "Green tea"}}
    task = await run_steps(shop(clock), clock, repeat("r", tap, until=until))
    assert (ran(task), task.steps[-1].detail) == (["t", "r"], Detail.UNTIL_HELD)


async def test_until_sees_outputs_of_the_round_without_a_look(clock: VirtualClock) -> None:
    read = {"id": "x", "action": "EXTRACT_TEXT", "selector": {"text": "Shop"}, "outputField": "title"}
    until = {"output": "title", "equals": "Shop"}
    task = await run_steps(shop(clock), clock, repeat("r", read, until=until))
    assert (ran(task), task.steps[-1].looks, task.steps[-1].detail) == (["x", "r"], 0, Detail.UNTIL_HELD)


async def test_no_round_begins_after_the_duration_of_a_repeat(clock: VirtualClock) -> None:
    delay = {"id": "d", "action": "DELAY", "minMs": 400}
    task = await run_steps(shop(clock), clock, repeat("r", delay, maxIterations=100, maxDurationMs=1000))
    assert (Counter(ran(task))["d"], task.successful) == (3, True)
    assert task.steps[-1].detail is Detail.BOUND_REACHED
    assert clock.monotonic() == pytest.approx(1.2)


# Jumps.


async def test_a_branch_jumps_over_the_steps_between(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, branch("b", SHOWN, "z"), back("x"), back("y"), back("z"))
    assert (ran(task), details(task)["b"]) == (["b", "z"], Detail.JUMPED)


async def test_a_branch_whose_condition_does_not_hold_goes_on(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, branch("b", NOT_SHOWN, "z"), back("x"), back("z"))
    assert (ran(task), details(task)["b"]) == (["b", "x", "z"], Detail.NOT_JUMPED)


async def test_a_branch_jumps_within_its_own_list(clock: VirtualClock) -> None:
    inner = group("g", branch("b", SHOWN, "z"), back("x"), back("z"))
    assert ran(await run_steps(shop(clock), clock, inner, back("last"))) == ["b", "z", "g", "last"]


@pytest.mark.parametrize("skip", [{"when": NOT_SHOWN}, {"probability": 0}])
async def test_a_branch_that_is_skipped_does_not_jump(clock: VirtualClock, skip: Json) -> None:
    task = await run_steps(shop(clock), clock, branch("b", SHOWN, "z", **skip), back("x"), back("z"))
    assert ran(task) == ["b", "x", "z"]


async def test_a_branch_whose_after_does_not_hold_fails_where_it_is(clock: VirtualClock) -> None:
    after = {"condition": NOT_SHOWN, "timeoutMs": 100}
    task = await run_steps(shop(clock), clock, branch("b", SHOWN, "z", after=after), back("x"), back("z"))
    assert (task.code, ran(task)) == (StepCode.AFTER_NOT_MET, ["b"])


# Cancel and the task's own time.


@pytest.mark.parametrize(
    "steps",
    [
        [repeat("r", back("a"), maxIterations=1000)],
        [group("g", back("a"), back("b"), back("c"), back("d"))],
        [repeat("r", back("x", probability=0), until=NOT_SHOWN, maxIterations=1000)],
        [{"id": "d", "action": "DELAY", "minMs": 600_000}],
        [group("g", {"id": "w", "action": "WAIT", "condition": NOT_SHOWN, "timeoutMs": 30_000})],
        [back("a", when={"not": NOT_SHOWN}), if_("i", NOT_SHOWN, [back("b")])],
    ],
    ids=["rounds", "a group", "empty rounds", "a delay", "a wait", "conditions"],
)
@pytest.mark.parametrize("at", [0.0, 0.15, 0.2])
async def test_a_cancel_ends_the_whole_tree(clock: VirtualClock, steps: list[Json], at: float) -> None:
    control = RunControl()
    phone = shop(clock, latency={"press": 0.1, "dump": 0.1})

    async def cancel() -> None:
        await clock.sleep(at)
        control.cancel("enough")

    async with asyncio.TaskGroup() as group_:
        running = group_.create_task(run_steps(phone, clock, *steps, control=control))
        group_.create_task(cancel())
    task = running.result()
    assert task.code is StepCode.CANCELLED
    assert task.message.endswith(": enough")
    assert clock.monotonic() <= at + 0.1  # what was sent is awaited


@pytest.mark.parametrize(
    ("step", "failed"),
    [
        (repeat("r", {"id": "d", "action": "DELAY", "minMs": 400}, maxIterations=1000), "d"),
        (repeat("r", back("x", probability=0), until=NOT_SHOWN, maxIterations=1000), "r"),
        (group("g", {"id": "w", "action": "WAIT", "condition": NOT_SHOWN}), "w"),
        (group("g", fails("f", timeoutMs=5000, optional=True, onFailure="CONTINUE"), fails("h")), None),
        (group("g", fails("f", timeoutMs=5000, onFailure="CONTINUE"), onFailure="CONTINUE"), "f"),
        ({"id": "d", "action": "DELAY", "minMs": 5000, "optional": True}, "d"),
        (if_("i", NOT_SHOWN, [back("a")], packageName="com.other", onFailure="CONTINUE"), "i"),
    ],
    ids=["a delay of a round", "until", "a wait", "between steps", "whatever onFailure says", "a delay", "a container"],
)
async def test_the_tasks_bound_ends_the_whole_tree(clock: VirtualClock, step: Json, failed: str | None) -> None:
    phone = shop(clock, latency={"dump": 0.03})
    task = await run_steps(phone, clock, step, back("last"), max_duration_ms=1000)
    assert (task.code, task.failed_step_id) == (StepCode.TASK_TIMEOUT, failed)
    assert "last" not in ran(task)
    assert clock.monotonic() == pytest.approx(1.0)
