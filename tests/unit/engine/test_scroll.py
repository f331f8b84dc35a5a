"""SCROLL: one swipe, one look, and what two looks tell."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.scrolling import END_LOOKS, HOLD_MS, SCROLL_MS
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.runs import Recorder, run_step, run_steps
from support.screens import PACKAGE, WHOLE, WIDTH, dump, node, window
from support.workbench import LIST, main, rows, workbench

SCROLL: dict[str, object] = {"action": "SCROLL", "selector": {"resourceId": "rows"}}


def swipes(phone: MemoryPhone) -> list[str]:
    return [done.text for done in phone.done if done.call == "swipe"]


async def test_what_is_seen_already_costs_no_scroll(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**SCROLL, "until": {"text": "Row 2"}})
    assert (result.detail, result.looks, result.dispatched) == (Detail.SEEN, 1, 0)


async def test_each_scroll_costs_one_look_until_it_is_seen(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**SCROLL, "until": {"text": "Row 6"}})
    assert (result.detail, result.looks, result.dispatched) == (Detail.SEEN, 3, 2)
    assert swipes(phone) == ["UP", "UP"]


async def test_two_matches_are_seen_as_well_as_one(clock: VirtualClock) -> None:
    result = await run_step(workbench(clock), clock, {**SCROLL, "until": {"textStartsWith": "Row"}})
    assert result.detail is Detail.SEEN


async def test_content_from_above_is_wanted_by_a_finger_that_moves_down(clock: VirtualClock) -> None:
    phone = workbench(clock, start="last")
    result = await run_step(phone, clock, {**SCROLL, "direction": "UP", "until": {"text": "Row 1"}})
    assert result.detail is Detail.SEEN
    assert swipes(phone) == ["DOWN", "DOWN"]


async def test_the_end_is_a_success_when_nothing_was_looked_for(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, SCROLL)
    assert (result.successful, result.detail, phone.page) == (True, Detail.END_REACHED, "last")
    assert len(swipes(phone)) == 3
    assert result.looks == 1 + 2 + END_LOOKS


async def test_the_end_is_a_failure_when_something_was_looked_for(clock: VirtualClock) -> None:
    result = await run_step(workbench(clock), clock, {**SCROLL, "until": {"text": "Row 99"}})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "the end was reached after 3 scrolls" in result.message


@pytest.mark.parametrize("until", [None, {"text": "Row 6"}])
async def test_the_bound_is_a_success_only_when_nothing_was_looked_for(
    clock: VirtualClock, until: dict[str, str] | None
) -> None:
    phone = workbench(clock)
    step = {**SCROLL, "maxScrolls": 1, **({"until": until} if until else {})}
    result = await run_step(phone, clock, step)
    assert len(swipes(phone)) == 1
    if until is None:
        assert (result.successful, result.detail) == (True, Detail.BOUND_REACHED)
    else:
        assert result.code is StepCode.TARGET_NOT_FOUND
        assert "raise `maxScrolls`" in result.message


async def test_a_list_that_moves_a_frame_late_has_not_ended(clock: VirtualClock) -> None:
    class Late(MemoryPhone):
        async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
            shown = await super().dump(deadline=deadline, active_only=active_only)
            if self.page == "between":
                self.show("further")
            return shown

    pages = {
        "main": Page(dump(main()), swipes={"UP": "between"}),
        "between": Page(dump(main())),
        "further": Page(dump(main(("Row 3", "Row 4")))),
    }
    phone = Late(pages, start="main", clock=clock)
    result = await run_step(phone, clock, {**SCROLL, "until": {"text": "Row 4"}, "maxScrolls": 1})
    assert result.detail is Detail.SEEN


async def test_what_moves_outside_the_container_does_not_hide_its_end(clock: VirtualClock) -> None:
    def page(time: str) -> str:
        return dump(window(node(time, (0, 0, 200, 100)), rows(("Row 1",))))

    pages = {
        "12:00": Page(page("12:00"), swipes={"UP": "12:01"}),
        "12:01": Page(page("12:01"), swipes={"UP": "12:00"}),
    }
    phone = MemoryPhone(pages, start="12:00", clock=clock)
    assert (await run_step(phone, clock, SCROLL)).detail is Detail.END_REACHED


async def test_the_container_stays_the_one_that_was_scrolled_when_its_selector_no_longer_finds_it(
    clock: VirtualClock,
) -> None:
    phone = workbench(clock)
    step = {"action": "SCROLL", "selector": {"scrollable": True, "has": {"text": "Row 1"}}, "until": {"text": "Row 7"}}
    assert (await run_step(phone, clock, step)).detail is Detail.SEEN


async def test_without_a_selector_the_largest_list_is_scrolled(clock: VirtualClock) -> None:
    tabs = rows(("Tab",), place=(0, 100, WIDTH, 300), resource_id="tabs")
    phone = MemoryPhone({"p": Page(dump(window(tabs, rows(("Row 1",)))))}, start="p", clock=clock)
    await run_step(phone, clock, {"action": "SCROLL"})
    [done] = phone.done
    assert done.point is not None
    assert LIST[1] < done.point[1] < LIST[3]


async def test_a_list_under_the_keyboard_is_scrolled_above_it(clock: VirtualClock) -> None:
    phone = MemoryPhone({"p": Page(dump(window(rows(("Row 1",), place=WHOLE))))}, start="p", clock=clock)
    phone.keyboard_open = True
    assert (await run_step(phone, clock, SCROLL)).successful
    [done] = phone.done
    assert done.point is not None
    assert done.point[1] < 1440


async def test_a_list_that_is_wholly_under_the_keyboard_is_not_scrolled(clock: VirtualClock) -> None:
    phone = MemoryPhone({"p": Page(dump(window(rows((), place=(0, 1500, WIDTH, 2300)))))}, start="p", clock=clock)
    phone.keyboard_open = True
    result = await run_step(phone, clock, SCROLL)
    assert result.code is StepCode.ACTION_FAILED
    assert "Close what lies over it" in result.message
    assert phone.done == []


async def test_a_container_that_never_comes_is_not_found_at_the_deadline(clock: VirtualClock) -> None:
    phone = workbench(clock, start="empty")
    result = await run_step(phone, clock, {**SCROLL, "timeoutMs": 2000})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert clock.monotonic() == pytest.approx(2.0, abs=0.01)


async def test_an_endless_list_ends_at_the_deadline(clock: VirtualClock) -> None:
    pages = {
        "even": Page(dump(main(("Row 1",))), swipes={"UP": "odd"}),
        "odd": Page(dump(main(("Row 2",))), swipes={"UP": "even"}),
    }
    phone = MemoryPhone(pages, start="even", clock=clock, latency={"dump": 0.1, "swipe": (SCROLL_MS + HOLD_MS) / 1000})
    step = {**SCROLL, "until": {"text": "Never"}, "maxScrolls": 50, "timeoutMs": 5000}
    result = await run_step(phone, clock, step)
    assert not result.successful
    assert "Raise `timeoutMs`" in result.message
    assert clock.monotonic() <= 5.0


async def test_a_scroll_of_which_nobody_knows_is_the_last(clock: VirtualClock) -> None:
    phone = workbench(clock)
    phone.fail("swipe", Fault.NONE, Fault.DIES_AFTER)
    result = await run_step(phone, clock, {**SCROLL, "optional": True})
    assert result.code is StepCode.OUTCOME_UNKNOWN
    assert len(swipes(phone)) == 2


async def test_a_cancel_between_two_scrolls_sends_no_more(clock: VirtualClock) -> None:
    phone = workbench(clock)
    control = RunControl()

    class Cancels(Recorder):
        async def dispatching(self, step_id: str, path: str, ordinal: int) -> None:
            if ordinal == 2:
                control.cancel("enough")

    result = await run_steps(phone, clock, SCROLL, control=control, observer=Cancels())
    assert result.code is StepCode.CANCELLED
    assert len(swipes(phone)) == 1


async def test_another_app_in_front_is_not_scrolled(clock: VirtualClock) -> None:
    phone = workbench(clock, start="other")
    result = await run_step(phone, clock, {"action": "SCROLL", "packageName": "com.example.shop", "timeoutMs": 500})
    assert result.code is StepCode.PACKAGE_MISMATCH
    assert phone.done == []


@pytest.mark.parametrize("package", [PACKAGE, "com.example.dialler"])
async def test_what_comes_in_the_place_of_the_list_is_not_scrolled(clock: VirtualClock, package: str) -> None:
    other = Page(dump(window(node("Delete all", (0, 0, 900, 100), package=package), package=package)))
    many = node("", WHOLE, node("Row 1", (0, 0, 900, 100)), class_name="android.widget.ListView", scrollable=True)
    pages = {"rows": Page(dump(window(many)), swipes={"UP": "other"}), "other": other}
    phone = MemoryPhone(pages, start="rows", clock=clock)
    result = await run_step(phone, clock, {"action": "SCROLL", "timeoutMs": 2000})
    assert (result.code, len(swipes(phone))) == (StepCode.TARGET_NOT_FOUND, 1)
    assert "What was scrolled is gone" in result.message
