"""INPUT: the text arrives whole or the step says that it did not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from support.runs import run_step
from support.screens import PACKAGE, dump, field, node, window
from support.shop import button, shop

SEARCH = {"resourceId": "search"}
GREEN = {"action": "INPUT", "selector": SEARCH, "value": "green tea"}


def typed(phone: MemoryPhone) -> list[str]:
    return [done.text for done in phone.done if done.call == "set_focused_text"]


async def test_a_text_is_typed_and_read_back(clock: VirtualClock) -> None:
    phone = shop(clock, opens_keyboard=True)
    result = await run_step(phone, clock, GREEN)
    assert (result.successful, result.detail) == (True, Detail.VERIFIED)
    assert [done.call for done in phone.done] == ["tap", "set_focused_text"]
    assert (result.looks, result.dispatched) == (3, 2)
    assert clock.monotonic() == 0


@pytest.mark.parametrize(
    "value",
    [
        "Ünï",
        "日本語",
        "مرحبا",
        "a\nb",
        "%s $HOME `x`",
        'it\'s "ok"',
        "👩‍👩‍👧 hi 🎁",
        "",
        "  spaces  ",
        "1,234.50",
        "<&>",
    ],
)
async def test_any_script_arrives_byte_for_byte(clock: VirtualClock, value: str) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {**GREEN, "value": value})
    assert result.detail is Detail.VERIFIED, result.message
    assert typed(phone) == [value]


async def test_a_text_with_emoji_says_how_it_was_compared(clock: VirtualClock) -> None:
    result = await run_step(shop(clock), clock, {**GREEN, "value": "🎁"})
    assert "Emoji were compared" in result.message


async def test_a_focused_field_is_not_tapped(clock: VirtualClock) -> None:
    phone = shop(clock)
    await run_step(phone, clock, GREEN)
    phone.done.clear()
    result = await run_step(phone, clock, {**GREEN, "value": "black tea"})
    assert (result.detail, [done.call for done in phone.done]) == (Detail.VERIFIED, ["set_focused_text"])


async def test_lost_characters_are_repaired_once(clock: VirtualClock) -> None:
    lost = iter([1])
    phone = shop(clock, typist=lambda text: text[next(lost, 0) :])
    digits = "123456789012345678"
    result = await run_step(phone, clock, {**GREEN, "value": digits})
    assert result.detail is Detail.VERIFIED
    assert typed(phone) == [digits, digits]
    assert result.dispatched == 3


async def test_characters_lost_twice_are_a_failure(clock: VirtualClock) -> None:
    phone = shop(clock, typist=lambda text: text[:-1])
    result = await run_step(phone, clock, {**GREEN, "value": "123456789012345678"})
    assert result.code is StepCode.ACTION_FAILED
    assert len(typed(phone)) == 2
    assert "(17 characters) instead of the 18" in result.message


async def test_a_field_that_formats_is_not_called_verified(clock: VirtualClock) -> None:
    phone = shop(clock, typist=lambda text: f"{int(text):,}" if text.isdecimal() else text)
    assert (await run_step(phone, clock, {**GREEN, "value": "1234567"})).code is StepCode.ACTION_FAILED
    assert (await run_step(phone, clock, {**GREEN, "value": "1,234,567"})).detail is Detail.VERIFIED


async def test_an_app_that_takes_its_time_to_show_the_text_is_waited_for(clock: VirtualClock) -> None:
    class Slow(MemoryPhone):
        async def dump(self, **options: object) -> str:
            root = self.window
            assert root is not None
            shown = root.children[0]
            real, late = shown.text, self.calls.count("dump") < 4 and shown.text != "Search"
            shown.text = "gre" if late else real
            taken = await super().dump(**options)  # type: ignore[arg-type]  # passed through
            shown.text = real
            return taken

    page = Page(dump(window(field((0, 0, 900, 100), hint="Search", resource_id="search"))))
    phone = Slow({"p": page}, start="p", clock=clock)
    result = await run_step(phone, clock, GREEN)
    assert (result.detail, len(typed(phone))) == (Detail.VERIFIED, 1)


async def test_a_password_is_typed_and_not_read_back(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(
        phone, clock, {"action": "INPUT", "selector": {"resourceId": "password"}, "value": "s3cret"}
    )
    assert (result.successful, result.detail, result.looks) == (True, Detail.DISPATCHED_UNVERIFIED, 2)
    assert typed(phone) == ["s3cret"]
    assert "s3cret" not in result.model_dump_json()


async def test_submit_presses_enter_after_the_text_was_verified(clock: VirtualClock) -> None:
    phone = shop(clock)
    assert (await run_step(phone, clock, {**GREEN, "submit": True})).detail is Detail.VERIFIED
    assert [done.call for done in phone.done] == ["tap", "set_focused_text", "press"]


async def test_nothing_is_submitted_when_the_text_is_wrong(clock: VirtualClock) -> None:
    phone = shop(clock, typist=lambda _text: "nonsense")
    assert not (await run_step(phone, clock, {**GREEN, "submit": True})).successful
    assert "press" not in phone.calls


async def test_without_clear_the_text_is_added_to_what_the_field_holds(clock: VirtualClock) -> None:
    phone = shop(clock)
    add = {**GREEN, "clear": False}
    assert (await run_step(phone, clock, {**add, "value": "green"})).detail is Detail.VERIFIED
    assert (await run_step(phone, clock, {**add, "value": " tea"})).detail is Detail.VERIFIED
    assert typed(phone) == ["green", "green tea"]


async def test_a_text_that_may_hide_an_emoji_is_not_destroyed_by_appending(clock: VirtualClock) -> None:
    phone = shop(clock)
    await run_step(phone, clock, {**GREEN, "value": "gift 🎁"})
    result = await run_step(phone, clock, {**GREEN, "value": "!", "clear": False})
    assert result.code is StepCode.ACTION_FAILED
    assert typed(phone) == ["gift 🎁"]
    assert "clear: true" in result.message


async def test_a_password_that_is_there_is_not_appended_to(clock: VirtualClock) -> None:
    phone = shop(clock)
    step = {"action": "INPUT", "selector": {"resourceId": "password"}, "value": "abc", "clear": False}
    assert (await run_step(phone, clock, step)).successful
    assert (await run_step(phone, clock, step)).code is StepCode.ACTION_FAILED
    assert typed(phone) == ["abc"]


async def test_a_field_found_by_its_hint_is_known_again_when_the_hint_is_gone(clock: VirtualClock) -> None:
    result = await run_step(shop(clock), clock, {**GREEN, "selector": {"text": "Search"}})
    assert result.detail is Detail.VERIFIED


async def test_a_text_equal_to_the_hint_cannot_be_verified(clock: VirtualClock) -> None:
    result = await run_step(shop(clock), clock, {**GREEN, "value": "Search"})
    assert (result.successful, result.detail) == (True, Detail.DISPATCHED_UNVERIFIED)


async def test_what_does_not_take_the_focus_is_not_typed_into(clock: VirtualClock) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "INPUT", "selector": {"text": "Shop"}, "value": "x"})
    assert result.code is StepCode.ACTION_FAILED
    assert "does not have the input focus" in result.message
    assert [done.call for done in phone.done] == ["tap"]


async def test_a_disabled_field_is_not_typed_into(clock: VirtualClock) -> None:
    page = Page(dump(window(field((0, 0, 900, 100), hint="Code", enabled=False))))
    phone = MemoryPhone({"p": page}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "INPUT", "selector": {"hint": "Code"}, "value": "1"})
    assert result.code is StepCode.TARGET_DISABLED
    assert phone.done == []


async def test_a_field_inside_the_matched_node_is_typed_into(clock: VirtualClock) -> None:
    box = node("", (0, 0, 900, 200), field((20, 20, 880, 180), hint="Email"), resource_id=f"{PACKAGE}:id/box")
    phone = MemoryPhone({"p": Page(dump(window(box)))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "INPUT", "selector": {"resourceId": "box"}, "value": "a@b.c"})
    assert result.detail is Detail.VERIFIED


async def test_the_focus_in_another_field_is_not_typed_into(clock: VirtualClock) -> None:
    first = field((0, 0, 900, 100), hint="First", focused=True)
    second = node("Second", (0, 200, 900, 300))
    phone = MemoryPhone({"p": Page(dump(window(first, second)))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "INPUT", "selector": {"text": "Second"}, "value": "x"})
    assert result.code is StepCode.ACTION_FAILED
    assert typed(phone) == []


async def test_a_field_that_is_gone_after_typing_is_not_called_verified(clock: VirtualClock) -> None:
    class Leaving(MemoryPhone):
        async def set_focused_text(self, text: str, **options: object) -> bool:
            done = await super().set_focused_text(text, **options)  # type: ignore[arg-type]  # passed through
            self.show("next")
            return done

    page = Page(dump(window(field((0, 0, 900, 100), hint="Code"))))
    phone = Leaving({"p": page, "next": Page(dump(window(button("Done", 500))))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "INPUT", "selector": {"hint": "Code"}, "value": "1234"})
    assert result.code is StepCode.ACTION_FAILED
    assert "could not be read back" in result.message
    assert typed(phone) == ["1234"]


async def test_a_phone_that_dies_before_the_reading_back_leaves_the_text_unverified(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.NONE, Fault.NONE, *[Fault.DIES_BEFORE] * 100)
    result = await run_step(phone, clock, {**GREEN, "submit": True})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert result.dispatched == 2
    assert "press" not in phone.calls


async def test_a_phone_that_is_away_for_a_moment_is_read_back_later(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.NONE, Fault.NONE, Fault.DIES_BEFORE, Fault.DIES_BEFORE)
    result = await run_step(phone, clock, GREEN)
    assert (result.detail, len(typed(phone))) == (Detail.VERIFIED, 1)


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40))
def test_whatever_is_typed_is_verified_or_fails_and_is_never_typed_more_than_twice(value: str) -> None:
    import asyncio

    clock = VirtualClock()
    phone = shop(clock)
    result = asyncio.run(run_step(phone, clock, {**GREEN, "value": value}))
    assert result.successful
    assert typed(phone) == [value]
