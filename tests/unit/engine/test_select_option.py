"""SELECT_OPTION: the list opens, the option is tapped once, and what opened the list shows it."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_agent.engine.steps.select_option import OPEN_LOOKS
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.screen.node import Node
from support.runs import run_step
from support.screens import dump, node, window
from support.shop import button
from support.workbench import COUNTRY, drop_down, main, workbench

ROW = (0, 300, 1080, 460)


def _countries() -> Page:
    return Page(dump(drop_down("Denmark", "Norway")), taps={"Norway": "norway"})


def did(phone: MemoryPhone) -> list[str]:
    return [done.target or done.text for done in phone.done]


async def test_an_option_in_sight_takes_two_taps(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}})
    assert (result.detail, result.dispatched) == (Detail.VERIFIED, 2)
    assert did(phone) == ["Choose", "Norway"]
    assert result.target is not None
    assert result.target.text == "Norway"


async def test_an_option_further_down_is_scrolled_to(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Sweden"}})
    assert result.detail is Detail.VERIFIED
    assert did(phone) == ["Choose", "UP", "Sweden"]


async def test_an_option_above_is_scrolled_back_to(clock: VirtualClock) -> None:
    opens_at_the_end = Page(dump(main()), taps={"Choose": "countries further"})
    phone = workbench(clock, more={"main": opens_at_the_end})
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Denmark"}})
    assert result.detail is Detail.VERIFIED
    assert did(phone) == ["Choose", "UP", "DOWN", "Denmark"]


async def test_an_opener_that_names_the_option_among_other_words_shows_it(clock: VirtualClock) -> None:
    result = await run_step(workbench(clock), clock, {**COUNTRY, "option": {"text": "Denmark"}})
    assert result.detail is Detail.VERIFIED


async def test_a_part_of_a_word_is_not_the_option(clock: VirtualClock) -> None:
    more = {
        "countries": Page(dump(drop_down("Niger")), taps={"Niger": "wrong"}),
        "wrong": Page(dump(main(country="Nigeria"))),
    }
    phone = workbench(clock, more=more)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Niger"}, "timeoutMs": 3000})
    assert result.code is StepCode.ACTION_FAILED
    assert '"Nigeria"' in result.message
    assert did(phone) == ["Choose", "Niger"]


async def test_an_option_that_is_nowhere_is_not_found_and_nothing_is_chosen(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Atlantis"}})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert did(phone)[0] == "Choose"
    assert set(did(phone)[1:]) == {"UP", "DOWN"}


async def test_the_scrolls_of_both_ways_share_one_bound(clock: VirtualClock) -> None:
    phone = workbench(clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Atlantis"}, "maxScrolls": 3})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert [done.call for done in phone.done].count("swipe") == 3


async def test_an_opener_that_opens_nothing_is_tapped_once_and_nothing_is_scrolled(clock: VirtualClock) -> None:
    phone = workbench(clock, more={"main": Page(dump(main()), swipes={"UP": "further"})})
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}, "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert "opened nothing" in result.message
    assert did(phone) == ["Choose"]


async def test_what_is_chosen_already_is_not_taken_for_the_open_list(clock: VirtualClock) -> None:
    more = {"norway": Page(dump(main(country="Norway")), taps={"Norway": "countries"}), "countries": _countries()}
    phone = workbench(clock, start="norway", more=more)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}})
    assert result.detail is Detail.VERIFIED
    assert [(done.target, done.point) for done in phone.done] == [("Norway", (240, 350)), ("Norway", (370, 750))]


async def test_an_opener_that_shows_the_option_and_opens_nothing_is_tapped_once(clock: VirtualClock) -> None:
    phone = workbench(clock, start="norway")
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}, "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert did(phone) == ["Norway"]


async def test_a_list_that_does_not_close_is_a_failure_after_one_tap_on_the_option(clock: VirtualClock) -> None:
    phone = workbench(clock, more={"countries": Page(dump(drop_down("Norway")))})
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}, "timeoutMs": 3000})
    assert result.code is StepCode.ACTION_FAILED
    assert "has not closed" in result.message
    assert did(phone) == ["Choose", "Norway"]


async def test_a_row_of_the_open_list_is_not_taken_for_the_opener(clock: VirtualClock) -> None:
    """Both are plain texts without an id, at the same place among their siblings."""
    opener = node("Choose", (40, 300, 440, 400), clickable=True)
    row = node("Norway", (40, 600, 440, 700), clickable=True)
    pages = {
        "main": Page(dump(window(opener)), taps={"Choose": "list"}),
        "list": Page(dump(window(row, bounds=(40, 600, 700, 1200)))),
    }
    phone = MemoryPhone(pages, start="main", clock=clock)
    step = {"action": "SELECT_OPTION", "selector": {"text": "Choose"}, "option": {"text": "Norway"}, "timeoutMs": 2000}
    result = await run_step(phone, clock, step)
    assert result.code is StepCode.ACTION_FAILED
    assert "has not closed" in result.message


def _preference(summary: str) -> Node:
    row = node("", ROW, node("Country", (40, 310, 400, 370)), node(summary, (40, 380, 400, 440)), clickable=True)
    return window(row)


async def test_the_row_around_a_label_shows_the_choice(clock: VirtualClock) -> None:
    more = {
        "main": Page(dump(_preference("None")), taps={"Country": "countries"}),
        "countries": _countries(),
        "norway": Page(dump(_preference("Norway"))),
    }
    step = {"action": "SELECT_OPTION", "selector": {"text": "Country"}, "option": {"text": "Norway"}}
    assert (await run_step(workbench(clock, more=more), clock, step)).detail is Detail.VERIFIED


async def test_an_icon_without_a_text_need_only_be_back(clock: VirtualClock) -> None:
    icon = node("", (900, 100, 1000, 200), description="Sort", resource_id="sort", clickable=True)
    pages = {
        "main": Page(dump(window(icon)), taps={"Sort": "list"}),
        "list": Page(dump(drop_down("Price")), taps={"Price": "sorted"}),
        "sorted": Page(dump(window(icon))),
    }
    step = {"action": "SELECT_OPTION", "selector": {"description": "Sort"}, "option": {"text": "Price"}}
    assert (await run_step(MemoryPhone(pages, start="main", clock=clock), clock, step)).detail is Detail.VERIFIED


@pytest.mark.parametrize("marked", [True, False])
async def test_in_a_list_that_stays_in_place_the_option_must_read_as_chosen(clock: VirtualClock, marked: bool) -> None:
    opener = button("Size", 100)
    small, large = node("Small", (40, 300, 400, 400)), node("Large", (40, 400, 400, 500), checked=marked)
    pages = {
        "main": Page(dump(window(opener)), taps={"Size": "open"}),
        "open": Page(dump(window(opener, small, node("Large", (40, 400, 400, 500)))), taps={"Large": "chosen"}),
        "chosen": Page(dump(window(opener, small, large))),
    }
    phone = MemoryPhone(pages, start="main", clock=clock)
    step = {"action": "SELECT_OPTION", "selector": {"text": "Size"}, "option": {"text": "Large"}, "timeoutMs": 3000}
    result = await run_step(phone, clock, step)
    assert result.successful is marked
    assert did(phone) == ["Size", "Large"]


@pytest.mark.parametrize("chosen", ["Choose", "Norway"])
async def test_an_opener_that_only_takes_the_focus_at_first_is_not_taken_for_the_list(
    clock: VirtualClock, chosen: str
) -> None:
    class Slow(MemoryPhone):
        looks = 0

        async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
            shown = await super().dump(deadline=deadline, active_only=active_only)
            if self.page == "focused":
                self.looks += 1
                self.show("focused" if self.looks < OPEN_LOOKS - 1 else "countries")
            return shown

    focused = main(country=chosen)
    focused.children[1].focused = True
    pages = {
        "main": Page(dump(main(country=chosen)), taps={chosen: "focused"}),
        "focused": Page(dump(focused), taps={chosen: "main"}, swipes={"UP": "further"}),
        "further": Page(dump(main(("Row 9",)))),
        "countries": _countries(),
        "norway": Page(dump(main(country="Norway"))),
    }
    phone = Slow(pages, start="main", clock=clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}})
    assert result.detail is Detail.VERIFIED
    assert did(phone) == [chosen, "Norway"]


async def test_the_opener_is_never_tapped_as_the_option_that_it_shows(clock: VirtualClock) -> None:
    focused = main(country="Norway")
    focused.children[1].focused = True
    pages = {
        "main": Page(dump(main(country="Norway")), taps={"Norway": "focused"}),
        "focused": Page(dump(focused)),
    }
    phone = MemoryPhone(pages, start="main", clock=clock)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert [done.call for done in phone.done].count("tap") == 1


async def test_a_choice_that_changes_nothing_in_an_open_list_is_not_verified_by_the_opener(clock: VirtualClock) -> None:
    """The opener shows what is chosen already, so only a list that closes tells that the tap was taken."""
    opener = button("Size: Large", 100)
    option = node("Large", (40, 300, 400, 400), class_name="Option")
    pages = {
        "main": Page(dump(window(opener)), taps={"Size: Large": "open"}),
        "open": Page(dump(window(opener, option))),
    }
    phone = MemoryPhone(pages, start="main", clock=clock)
    step = {"action": "SELECT_OPTION", "selector": {"text": "Size: Large"}, "option": {"text": "Large"}}
    result = await run_step(phone, clock, {**step, "timeoutMs": 2000})
    assert result.code is StepCode.ACTION_FAILED
    assert did(phone) == ["Size: Large", "Large"]


async def test_a_row_of_a_page_of_options_is_not_taken_for_the_opener(clock: VirtualClock) -> None:
    """The page has the same window, and one text of the opener's kind, at another place."""
    other = node("", (0, 0, 10, 10), class_name="Other")
    row = node("Norway", (40, 600, 440, 700), clickable=True)
    pages = {
        "main": Page(dump(window(other, node("Choose", (40, 300, 440, 400), clickable=True))), taps={"Choose": "page"}),
        "page": Page(dump(window(row)), taps={"Norway": "loading"}),
        "loading": Page(dump(window(row, other))),
    }
    phone = MemoryPhone(pages, start="main", clock=clock)
    step = {"action": "SELECT_OPTION", "selector": {"text": "Choose"}, "option": {"text": "Norway"}, "timeoutMs": 2000}
    result = await run_step(phone, clock, step)
    assert result.code is StepCode.ACTION_FAILED
    assert "has not closed" in result.message


async def test_two_options_alike_are_ambiguous_and_neither_is_tapped(clock: VirtualClock) -> None:
    phone = workbench(clock, more={"countries": Page(dump(drop_down("Norway", "Norway")))})
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}, "optional": True})
    assert result.code is StepCode.TARGET_AMBIGUOUS
    assert did(phone) == ["Choose"]


@pytest.mark.parametrize(("faults", "taps"), [([Fault.DIES_AFTER], 1), ([Fault.NONE, Fault.DIES_AFTER], 2)])
async def test_a_tap_of_which_nobody_knows_ends_it(clock: VirtualClock, faults: list[Fault], taps: int) -> None:
    phone = workbench(clock)
    phone.fail("tap", *faults)
    result = await run_step(phone, clock, {**COUNTRY, "option": {"text": "Norway"}})
    assert result.code is StepCode.OUTCOME_UNKNOWN
    assert len(phone.done) == taps
