"""What is kept of the moment in which a task fails, in what time, and whether the task acted."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Mapping

import pytest
from PIL import Image

from droidfleet_agent.driver.memory import SMALLEST_JPEG, Call, Fault, MemoryPhone
from droidfleet_agent.driver.port import Focus, PhoneUnavailableError
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.failing import MAX_PICTURE_BYTES
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.engine.trail import Ended
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.bounds import FAILURE_LOOK_MS, task_bound
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import Task
from support.runs import AGENT, JsonStep, task_of
from support.screens import PACKAGE
from support.shop import shop
from unit.engine.test_screenshot import Keeper, camera, noise

MISSING: JsonStep = {"action": "WAIT", "selector": {"text": "never there"}, "timeoutMs": 1_000}
TAP: JsonStep = {"action": "CLICK", "selector": {"text": "Tea"}}
SEEN: JsonStep = {"action": "WAIT", "selector": {"text": "Shop"}}
LOOK_S = FAILURE_LOOK_MS / 1_000


class Asked(MemoryPhone):
    """Remembers what it was asked for beside dumps."""

    asked: list[str]

    async def focus(self, *, deadline: Deadline) -> Focus:
        self.asked.append("focus")
        return await super().focus(deadline=deadline)

    async def screenshot(self, *, deadline: Deadline) -> bytes:
        self.asked.append("screenshot")
        return await super().screenshot(deadline=deadline)


def asked(clock: VirtualClock, latency: Mapping[Call, float] | None = None) -> Asked:
    phone = shop(clock, latency=latency)
    phone.__class__ = Asked
    assert isinstance(phone, Asked)
    phone.asked = []
    return phone


async def run(
    phone: MemoryPhone,
    clock: VirtualClock,
    *steps: JsonStep,
    keeper: Keeper | None = None,
    control: RunControl | None = None,
    task: Task | None = None,
    max_duration_ms: int | None = None,
) -> TaskResult:
    return await Engine(phone, clock=clock, looks_at_failure=True).run(
        task or task_of(*steps, max_duration_ms=max_duration_ms),
        execution_id="e1",
        agent_name=AGENT,
        observer=keeper or Keeper(),
        control=control or RunControl(),
    )


def pictures(result: TaskResult) -> list[tuple[str, str]]:
    """The failure pictures that the steps' results name, by step."""
    return [(step.id, each.sha256) for step in result.steps for each in step.artifacts if each.name == "failure"]


async def test_a_failing_task_says_what_was_in_front_and_keeps_a_picture(clock: VirtualClock) -> None:
    keeper = Keeper()
    result = await run(shop(clock), clock, SEEN, MISSING, keeper=keeper)
    assert (result.code, result.failed_screen) == (StepCode.TARGET_NOT_FOUND, f"{PACKAGE}/.MainActivity")
    [(artifact, data)] = keeper.kept
    assert (artifact.name, artifact.media_type, data) == ("failure", "image/jpeg", SMALLEST_JPEG)
    assert pictures(result) == [("s2", artifact.sha256)]


async def test_an_activity_of_another_package_is_named_whole(clock: VirtualClock) -> None:
    class Elsewhere(Asked):
        async def focus(self, *, deadline: Deadline) -> Focus:
            return Focus("com.shop", "org.library.LoginActivity")

    phone = asked(clock)
    phone.__class__ = Elsewhere
    assert (await run(phone, clock, MISSING)).failed_screen == "com.shop/org.library.LoginActivity"


async def test_a_task_that_succeeds_is_not_looked_at(clock: VirtualClock) -> None:
    phone = asked(clock)
    result = await run(phone, clock, SEEN, {**MISSING, "optional": True})
    assert (result.successful, result.failed_screen, phone.asked) == (True, "", [])


@pytest.mark.parametrize(
    "around",
    [
        {"action": "GROUP", "onFailure": "CONTINUE"},
        {"action": "GROUP", "optional": True},
        {"action": "REPEAT", "maxIterations": 2, "onFailure": "CONTINUE"},
    ],
)
async def test_a_failure_that_is_passed_over_further_out_is_not_looked_at(
    clock: VirtualClock, around: dict[str, object]
) -> None:
    phone = asked(clock)
    inner = {**MISSING, "id": "inner"}
    result = await run(phone, clock, {**around, "steps": [inner]})
    assert (result.successful, phone.asked) == (True, [])


async def test_a_failure_deep_inside_is_looked_at_once_and_bears_its_step(clock: VirtualClock) -> None:
    phone = asked(clock)
    inner = {**MISSING, "id": "inner"}
    outer = {"action": "GROUP", "id": "outer", "steps": [{"action": "GROUP", "id": "middle", "steps": [inner]}]}
    result = await run(phone, clock, outer)
    assert (phone.asked, [step for step, _ in pictures(result)]) == (["focus", "screenshot"], ["inner"])
    assert result.failed_screen == f"{PACKAGE}/.MainActivity"


async def test_the_step_keeps_the_duration_that_its_own_work_took(clock: VirtualClock) -> None:
    result = await run(shop(clock, latency={"screenshot": 2.0}), clock, MISSING)
    assert (result.steps[0].duration_ms, result.duration_ms) == (1_000, 3_000)


@pytest.mark.parametrize("call", ["focus", "screenshot"])
async def test_a_phone_that_hangs_ends_the_look_in_its_time(clock: VirtualClock, call: Call) -> None:
    phone = shop(clock)
    phone.fail(call, Fault.HANG)
    result = await run(phone, clock, MISSING)
    assert (pictures(result), result.duration_ms) == ([], 1_000 + FAILURE_LOOK_MS)
    assert result.failed_screen.split("/")[0] == PACKAGE
    assert result.duration_ms <= task_bound(task_of(MISSING)).total.time_ms


async def test_the_look_ends_by_the_tasks_own_bound(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("screenshot", Fault.HANG)
    result = await run(phone, clock, MISSING, max_duration_ms=1_500)
    assert (result.code, result.duration_ms) == (StepCode.TARGET_NOT_FOUND, 1_500)


async def test_no_time_is_left_for_a_look_when_the_tasks_bound_ended_it(clock: VirtualClock) -> None:
    phone = asked(clock)
    result = await run(phone, clock, {**MISSING, "timeoutMs": 5_000}, max_duration_ms=1_000)
    assert (result.code, result.duration_ms, phone.asked) == (StepCode.TASK_TIMEOUT, 1_000, [])
    assert result.failed_screen == PACKAGE


async def test_a_phone_that_is_gone_is_not_asked(clock: VirtualClock) -> None:
    phone = asked(clock)
    phone.fail("dump", *[Fault.DIES_BEFORE] * 200)
    result = await run(phone, clock, MISSING)
    assert (result.code, phone.asked) == (StepCode.DEVICE_UNAVAILABLE, [])


async def test_a_cancelled_run_is_not_looked_at(clock: VirtualClock) -> None:
    phone, control = asked(clock), RunControl()
    result = await _cancelled(phone, clock, control, after_s=0.5)
    assert (result.code, phone.asked) == (StepCode.CANCELLED, [])


async def test_a_cancel_ends_the_look_at_once_and_the_failure_stays(clock: VirtualClock) -> None:
    phone, control = shop(clock), RunControl()
    phone.fail("screenshot", Fault.HANG)
    result = await _cancelled(phone, clock, control, after_s=1.5)
    assert (result.code, result.duration_ms) == (StepCode.TARGET_NOT_FOUND, 1_500)
    assert result.failed_screen == f"{PACKAGE}/.MainActivity"


async def _cancelled(phone: MemoryPhone, clock: VirtualClock, control: RunControl, *, after_s: float) -> TaskResult:
    async def cancel() -> None:
        await clock.sleep(after_s)
        control.cancel("enough")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(phone, clock, MISSING, control=control))
        group.create_task(cancel())
    return running.result()


@pytest.mark.parametrize("secret", ["hunter2-typed", "7"])
async def test_no_picture_is_taken_of_a_task_with_a_secret(clock: VirtualClock, secret: str) -> None:
    body = {
        "schemaVersion": 1,
        "taskId": "t",
        "assignedAgentName": AGENT,
        "inputs": {"pin": {"type": "secret"}},
        "inputValues": {"pin": secret},
        "steps": [{"id": "s1", **MISSING}],
    }
    phone = asked(clock)
    result = await run(phone, clock, task=Task.model_validate_json(json.dumps(body)))
    assert (phone.asked, result.failed_screen) == (["focus"], f"{PACKAGE}/.MainActivity")


async def test_a_large_picture_is_made_small(clock: VirtualClock) -> None:
    keeper = Keeper()
    await run(camera(clock, noise(700, 900)), clock, MISSING, keeper=keeper)
    [(artifact, data)] = keeper.kept
    assert (artifact.media_type, len(data) <= MAX_PICTURE_BYTES) == ("image/jpeg", True)
    Image.open(io.BytesIO(data)).verify()


async def test_without_a_picture_the_task_fails_as_it_does(clock: VirtualClock) -> None:
    class Unseen(Asked):
        async def screenshot(self, *, deadline: Deadline) -> bytes:
            raise PhoneUnavailableError("PHONE_UNAVAILABLE", "gone")

    phone = asked(clock)
    phone.__class__ = Unseen
    result = await run(phone, clock, MISSING)
    assert (result.code, pictures(result)) == (StepCode.TARGET_NOT_FOUND, [])


async def test_an_engine_that_is_not_asked_to_look_says_what_its_last_look_showed(clock: VirtualClock) -> None:
    phone = asked(clock)
    result = await Engine(phone, clock=clock).run(
        task_of(MISSING), execution_id="e1", agent_name=AGENT, observer=Keeper(), control=RunControl()
    )
    assert (result.failed_screen, phone.asked) == (PACKAGE, [])


@pytest.mark.parametrize(("steps", "acted"), [((SEEN, MISSING), False), ((TAP, MISSING), True), ((TAP,), True)])
async def test_a_result_says_whether_the_phone_was_told_anything(
    clock: VirtualClock, steps: tuple[JsonStep, ...], acted: bool
) -> None:
    assert (await run(shop(clock), clock, *steps)).acted is acted


async def test_an_action_of_which_nobody_knows_may_have_acted(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.DIES_AFTER)
    result = await run(phone, clock, TAP)
    assert (result.code, result.acted) == (StepCode.OUTCOME_UNKNOWN, True)


async def test_an_action_that_was_never_sent_did_not_act(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", *[Fault.DIES_BEFORE] * 100)
    result = await run(phone, clock, TAP)
    assert (result.successful, result.acted) == (False, False)


def test_a_picture_of_a_failure_is_kept_before_its_step_ends(clock: VirtualClock) -> None:
    order: list[str] = []

    class Watcher(Keeper):
        async def artifact(self, artifact: object, data: bytes) -> None:
            order.append("picture")

        async def step_finished(self, ended: Ended) -> None:
            order.append("finished")

    asyncio.run(run(shop(clock), clock, MISSING, keeper=Watcher()))
    assert order == ["picture", "finished"]
