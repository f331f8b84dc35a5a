"""What follows an action: `after`, an outcome that nobody knows, and the one repetition of `redo` (F13)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_shared.clock import Clock, Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import StepResult
from support.runs import run_step, run_steps
from support.screens import dump, node, window
from support.shop import button, pages, shop

TEA = {"action": "CLICK", "selector": {"text": "Tea"}}
DETAIL = {"condition": {"visible": {"text": "Green tea"}}, "timeoutMs": 2000}
NEVER = {"condition": {"visible": {"text": "Never"}}, "timeoutMs": 2000}
OUTPUT = {"condition": {"output": "nothing", "equals": "x"}}

Json = dict[str, object]


def taps(phone: MemoryPhone) -> int:
    """How many taps had an effect."""
    return sum(done.call == "tap" for done in phone.done)


class LateShop:
    """A shop whose screen is changed from outside at given moments."""

    def __init__(self, clock: Clock, **latency: float) -> None:
        self.phone = shop(clock, latency={"tap": latency.get("tap", 0.0), "dump": latency.get("dump", 0.05)})
        self.clock = clock

    async def run(self, step: Json, *changes: tuple[float, str]) -> StepResult:
        """Runs the step while the screen changes to ``page`` at each ``(second, page)``."""

        async def change() -> None:
            for at, page in changes:
                await self.clock.sleep(at - self.clock.monotonic())
                self.phone.show(page)

        async with asyncio.TaskGroup() as group:
            changing = group.create_task(change())
            result = await run_step(self.phone, self.clock, step)
            changing.cancel()
        return result


# What happened to the action x what is asked of it -> how the step ended.


@dataclass(frozen=True)
class Case:
    """``faults`` of the taps; ``told``: how often the phone was told to tap, ``effects``: how often it did."""

    faults: tuple[Fault, ...]
    step: Json
    code: StepCode
    detail: Detail = Detail.NONE
    told: int = 1
    effects: int = 1


CASES: dict[str, Case] = {
    "nothing is asked": Case((), {}, StepCode.OK, Detail.DISPATCHED_UNVERIFIED),
    "after holds": Case((), {"after": DETAIL}, StepCode.OK, Detail.VERIFIED),
    "after holds, redo": Case((), {"after": DETAIL, "redo": True}, StepCode.OK, Detail.VERIFIED),
    "after never holds": Case((), {"after": NEVER}, StepCode.AFTER_NOT_MET),
    "after never holds, redo, but the screen changed": Case((), {"after": NEVER, "redo": True}, StepCode.AFTER_NOT_MET),
    "swallowed, no after": Case((Fault.SILENT,), {"redo": True}, StepCode.OK, Detail.DISPATCHED_UNVERIFIED, effects=0),
    "swallowed, after": Case((Fault.SILENT,), {"after": DETAIL}, StepCode.AFTER_NOT_MET, effects=0),
    "swallowed, after, redo": Case(
        (Fault.SILENT,), {"after": DETAIL, "redo": True}, StepCode.OK, Detail.VERIFIED, told=2
    ),
    "swallowed twice, after, redo": Case(
        (Fault.SILENT, Fault.SILENT), {"after": DETAIL, "redo": True}, StepCode.AFTER_NOT_MET, told=2, effects=0
    ),
    "denied, after, redo": Case((Fault.FALSE,), {"after": DETAIL, "redo": True}, StepCode.ACTION_FAILED, effects=0),
    "swallowed, then denied": Case(
        (Fault.SILENT, Fault.FALSE), {"after": DETAIL, "redo": True}, StepCode.ACTION_FAILED, told=2, effects=0
    ),
    "unknown and done": Case((Fault.DIES_AFTER,), {}, StepCode.OUTCOME_UNKNOWN),
    "unknown and done, after": Case((Fault.DIES_AFTER,), {"after": DETAIL}, StepCode.OK, Detail.SETTLED_BY_AFTER),
    "unknown and done, after, redo": Case(
        (Fault.DIES_AFTER,), {"after": DETAIL, "redo": True}, StepCode.OK, Detail.SETTLED_BY_AFTER
    ),
    "unknown and done, after never holds": Case((Fault.DIES_AFTER,), {"after": NEVER}, StepCode.OUTCOME_UNKNOWN),
    "unknown and done, after never holds, redo": Case(
        (Fault.DIES_AFTER,), {"after": NEVER, "redo": True}, StepCode.OUTCOME_UNKNOWN
    ),
    "unknown and done, redo": Case((Fault.DIES_AFTER,), {"redo": True}, StepCode.OUTCOME_UNKNOWN),
    "unknown and not done, after": Case((Fault.HANG,), {"after": DETAIL}, StepCode.OUTCOME_UNKNOWN, effects=0),
    "unknown and not done, redo": Case(
        (Fault.HANG,), {"redo": True}, StepCode.OK, Detail.DISPATCHED_UNVERIFIED, told=2
    ),
    "unknown and not done, after, redo": Case(
        (Fault.HANG,), {"after": DETAIL, "redo": True}, StepCode.OK, Detail.VERIFIED, told=2
    ),
    "unknown twice, redo": Case((Fault.HANG, Fault.HANG), {"redo": True}, StepCode.OUTCOME_UNKNOWN, told=2, effects=0),
    "unknown twice, after, redo": Case(
        (Fault.HANG, Fault.HANG), {"after": DETAIL, "redo": True}, StepCode.OUTCOME_UNKNOWN, told=2, effects=0
    ),
    "unknown twice, the second was done": Case(
        (Fault.HANG, Fault.DIES_AFTER), {"after": DETAIL, "redo": True}, StepCode.OK, Detail.SETTLED_BY_AFTER, told=2
    ),
    "unknown, then denied": Case(
        (Fault.HANG, Fault.FALSE), {"after": DETAIL, "redo": True}, StepCode.OUTCOME_UNKNOWN, told=2, effects=0
    ),
    "unknown, then done to no avail": Case(
        (Fault.HANG, Fault.SILENT), {"after": DETAIL, "redo": True}, StepCode.AFTER_NOT_MET, told=2, effects=0
    ),
    "after of outputs alone, redo, done": Case((), {"after": OUTPUT, "redo": True}, StepCode.AFTER_NOT_MET),
    "after of outputs alone, redo, swallowed": Case(
        (Fault.SILENT,), {"after": OUTPUT, "redo": True}, StepCode.AFTER_NOT_MET, told=2
    ),
    "nothing was done, so nothing is asked": Case(
        (),
        {"after": NEVER, "redo": True, "unlessVisible": {"text": "Shop"}},
        StepCode.OK,
        Detail.ALREADY_VISIBLE,
        told=0,
        effects=0,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_outcome_is_what_the_table_says(clock: VirtualClock, case: Case) -> None:
    phone = shop(clock, latency={"dump": 0.05})
    phone.fail("tap", *case.faults)
    result = await run_step(phone, clock, {**TEA, "timeoutMs": 2000, **case.step})
    assert (result.code, result.detail) == (case.code, case.detail)
    assert (phone.calls.count("tap"), taps(phone)) == (case.told, case.effects)
    assert result.dispatched == case.told


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_an_outcome_comes_within_its_bound(clock: VirtualClock, case: Case) -> None:
    phone = shop(clock, latency={"dump": 0.05})
    phone.fail("tap", *case.faults)
    await run_step(phone, clock, {**TEA, "timeoutMs": 2000, **case.step})
    once = 2.0 + (2.0 if case.step.get("after") in (DETAIL, NEVER) else 0.0)
    assert clock.monotonic() <= (2 * once if "redo" in case.step else once) + 0.001


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_optional_passes_over_what_is_known_alone(clock: VirtualClock, case: Case) -> None:
    phone = shop(clock)
    phone.fail("tap", *case.faults)
    result = await run_step(phone, clock, {**TEA, "timeoutMs": 2000, **case.step, "optional": True})
    assert result.successful == (case.code is not StepCode.OUTCOME_UNKNOWN)


# What the looks after the action see.


@pytest.mark.parametrize(
    ("changes", "code", "told"),
    [
        ([(1.5, "detail")], StepCode.OK, 1),  # a slow screen, in time
        ([(1.0, "empty")], StepCode.AFTER_NOT_MET, 1),  # another one
        ([(0.5, "empty"), (1.0, "home")], StepCode.AFTER_NOT_MET, 1),  # and back again
        ([(0.5, "empty"), (1.5, "detail")], StepCode.OK, 1),  # by way of another one
        ([(2.5, "detail")], StepCode.OK, 2),  # only the second tap's `after` sees it
    ],
    ids=["late", "elsewhere", "there and back", "loading", "very late"],
)
async def test_redo_repeats_only_on_a_screen_that_never_changed(
    clock: VirtualClock, changes: list[tuple[float, str]], code: StepCode, told: int
) -> None:
    late = LateShop(clock)
    late.phone.fail("tap", Fault.SILENT, Fault.SILENT)
    result = await late.run({**TEA, "after": DETAIL, "redo": True}, *changes)
    assert (result.code, late.phone.calls.count("tap")) == (code, told)


class TurningShop(MemoryPhone):
    """Shows another page from its n-th dump on."""

    def __init__(self, clock: Clock, *, page: str = "home", at_dump: int = 0) -> None:
        super().__init__({**pages(), "again": AGAIN}, start="home", clock=clock, latency={"dump": 0.05})
        self._page, self._at_dump = page, at_dump

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        if self.calls.count("dump") + 1 == self._at_dump:
            self.show(self._page)
        return await super().dump(deadline=deadline, active_only=active_only)


AGAIN = Page(dump(window(node("Loading", (40, 100, 400, 180)), button("Tea", 500))), taps={"Tea": "cart"})
"""What a first tap may lead to; it has the same button at the same place."""


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.HANG])
@pytest.mark.parametrize("step", [TEA, {"action": "BACK"}], ids=["a tap", "a key"])
async def test_an_effect_that_shows_right_before_the_repetition_prevents_it(step: Json, fault: Fault) -> None:
    step = {**step, "after": DETAIL, "redo": True, "timeoutMs": 2000}
    call: Call = "tap" if step["action"] == "CLICK" else "press"

    async def told(phone: MemoryPhone, clock: VirtualClock) -> tuple[int, StepCode]:
        phone.fail(call, fault, Fault.SILENT)
        code = (await run_step(phone, clock, step)).code
        return phone.calls.count(call), code

    clock = VirtualClock()
    still = TurningShop(clock)
    assert (await told(still, clock))[0] == 2
    second = len(still.calls) - still.calls[::-1].index(call) - 1
    last_look = still.calls[:second].count("dump")

    clock = VirtualClock()
    expected = StepCode.AFTER_NOT_MET if fault is Fault.SILENT else StepCode.OUTCOME_UNKNOWN
    assert await told(TurningShop(clock, page="again", at_dump=last_look), clock) == (1, expected)


async def test_a_keyboard_that_was_hidden_for_the_tap_is_not_its_effect(clock: VirtualClock) -> None:
    phone = shop(clock, start="detail")
    phone.keyboard_open = True
    phone.fail("tap", Fault.SILENT)
    after = {"condition": {"visible": {"text": "In your cart"}}}
    step = {"action": "CLICK", "selector": {"text": "Add to cart"}, "after": after, "redo": True}
    result = await run_step(phone, clock, step)
    assert (result.code, phone.calls.count("tap"), taps(phone)) == (StepCode.OK, 2, 1)


async def test_a_phone_that_is_not_seen_after_the_action_is_not_acted_on_again(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.NONE, *[Fault.HANG] * 20)
    phone.fail("tap", Fault.HANG)
    result = await run_step(phone, clock, {**TEA, "after": DETAIL, "redo": True})
    assert (result.code, phone.calls.count("tap")) == (StepCode.OUTCOME_UNKNOWN, 1)


async def test_only_the_looks_of_a_step_with_redo_are_compared(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.SILENT)
    await run_step(phone, clock, {**TEA, "after": DETAIL, "redo": False})
    assert phone.calls.count("tap") == 1


async def test_a_repetition_finds_its_target_at_the_first_look(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.SILENT)
    after = {"condition": {"visible": {"text": "Green tea"}}, "timeoutMs": 100}
    result = await run_step(phone, clock, {**TEA, "after": after, "redo": True})
    looks_of_after = phone.calls[phone.calls.index("tap") + 1 :]
    until_second = looks_of_after[: looks_of_after.index("tap")].count("dump")
    assert result.looks == 1 + until_second + 1


async def test_after_is_a_check_of_a_step_that_only_reads(clock: VirtualClock) -> None:
    wait = {"action": "WAIT", "selector": {"text": "Shop"}}
    assert (await run_step(shop(clock), clock, {**wait, "after": DETAIL})).code is StepCode.AFTER_NOT_MET
    shown = {"condition": {"visible": {"text": "Tea"}}}
    assert (await run_step(shop(clock), clock, {**wait, "after": shown})).detail is Detail.SEEN


async def test_the_time_of_after_begins_at_the_end_of_the_action(clock: VirtualClock) -> None:
    late = LateShop(clock, tap=1.5)
    late.phone.fail("tap", Fault.SILENT)
    result = await late.run({**TEA, "after": DETAIL, "timeoutMs": 2000}, (3.0, "detail"))
    assert result.code is StepCode.OK


async def test_after_does_not_ask_for_the_app_of_the_step(clock: VirtualClock) -> None:
    other = Page(dump(window(node("Pay", (40, 100, 400, 180), package="com.pay"), package="com.pay")))
    phone = shop(clock, more={"detail": other})
    step = {**TEA, "packageName": "com.example.shop", "after": {"condition": {"foreground": "com.pay"}}}
    assert (await run_step(phone, clock, step)).detail is Detail.VERIFIED


# Cancel, and the task's own time.


class CancelsAt(MemoryPhone):
    """Cancels the run when it is asked for the n-th dump."""

    def __init__(self, clock: Clock, control: RunControl, *, at_dump: int) -> None:
        super().__init__(pages(), start="home", clock=clock)
        self._control, self._at_dump = control, at_dump

    async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
        if self.calls.count("dump") + 1 == self._at_dump:
            self._control.cancel("enough")
        return await super().dump(deadline=deadline, active_only=active_only)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.SILENT, StepCode.CANCELLED),
        (Fault.HANG, StepCode.OUTCOME_UNKNOWN),  # a cancel does not make known what nobody knows
    ],
)
@pytest.mark.parametrize("after", [NEVER, OUTPUT], ids=["while after is looked for", "while late effects are"])
async def test_a_cancel_after_the_action(clock: VirtualClock, fault: Fault, code: StepCode, after: Json) -> None:
    control = RunControl()
    phone = CancelsAt(clock, control, at_dump=3)
    phone.fail("tap", fault)
    task = await run_steps(phone, clock, {**TEA, "after": after, "redo": True}, TEA, control=control)
    assert (task.code, phone.calls.count("tap")) == (code, 1)


async def test_the_tasks_bound_ends_the_wait_for_after(clock: VirtualClock) -> None:
    task = await run_steps(shop(clock), clock, {**TEA, "after": NEVER}, max_duration_ms=1500)
    assert (task.code, task.steps[0].code) == (StepCode.TASK_TIMEOUT, StepCode.AFTER_NOT_MET)
    assert clock.monotonic() == pytest.approx(1.5)


async def test_the_tasks_bound_leaves_no_time_to_repeat(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("tap", Fault.SILENT)
    task = await run_steps(phone, clock, {**TEA, "after": NEVER, "redo": True}, max_duration_ms=1500)
    assert (task.code, task.steps[0].code) == (StepCode.TASK_TIMEOUT, StepCode.AFTER_NOT_MET)
    assert phone.calls.count("tap") == 1
