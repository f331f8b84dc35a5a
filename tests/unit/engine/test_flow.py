"""The walk through the tree of steps: containers, jumps, skips, failures, chance, rounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import ON_FAILURE_APPLIES, Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from support.runs import AGENT, Recorder, run_steps, task_of
from support.screens import PACKAGE, dump
from support.shop import shop

Json = Mapping[str, object]

BACK: Json = {"action": "BACK"}
SHOWN: Json = {"visible": {"text": "Shop"}}
NOT_SHOWN: Json = {"visible": {"text": "Never"}}
FAILS: Json = {"action": "CLICK", "selector": {"text": "Never"}, "timeoutMs": 100}
AMBIGUOUS: Json = {"action": "CLICK", "selector": {"text": "Delete"}}


def back(name: str, **more: object) -> Json:
    """A step that leaves a trace and needs no screen."""
    return {"id": name, **BACK, **more}


def fails(name: str, **more: object) -> Json:
    """A step that fails in a way that may be passed over."""
    return {"id": name, **FAILS, **more}


def group(name: str, *steps: Json, **more: object) -> Json:
    return {"id": name, "action": "GROUP", "steps": list(steps), **more}


def repeat(name: str, *steps: Json, **more: object) -> Json:
    return {"id": name, "action": "REPEAT", "steps": list(steps), **more}


def if_(name: str, condition: Json, then: list[Json], otherwise: list[Json] | None = None, **more: object) -> Json:
    alternative = {} if otherwise is None else {"else": otherwise}
    return {"id": name, "action": "IF", "condition": condition, "then": then, **alternative, **more}


def branch(name: str, condition: Json, goto: str, **more: object) -> Json:
    return {"id": name, "action": "BRANCH", "condition": condition, "goto": goto, **more}


def ran(task: TaskResult) -> list[str]:
    """The ids of the steps in the order in which they ended."""
    return [step.id for step in task.steps]


def details(task: TaskResult) -> dict[str, Detail]:
    return {step.id: step.detail for step in task.steps}


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


# Failures.


async def test_a_failure_passes_up_with_the_innermost_step_named(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, group("g", if_("i", SHOWN, [fails("f"), back("x")])), back("y"))
    assert (ran(task), task.failed_step_id) == (["f", "i", "g"], "f")
    assert {each.code for each in task.steps} == {task.code} == {StepCode.TARGET_NOT_FOUND}
    assert task.message.startswith("Step 'f': ")
    assert task.steps[-1].message == task.message


@pytest.mark.parametrize(
    ("on_failure", "expected"),
    [("CONTINUE", ["f", "x", "y"]), ({"goto": "y"}, ["f", "y"]), ("STOP", ["f"])],
)
async def test_on_failure_says_what_follows(clock: VirtualClock, on_failure: object, expected: list[str]) -> None:
    task = await run_steps(shop(clock), clock, fails("f", onFailure=on_failure), back("x"), back("y"))
    assert ran(task) == expected
    assert not task.steps[0].successful


async def test_a_task_that_went_on_after_a_failure_says_so(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", onFailure="CONTINUE"), back("x"))
    assert (task.successful, task.code, task.detail) == (True, StepCode.OK, Detail.FAILURES_CONTINUED)
    assert task.failed_step_id is None


async def test_optional_wins_over_on_failure(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", optional=True, onFailure={"goto": "y"}), back("x"), back("y"))
    assert (ran(task), task.steps[0].detail, task.detail) == (["f", "x", "y"], Detail.SKIPPED_OPTIONAL, Detail.NONE)


@pytest.mark.parametrize("on_failure", ["CONTINUE", {"goto": "y"}])
async def test_a_container_is_asked_when_a_step_in_it_failed(clock: VirtualClock, on_failure: object) -> None:
    task = await run_steps(shop(clock), clock, group("g", fails("f"), back("x"), onFailure=on_failure), back("y"))
    assert (ran(task), task.successful) == (["f", "g", "y"], True)


async def test_an_optional_container_skips_what_failed_in_it(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, group("g", fails("f"), back("x"), optional=True), back("y"))
    assert (ran(task), details(task)["g"], task.successful) == (["f", "g", "y"], Detail.SKIPPED_OPTIONAL, True)


async def test_a_failure_ends_the_rounds(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", fails("f")))
    assert (ran(task), task.code) == (["f", "r"], StepCode.TARGET_NOT_FOUND)


async def test_rounds_go_on_after_a_failure_that_is_passed_over(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, repeat("r", fails("f", onFailure="CONTINUE"), maxIterations=2))
    assert (ran(task), task.detail) == (["f", "f", "r"], Detail.FAILURES_CONTINUED)


TAP: Json = {"action": "CLICK", "selector": {"text": "Tea"}, "timeoutMs": 500}
FAILING: dict[StepCode, Json] = {
    StepCode.PACKAGE_MISMATCH: {**TAP, "packageName": "com.other"},
    StepCode.ACTIVITY_MISMATCH: {**TAP, "packageName": PACKAGE, "activityName": ".Other"},
    StepCode.TARGET_NOT_FOUND: FAILS,
    StepCode.TARGET_DISABLED: {**TAP, "selector": {"text": "Sold out"}},
    StepCode.TARGET_AMBIGUOUS: AMBIGUOUS,
    StepCode.CONDITION_NOT_MET: {"action": "ASSERT", "condition": NOT_SHOWN, "timeoutMs": 500},
    StepCode.ACTION_FAILED: TAP,
    StepCode.AFTER_NOT_MET: {**TAP, "after": {"condition": NOT_SHOWN, "timeoutMs": 500}},
    StepCode.OUTCOME_UNKNOWN: TAP,
    StepCode.SCREEN_UNREADABLE: TAP,
    StepCode.DEVICE_UNAVAILABLE: TAP,
    StepCode.VALUE_MISSING: {**TAP, "selector": {"text": "${outputs.nothing}"}},
}
FAULTS: dict[StepCode, tuple[Call, list[Fault]]] = {
    StepCode.ACTION_FAILED: ("tap", [Fault.FALSE]),
    StepCode.OUTCOME_UNKNOWN: ("tap", [Fault.DIES_AFTER]),
    StepCode.SCREEN_UNREADABLE: ("dump", [Fault.CUT, Fault.CUT]),
    StepCode.DEVICE_UNAVAILABLE: ("dump", [Fault.DIES_BEFORE] * 50),
}


def failing_with(code: StepCode, clock: VirtualClock) -> tuple[MemoryPhone, Json]:
    """A phone, and a step that fails on it so."""
    phone = shop(clock)
    if code in FAULTS:
        call, faults = FAULTS[code]
        phone.fail(call, *faults)
    return phone, {"id": "f", **FAILING[code]}


@pytest.mark.parametrize("code", FAILING)
@pytest.mark.parametrize("inside", [False, True], ids=["of the step", "of the container"])
async def test_on_failure_passes_over_exactly_what_is_safe(clock: VirtualClock, code: StepCode, inside: bool) -> None:
    phone, step = failing_with(code, clock)
    failing = group("g", step, onFailure="CONTINUE") if inside else {**step, "onFailure": "CONTINUE"}
    task = await run_steps(phone, clock, failing, {"id": "d", "action": "DELAY", "minMs": 0})
    assert task.steps[0].code is code
    assert ("d" in ran(task)) == (code in ON_FAILURE_APPLIES)
    assert task.code is (StepCode.OK if code in ON_FAILURE_APPLIES else code)


@pytest.mark.parametrize("code", FAILING)
@pytest.mark.parametrize("inside", [False, True], ids=["of the step", "of the container"])
async def test_optional_skips_exactly_what_ran_out_of_time(clock: VirtualClock, code: StepCode, inside: bool) -> None:
    phone, step = failing_with(code, clock)
    task = await run_steps(phone, clock, group("g", step, optional=True) if inside else {**step, "optional": True})
    skipped = code not in {
        StepCode.TARGET_AMBIGUOUS, StepCode.OUTCOME_UNKNOWN, StepCode.DEVICE_UNAVAILABLE, StepCode.VALUE_MISSING,
        StepCode.SCREEN_UNREADABLE,
    }  # fmt: skip
    assert task.steps[-1].detail is (Detail.SKIPPED_OPTIONAL if skipped else Detail.NONE)
    assert task.successful == skipped


# When, values, chance.


async def test_when_is_decided_by_one_look_and_skips_as_a_success(clock: VirtualClock) -> None:
    phone = shop(clock)
    task = await run_steps(phone, clock, {"id": "t", **AMBIGUOUS, "when": NOT_SHOWN})
    assert (task.steps[0].successful, task.steps[0].detail, task.steps[0].looks) == (True, Detail.WHEN_FALSE, 1)


async def test_when_does_not_wait_for_the_app_of_the_step(clock: VirtualClock) -> None:
    step = {"id": "t", **BACK, "packageName": "com.other", "when": {"foreground": "com.other"}}
    task = await run_steps(shop(clock), clock, step)
    assert (task.steps[0].detail, clock.monotonic()) == (Detail.WHEN_FALSE, 0.0)


async def test_a_step_whose_when_holds_takes_one_look_more(clock: VirtualClock) -> None:
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "Tea"}, "when": SHOWN}
    task = await run_steps(shop(clock), clock, tap)
    assert (task.steps[0].detail, task.steps[0].looks) == (Detail.DISPATCHED_UNVERIFIED, 2)


async def test_when_and_the_action_share_the_time_of_the_step(clock: VirtualClock) -> None:
    phone = shop(clock, latency={"dump": 0.6})
    await run_steps(phone, clock, fails("f", when=SHOWN, timeoutMs=1000))
    assert clock.monotonic() == pytest.approx(1.0)


async def test_a_when_of_outputs_takes_no_look(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, back("a", when={"output": "nothing", "equals": ""}))
    assert (task.steps[0].detail, task.steps[0].looks) == (Detail.WHEN_FALSE, 0)


async def test_values_are_put_in_before_when_is_asked(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, back("a", when={"visible": {"text": "${outputs.nothing}"}}))
    assert (task.code, task.steps[0].looks) == (StepCode.VALUE_MISSING, 0)
    assert "${outputs.nothing}" in task.message


async def test_chance_is_asked_before_values_are_put_in(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, fails("f", probability=0, label="${outputs.nothing}"))
    assert (task.successful, task.steps[0].detail) == (True, Detail.SKIPPED_BY_CHANCE)


async def test_an_output_can_be_used_once_it_was_extracted(clock: VirtualClock) -> None:
    read = {"id": "x", "action": "EXTRACT_TEXT", "selector": {"text": "Tea"}, "outputField": "item"}
    tap = {"id": "t", "action": "CLICK", "selector": {"text": "${outputs.item}"}}
    phone = shop(clock)
    assert (await run_steps(phone, clock, read, tap)).successful
    assert phone.page == "detail"


async def test_a_value_that_does_not_fit_fails_the_step(clock: VirtualClock) -> None:
    read = {"id": "x", "action": "EXTRACT_TEXT", "selector": {"text": "Shop"}, "outputField": "name"}
    step = {"id": "o", "action": "BACK", "packageName": "com.${outputs.name}!"}
    task = await run_steps(shop(clock), clock, read, step)
    assert (task.code, task.failed_step_id) == (StepCode.VALUE_MISSING, "o")
    assert "packageName" in task.message


async def seeded(clock: VirtualClock, *steps: Json, seed: int) -> TaskResult:
    task = task_of(*steps).model_copy(update={"random_seed": seed})
    return await Engine(shop(clock), clock=clock).run(
        task, execution_id="e", agent_name=AGENT, observer=Recorder(), control=RunControl()
    )


async def test_probability_is_about_what_it_says(clock: VirtualClock) -> None:
    task = await seeded(clock, repeat("r", back("a", probability=30), maxIterations=150), seed=1)
    chosen = sum(each.detail is not Detail.SKIPPED_BY_CHANCE for each in task.steps if each.id == "a")
    assert 30 <= chosen <= 60


async def test_a_run_with_a_seed_can_be_replayed(clock: VirtualClock) -> None:
    delay = {"id": "d", "action": "DELAY", "minMs": 0, "maxMs": 1000}
    steps = [repeat("r", back("a", probability=50), delay, maxIterations=20)]
    first = await seeded(clock, *steps, seed=7)
    again = await seeded(clock, *steps, seed=7)
    other = await seeded(clock, *steps, seed=8)
    assert first.random_seed == 7
    assert [each.message for each in again.steps] == [each.message for each in first.steps]
    assert [each.message for each in other.steps] != [each.message for each in first.steps]


async def test_a_seed_is_drawn_and_reported_where_none_is_given(clock: VirtualClock) -> None:
    first, second = [await run_steps(shop(clock), clock, BACK) for _ in range(2)]
    assert first.random_seed is not None
    assert first.random_seed != second.random_seed


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
