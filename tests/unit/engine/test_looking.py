"""Look and decide: waiting, the codes of what was missing, and the deadline (protocol section 3, rules 1 to 4)."""

from __future__ import annotations

import pytest

from droidfleet_agent.driver.memory import KEYBOARD_PACKAGE, Fault, MemoryPhone, Page
from droidfleet_agent.driver.port import PhoneUnavailableError
from droidfleet_agent.engine.ending import MAX_INLINE_CHARACTERS
from droidfleet_agent.engine.sight import PICTURE_NOT_READ
from droidfleet_shared.clock import Deadline, VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import StepResult
from droidfleet_shared.screen.windows import SYSTEM_UI
from support.runs import Recorder, run_step
from support.screens import HEIGHT, PACKAGE, WIDTH, dump, node, window
from support.shop import button, pages, shop

CLICK_TEA = {"action": "CLICK", "selector": {"text": "Tea"}}
WAIT_TEA = {"action": "WAIT", "selector": {"text": "Tea"}}


class Film(MemoryPhone):
    """Shows the next page after each dump, and stays on the last."""

    def __init__(self, clock: VirtualClock, *frames: Page) -> None:
        super().__init__({str(place): frame for place, frame in enumerate(frames)}, start="0", clock=clock)
        self._last = len(frames) - 1

    async def dump(self, **options: object) -> str:
        taken = await super().dump(**options)  # type: ignore[arg-type]  # passed through
        self.show(str(min(int(self.page) + 1, self._last)))
        return taken


def frame(*nodes: object, package: str = PACKAGE) -> Page:
    return Page(dump(window(*nodes, package=package)))  # type: ignore[arg-type]  # nodes


async def test_a_target_that_is_there_costs_one_look_and_no_pause(clock: VirtualClock) -> None:
    result = await run_step(shop(clock), clock, CLICK_TEA)
    assert (result.successful, result.looks, result.dispatched) == (True, 1, 1)
    assert clock.monotonic() == 0


async def test_a_target_that_appears_is_tapped_when_two_looks_show_it_at_one_place(clock: VirtualClock) -> None:
    phone = Film(clock, frame(), frame(button("Tea", 900)), frame(button("Tea", 700)), frame(button("Tea", 500)))
    result = await run_step(phone, clock, CLICK_TEA)
    assert result.successful
    assert result.looks == 5
    assert [done.point for done in phone.done] == [(240, 550)]


async def test_a_target_that_never_rests_is_not_tapped(clock: VirtualClock) -> None:
    phone = Film(clock, frame(), *(frame(button("Tea", 100 + place)) for place in range(300)))
    result = await run_step(phone, clock, CLICK_TEA)
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "not yet at rest" in result.message
    assert phone.done == []


async def test_a_wait_needs_no_rest(clock: VirtualClock) -> None:
    phone = Film(clock, frame(), *(frame(button("Tea", 100 + place)) for place in range(300)))
    assert (await run_step(phone, clock, WAIT_TEA)).looks == 2


@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        ({"selector": {"text": "Coffee"}}, StepCode.TARGET_NOT_FOUND, ['{"text": "Coffee"}', '"Shop"', '"Tea"']),
        ({"selector": {"text": "tea"}}, StepCode.TARGET_NOT_FOUND, ['Alike on the screen: "Tea"']),
        ({"selector": {"text": "Sold out"}}, StepCode.TARGET_DISABLED, ["disabled"]),
        ({"selector": {"text": "Tea"}, "packageName": "com.other"}, StepCode.PACKAGE_MISMATCH, ["com.other", PACKAGE]),
        ({"selector": {"text": "Tea"}, "packageName": "com.example"}, StepCode.PACKAGE_MISMATCH, [PACKAGE]),
        (
            {"selector": {"text": "Tea"}, "packageName": PACKAGE, "activityName": ".Other"},
            StepCode.ACTIVITY_MISMATCH,
            [".Other", ".MainActivity"],
        ),
    ],
)
async def test_at_the_deadline_the_code_names_what_was_missing(
    clock: VirtualClock, step: dict[str, object], code: StepCode, words: list[str]
) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "CLICK", "timeoutMs": 2000, **step})
    assert result.code is code
    assert not result.successful
    for word in (*words, "2000 ms"):
        assert word in result.message
    assert clock.monotonic() == pytest.approx(2.0)
    assert phone.done == []


@pytest.mark.parametrize("activity", [".MainActivity", f"{PACKAGE}.MainActivity"])
async def test_an_activity_may_be_written_in_full_or_in_short(clock: VirtualClock, activity: str) -> None:
    step = {**WAIT_TEA, "packageName": PACKAGE, "activityName": activity}
    assert (await run_step(shop(clock), clock, step)).successful


async def test_package_and_target_are_decided_on_the_same_look(clock: VirtualClock) -> None:
    phone = Film(clock, frame(), frame(button("Tea", 500), package="com.other"), frame(), frame())
    result = await run_step(phone, clock, {**CLICK_TEA, "packageName": PACKAGE, "timeoutMs": 300})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert phone.done == []


async def test_an_activity_that_changes_during_the_look_is_not_known(clock: VirtualClock) -> None:
    phone = Film(clock, Page(pages()["home"].xml, activity=".Old"), Page(pages()["home"].xml, activity=".New"))
    result = await run_step(phone, clock, {**WAIT_TEA, "packageName": PACKAGE, "activityName": ".New"})
    assert (result.successful, result.looks) == (True, 2)


async def test_the_code_names_what_was_missing_last_not_first(clock: VirtualClock) -> None:
    phone = Film(clock, frame(package="com.launcher"), frame(button("Tea", 500, enabled=False)))
    result = await run_step(phone, clock, {**CLICK_TEA, "packageName": PACKAGE})
    assert result.code is StepCode.TARGET_DISABLED


async def test_a_button_that_gets_enabled_is_tapped(clock: VirtualClock) -> None:
    phone = Film(clock, frame(button("Pay", 500, enabled=False)), frame(button("Pay", 500)))
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}})
    assert (result.successful, len(phone.done)) == (True, 1)


@pytest.mark.parametrize("optional", [False, True])
async def test_an_ambiguous_target_fails_at_once_whatever_optional_says(clock: VirtualClock, optional: bool) -> None:
    phone = shop(clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Delete"}, "optional": optional})
    assert result.code is StepCode.TARGET_AMBIGUOUS
    assert [each.bounds.top for each in result.candidates] == [900, 1100]
    assert clock.monotonic() == 0
    assert phone.done == []


async def test_at_most_five_candidates_are_listed(clock: VirtualClock) -> None:
    phone = MemoryPhone({"p": frame(*(button("Add", 100 * place) for place in range(9)))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "WAIT", "selector": {"text": "Add"}})
    assert len(result.candidates) == 5
    assert "9 nodes match; 5 of 9 are listed" in result.message


async def test_waiting_neither_hammers_nor_dozes(clock: VirtualClock) -> None:
    phone = shop(clock, start="empty")
    result = await run_step(phone, clock, {**WAIT_TEA, "timeoutMs": 5000})
    assert 20 <= result.looks <= 26


async def test_a_hanging_phone_ends_the_step_at_its_own_deadline(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.HANG)
    result = await run_step(phone, clock, {**CLICK_TEA, "timeoutMs": 3000})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert clock.monotonic() == pytest.approx(3.0)


async def test_a_picture_that_was_not_read_in_time_is_not_blamed_on_the_phone(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone = shop(clock)

    async def slow(**_: object) -> str:
        raise PhoneUnavailableError(PICTURE_NOT_READ, "the picture was not looked through in time")

    monkeypatch.setattr(phone, "dump", slow)
    result = await run_step(phone, clock, WAIT_TEA)
    assert result.code is StepCode.SCREEN_UNREADABLE
    assert result.message == "After 5000 ms nothing was decided: the picture was not looked through in time."


async def test_a_phone_that_falls_silent_leaves_the_code_of_what_was_missing(clock: VirtualClock) -> None:
    phone = shop(clock, start="empty")
    phone.fail("dump", Fault.NONE, Fault.HANG)
    result = await run_step(phone, clock, WAIT_TEA)
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "no longer answered" in result.message


async def test_a_last_look_that_the_deadline_cuts_short_is_no_silence(clock: VirtualClock) -> None:
    phone = shop(clock, start="empty")
    phone.fail("dump", Fault.NONE, Fault.HANG)
    result = await run_step(phone, clock, {**WAIT_TEA, "timeoutMs": 500})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert "no longer answered" not in result.message


async def test_a_phone_that_comes_back_in_time_is_looked_at_again(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.DIES_BEFORE, Fault.DIES_AFTER, Fault.DIES_BEFORE)
    result = await run_step(phone, clock, CLICK_TEA)
    assert (result.successful, len(phone.done)) == (True, 1)


@pytest.mark.parametrize("call", ["display", "input_methods", "focus"])
async def test_every_read_of_a_look_may_fail_once(clock: VirtualClock, call: str) -> None:
    phone = shop(clock)
    phone.fail(call, Fault.DIES_BEFORE)  # type: ignore[arg-type]  # one of the calls
    step = {**CLICK_TEA, "packageName": PACKAGE, "activityName": ".MainActivity"}
    assert (await run_step(phone, clock, step)).successful


async def test_a_phone_that_is_not_there_is_unavailable_even_to_an_optional_step(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.attached = False
    result = await run_step(phone, clock, {**CLICK_TEA, "optional": True})
    assert result.code is StepCode.DEVICE_UNAVAILABLE
    assert not result.successful


async def test_a_cut_dump_is_taken_again(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.CUT)
    assert (await run_step(phone, clock, CLICK_TEA)).successful
    assert phone.calls.count("dump") == 2


async def test_two_cut_dumps_fail_with_the_raw_text_as_an_artifact(clock: VirtualClock) -> None:
    phone = shop(clock)
    phone.fail("dump", Fault.CUT, Fault.CUT)
    result = await run_step(phone, clock, CLICK_TEA)
    assert result.code is StepCode.SCREEN_UNREADABLE
    (kept,) = result.artifacts
    assert kept.inline is not None
    assert kept.inline.startswith("<?xml")
    assert kept.size_bytes == len(kept.inline.encode())
    assert clock.monotonic() == 0


async def test_a_long_raw_text_is_cut_with_a_marker(clock: VirtualClock) -> None:
    phone = MemoryPhone({"p": frame(node("x" * 99_999, (0, 0, 9, 9)))}, start="p", clock=clock)
    phone.fail("dump", Fault.CUT, Fault.CUT)
    (kept,) = (await run_step(phone, clock, WAIT_TEA)).artifacts
    assert kept.inline is not None
    assert len(kept.inline) < MAX_INLINE_CHARACTERS + 60
    assert kept.inline.endswith("characters more]")


async def settled(clock: VirtualClock, *roots: object, active: int, selector: str) -> StepResult:
    page = Page(dump(*roots), active=active)  # type: ignore[arg-type]  # nodes
    phone = MemoryPhone({"p": page}, start="p", clock=clock)
    return await run_step(phone, clock, {"action": "WAIT", "selector": {"text": selector}, "timeoutMs": 500})


async def test_of_two_application_windows_the_active_one_is_searched(clock: VirtualClock) -> None:
    behind = window(button("Allow", 500))
    dialog = window(button("Allow", 900), button("Deny", 1100), package="com.android.permissioncontroller")
    result = await settled(clock, behind, dialog, active=1, selector="Allow")
    assert result.target is not None
    assert result.target.bounds.top == 900


async def test_a_phone_that_gives_all_windows_for_the_active_one_has_none_guessed(clock: VirtualClock) -> None:
    class OldPhone(MemoryPhone):
        async def dump(self, *, deadline: Deadline, active_only: bool = False) -> str:
            return await super().dump(deadline=deadline)

    page = Page(dump(window(button("Allow", 500)), window(button("Deny", 900), package="com.example.other")))
    phone = OldPhone({"p": page}, start="p", clock=clock)
    step = {"action": "CLICK", "selector": {"text": "Allow"}, "timeoutMs": 500}
    result = await run_step(phone, clock, step)
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert phone.done == []


async def test_an_app_whose_package_has_a_keyboard_too_is_searched(clock: VirtualClock) -> None:
    speech = window(button("Speak", 500), package=KEYBOARD_PACKAGE)
    bar = window(bounds=(0, 0, WIDTH, 80), package=SYSTEM_UI)
    page = Page(dump(bar, speech), active=1)
    phone = MemoryPhone({"p": page}, start="p", clock=clock)
    step = {"action": "CLICK", "selector": {"text": "Speak"}, "packageName": KEYBOARD_PACKAGE}
    assert (await run_step(phone, clock, step)).successful
    assert [done.call for done in phone.done] == ["tap"]


async def test_a_target_is_not_tapped_through_what_lies_over_it(clock: VirtualClock) -> None:
    cookies = button("Accept cookies", 450)
    phone = MemoryPhone({"p": frame(button("Pay", 450), cookies)}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}, "timeoutMs": 500})
    assert result.code is StepCode.TARGET_NOT_FOUND
    assert 'covered by "Accept cookies"' in result.message
    assert phone.done == []


async def test_behind_an_open_notification_shade_nothing_is_found(clock: VirtualClock) -> None:
    shade = window(node("Clear all", (0, 0, 100, 50)), package=SYSTEM_UI)
    for wanted in ("Tea", "Clear all"):
        result = await settled(clock, window(button("Tea", 500)), shade, active=1, selector=wanted)
        assert result.code is StepCode.TARGET_NOT_FOUND
        assert "No application window is in front" in result.message


async def test_the_target_is_reported_as_it_was_seen(clock: VirtualClock) -> None:
    long = button("T" * 999, 500)
    phone = MemoryPhone({"p": frame(long)}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"textStartsWith": "TT"}})
    assert result.target is not None
    assert result.target.text == "T" * 256
    assert result.target.bounds.model_dump() == {"left": 40, "top": 500, "right": 440, "bottom": 600}


async def test_a_selector_with_emoji_says_how_it_was_compared(clock: VirtualClock) -> None:
    phone = MemoryPhone({"p": frame(button("Gift 🎁", 500))}, start="p", clock=clock)
    result = await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Gift 🎁"}})
    assert result.successful
    assert "Emoji were compared" in result.message


async def test_taps_land_in_the_frame_of_the_rotated_phone(clock: VirtualClock) -> None:
    root = window(button("Pay", 900, left=2200), bounds=(0, 0, HEIGHT, WIDTH))
    phone = MemoryPhone({"p": Page(dump(root, rotation=1))}, start="p", clock=clock)
    assert (await run_step(phone, clock, {"action": "CLICK", "selector": {"text": "Pay"}})).successful
    assert phone.done[0].point == (2300, 950)
    assert phone.done[0].target == "Pay"


async def test_a_look_announces_nothing(clock: VirtualClock) -> None:
    recorder = Recorder()
    await run_step(shop(clock), clock, WAIT_TEA, observer=recorder)
    assert recorder.heard == [("started", "s1", 0), ("finished", "s1", 0)]
