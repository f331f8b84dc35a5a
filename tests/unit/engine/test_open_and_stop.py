"""OPEN and STOP_APP: an app is told once, and then seen in front, or gone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from droidfleet_agent.driver.memory import Call, Fault, MemoryPhone, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.cancels import cancelled_after
from support.runs import run_step
from support.screens import PACKAGE, dump, node, window

OTHER = "com.example.mail"
LAUNCHER = "com.example.launcher"
OPEN: dict[str, object] = {"action": "OPEN", "packageName": PACKAGE}
STOP: dict[str, object] = {"action": "STOP_APP", "packageName": PACKAGE}


def page(label: str, package: str, activity: str = ".MainActivity") -> Page:
    shown = node(label, (40, 100, 400, 200), package=package)
    return Page(dump(window(shown, package=package)), activity=activity)


def phone_with(
    clock: VirtualClock,
    *,
    start: str = "launcher",
    apps: Mapping[str, str] | None = None,
    latency: Mapping[Call, float] | None = None,
) -> MemoryPhone:
    """A phone on whose home page one app, the shop, is installed."""
    bar = window(node("12:00", (0, 0, 100, 50)), bounds=(0, 0, 1080, 80), package="com.android.systemui")
    pages = {
        "launcher": page("Apps", LAUNCHER),
        "shop": page("Shop", PACKAGE),
        "cart": page("Cart", PACKAGE, ".CartActivity"),
        "mail": page("Inbox", OTHER),
        "changing": Page(dump(bar)),
    }
    installed = apps or {PACKAGE: "shop"}
    return MemoryPhone(pages, start=start, clock=clock, apps=installed, home="launcher", latency=latency)


def did(phone: MemoryPhone) -> list[Call]:
    return [done.call for done in phone.done]


@pytest.mark.parametrize("start", ["launcher", "mail", "changing"])
async def test_an_app_is_started_once_and_seen_in_front(clock: VirtualClock, start: str) -> None:
    phone = phone_with(clock, start=start)
    result = await run_step(phone, clock, OPEN)
    assert (result.successful, result.detail, result.looks, result.dispatched) == (True, Detail.IN_FRONT, 2, 1)
    assert [(done.call, done.target) for done in phone.done] == [("start_app", PACKAGE)]


async def test_an_app_in_front_is_left_alone(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="shop")
    result = await run_step(phone, clock, OPEN)
    assert (result.detail, result.looks, result.dispatched) == (Detail.ALREADY_FOREGROUND, 1, 0)
    assert phone.done == []


async def test_an_app_in_front_with_another_activity_is_started(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="cart")
    result = await run_step(phone, clock, {**OPEN, "activityName": ".MainActivity"})
    assert (result.detail, did(phone)) == (Detail.IN_FRONT, ["start_app"])


async def test_an_app_in_front_with_the_wanted_activity_is_left_alone(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="cart")
    result = await run_step(phone, clock, {**OPEN, "activityName": ".CartActivity"})
    assert (result.detail, did(phone)) == (Detail.ALREADY_FOREGROUND, [])


async def test_an_app_that_is_to_start_afresh_is_stopped_first_even_in_front(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="cart")
    result = await run_step(phone, clock, {**OPEN, "stopFirst": True})
    assert (result.detail, result.looks, result.dispatched) == (Detail.IN_FRONT, 1, 2)
    assert did(phone) == ["stop_app", "start_app"]
    assert phone.page == "shop"


async def test_an_app_that_is_slow_to_come_is_waited_for(clock: VirtualClock) -> None:
    class Slow(MemoryPhone):
        async def dump(self, **options: object) -> str:
            if clock.monotonic() > 3.0:
                self.show("shop")
            return await super().dump(**options)  # type: ignore[arg-type]  # passed through

    pages = {"splash": page("", LAUNCHER), "shop": page("Shop", PACKAGE)}
    phone = Slow(pages, start="splash", clock=clock, apps={PACKAGE: "splash"})
    result = await run_step(phone, clock, OPEN)
    assert (result.detail, did(phone)) == (Detail.IN_FRONT, ["start_app"])
    assert clock.monotonic() == pytest.approx(3.1, abs=0.2)


async def test_an_app_that_does_not_come_is_a_mismatch_at_the_deadline(clock: VirtualClock) -> None:
    phone = phone_with(clock, apps={PACKAGE: "mail"})
    result = await run_step(phone, clock, {**OPEN, "timeoutMs": 4000})
    assert result.code is StepCode.PACKAGE_MISMATCH
    assert f"must be {PACKAGE} and is {OTHER}" in result.message
    assert did(phone) == ["start_app"]
    assert clock.monotonic() == pytest.approx(4.0)


async def test_an_app_that_comes_with_another_activity_is_a_mismatch(clock: VirtualClock) -> None:
    phone = phone_with(clock, apps={PACKAGE: "cart"})
    result = await run_step(phone, clock, {**OPEN, "activityName": ".MainActivity", "timeoutMs": 4000})
    assert result.code is StepCode.ACTIVITY_MISMATCH
    assert ".CartActivity" in result.message
    assert did(phone) == ["start_app"]


async def test_an_app_that_is_not_installed_fails_at_once(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    result = await run_step(phone, clock, {**OPEN, "packageName": "com.example.missing"})
    assert result.code is StepCode.ACTION_FAILED
    assert "com.example.missing is not installed." in result.message
    assert phone.calls.count("start_app") == 1
    assert clock.monotonic() == 0


async def test_without_an_answer_to_the_stop_the_app_is_not_started(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="shop")
    phone.fail("stop_app", Fault.DIES_AFTER)
    result = await run_step(phone, clock, {**OPEN, "stopFirst": True})
    assert result.code is StepCode.OUTCOME_UNKNOWN
    assert did(phone) == ["stop_app"]


async def test_a_start_that_is_swallowed_is_not_repeated(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    phone.fail("start_app", Fault.SILENT)
    result = await run_step(phone, clock, {**OPEN, "timeoutMs": 3000})
    assert result.code is StepCode.PACKAGE_MISMATCH
    assert phone.calls.count("start_app") == 1


async def test_a_start_that_did_not_happen_is_tried_again_without_stopping_again(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="shop")
    phone.fail("start_app", Fault.REFUSED, Fault.DIES_BEFORE)
    result = await run_step(phone, clock, {**OPEN, "stopFirst": True})
    assert (result.detail, did(phone)) == (Detail.IN_FRONT, ["stop_app", "start_app"])


@pytest.mark.parametrize("step", [OPEN, STOP])
async def test_between_two_tries_a_look_repairs_the_way_to_the_phone(
    clock: VirtualClock, step: dict[str, object]
) -> None:
    phone = phone_with(clock)
    plain = await run_step(phone_with(clock), clock, step)
    phone.fail("start_app", Fault.DIES_BEFORE)
    phone.fail("stop_app", Fault.DIES_BEFORE)
    result = await run_step(phone, clock, step)
    assert (result.successful, result.looks) == (True, plain.looks + 1)


async def test_a_phone_that_gives_no_look_is_not_told_to_start_anything(clock: VirtualClock) -> None:
    phone = phone_with(clock)
    phone.fail("dump", *[Fault.DIES_BEFORE] * 100)
    result = await run_step(phone, clock, {**OPEN, "timeoutMs": 2000})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert "start_app" not in phone.calls


async def test_a_cancel_while_the_app_comes_ends_the_wait_at_once(clock: VirtualClock) -> None:
    phone = phone_with(clock, apps={PACKAGE: "mail"})
    task = await cancelled_after(2.0, phone, clock, OPEN)
    assert (task.code, task.steps[0].code, task.steps[0].dispatched) == (StepCode.CANCELLED, StepCode.CANCELLED, 1)
    assert clock.monotonic() < 2.3


@pytest.mark.parametrize("start", ["shop", "cart"])
async def test_an_app_in_front_is_stopped_once_and_seen_gone(clock: VirtualClock, start: str) -> None:
    phone = phone_with(clock, start=start)
    result = await run_step(phone, clock, STOP)
    assert (result.successful, result.detail, result.looks, result.dispatched) == (True, Detail.STOPPED, 1, 1)
    assert phone.page == "launcher"


@pytest.mark.parametrize("start", ["launcher", "mail"])
async def test_an_app_that_is_not_in_front_is_stopped_all_the_same(clock: VirtualClock, start: str) -> None:
    phone = phone_with(clock, start=start)
    result = await run_step(phone, clock, STOP)
    assert (result.detail, did(phone), phone.page) == (Detail.STOPPED, ["stop_app"], start)


async def test_an_app_that_stays_in_front_is_a_failure_at_the_deadline(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="shop")
    phone.fail("stop_app", Fault.SILENT)
    result = await run_step(phone, clock, {**STOP, "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert f"{PACKAGE} was stopped and is still in front" in result.message
    assert phone.calls.count("stop_app") == 1
    assert clock.monotonic() == pytest.approx(2.0)


async def test_a_cancel_while_the_app_goes_ends_the_wait_at_once(clock: VirtualClock) -> None:
    phone = phone_with(clock, start="shop")
    phone.fail("stop_app", Fault.SILENT)
    task = await cancelled_after(1.0, phone, clock, STOP)
    assert (task.code, task.steps[0].dispatched) == (StepCode.CANCELLED, 1)
    assert clock.monotonic() < 1.3
