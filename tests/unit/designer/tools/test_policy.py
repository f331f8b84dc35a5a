"""Which calls reach the phone: quotas, numbers that count, and what a person is asked about first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pydantic import JsonValue

from droidfleet_designer.tools.policy import MAX_CALLS
from droidfleet_designer.tools.tool import OutcomeKind
from support.designer_phones import page
from support.screens import field, node
from support.workshops import CHAT, SHOP, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """One whose phone is taken and shows the shop."""
    bench = Bench(allow_points=True)
    await bench.workshop.enter()
    yield bench
    await bench.workshop.leave()


# Quotas ---------------------------------------------------------------------------------------------------------------


async def test_a_tool_is_called_so_often_and_no_more(bench: Bench) -> None:
    for _ in range(MAX_CALLS):
        await bench.call("back")

    outcome = await bench.call("back")

    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "TOOL_QUOTA")
    assert len(bench.phones.done) == MAX_CALLS


async def test_the_quota_of_one_tool_is_not_that_of_another() -> None:
    bench = Bench(calls={"back": MAX_CALLS})

    assert (await bench.call("screen")).kind is OutcomeKind.RESULT


async def test_calls_before_a_restart_count() -> None:
    assert (await Bench(calls={"screen": MAX_CALLS}).call("screen")).code == "TOOL_QUOTA"


async def test_a_call_that_was_withheld_and_allowed_counts_once() -> None:
    bench = Bench(calls={"tap": MAX_CALLS - 1})
    await bench.workshop.enter()
    target = await bench.number("Delete account")
    await bench.call("tap", **target)

    outcome = await bench.call_allowed("tap", **target)

    await bench.workshop.leave()
    assert outcome.kind is OutcomeKind.RESULT


async def test_a_tool_that_is_not_there_is_told_with_those_that_are(bench: Bench) -> None:
    outcome = await bench.call("run_shell", command="reboot")

    assert (outcome.kind, outcome.code) == (OutcomeKind.RETRY, "UNKNOWN_TOOL")
    assert "long_press" in outcome.text


# Numbers that count ---------------------------------------------------------------------------------------------------


async def test_a_number_of_an_older_screen_is_refused(bench: Bench) -> None:
    old = await bench.number("Green tea")
    await bench.call("screen")

    outcome = await bench.call("tap", **old)

    assert (outcome.kind, outcome.code, bench.phones.done) == (OutcomeKind.RETRY, "STALE_ELEMENT", [])


async def test_no_number_counts_after_a_restart() -> None:
    bench = Bench(snapshots={"s0": SHOP, "s1": SHOP})

    assert (await bench.call("tap", screen=1, element=1)).code == "STALE_ELEMENT"


async def test_no_number_counts_while_nobody_knows_what_the_screen_shows(bench: Bench) -> None:
    target = await bench.number("Green tea")
    bench.phones.pages["shop"] = bench.phones.pages["shop"].model_copy(update={"window": "not a tree"})
    await bench.call("back")

    assert (await bench.call("tap", **target)).code == "STALE_ELEMENT"


async def test_numbers_still_count_after_a_step_that_was_no_step(bench: Bench) -> None:
    target = await bench.number("Green tea")
    await bench.call("open_app", package="no package")

    assert (await bench.call("tap", **target)).kind is OutcomeKind.RESULT


async def test_a_number_that_the_screen_does_not_list_is_refused(bench: Bench) -> None:
    await bench.call("screen")

    assert (await bench.call("tap", screen=1, element=99)).code == "NO_SUCH_ELEMENT"


async def test_what_nothing_names_cannot_be_used(bench: Bench) -> None:
    await bench.call("screen")
    seeing = bench.workshop._seeing
    assert seeing.newest is not None
    unnamed = {1: replace(seeing.newest.elements[1], selector=None)}
    seeing.newest = replace(seeing.newest, elements=unnamed)

    assert (await bench.call("tap", screen=1, element=1)).code == "NO_SELECTOR"


async def test_an_element_that_is_gone_meanwhile_is_not_looked_for_by_the_step(bench: Bench) -> None:
    target = await bench.number("Green tea")
    bench.phones.now = "chat"

    outcome = await bench.call("tap", **target)

    assert (outcome.kind, outcome.code, bench.phones.steps) == (OutcomeKind.RETRY, "SCREEN_CHANGED", [])
    assert (outcome.snapshot, '"Message"' in outcome.text) == (CHAT, True)


async def test_an_element_that_only_moved_is_still_that_element(bench: Bench) -> None:
    target = await bench.number("Green tea")
    bench.phones.pages["shop"] = page(node("Green tea", (0, 900, 1080, 999), clickable=True))

    assert (await bench.call("tap", **target)).kind is OutcomeKind.RESULT


# What a person is asked about -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "tool", "arguments", "why"),
    [
        (("shop", "Delete account"), "tap", {}, '"delete"'),
        (("shop", "Delete account"), "long_press", {}, '"delete"'),
        (("shop", "Delete account"), "swipe", {"direction": "LEFT"}, '"delete"'),
        (("chat", "Send"), "tap", {}, '"send"'),
        (("chat", "Message"), "type_text", {"text": "hello", "submit": True}, "Enter"),
        (("chat", "Message"), "type_text", {"text": "hello\n"}, "Enter"),
        (("question", "OK"), "tap", {}, "Delete three photos?"),
    ],
)
async def test_what_may_not_be_undone_is_withheld(
    bench: Bench, place: tuple[str, str], tool: str, arguments: dict[str, JsonValue], why: str
) -> None:
    bench.phones.now, on = place

    outcome = await bench.call(tool, **await bench.number(on), **arguments)

    assert (outcome.kind, bench.phones.steps) == (OutcomeKind.NEEDS_APPROVAL, [])
    assert why in outcome.why


@pytest.mark.parametrize(
    ("start", "on", "tool", "arguments"),
    [
        ("shop", "Green tea", "tap", {}),
        ("shop", "Search", "type_text", {"text": "tea", "submit": True}),
        ("shop", "Delete account", "swipe", {"direction": "UP"}),
        ("chat", "Message", "type_text", {"text": "hello"}),
        ("question", "Cancel", "tap", {}),
    ],
)
async def test_what_does_no_harm_is_done(
    bench: Bench, start: str, on: str, tool: str, arguments: dict[str, JsonValue]
) -> None:
    bench.phones.now = start

    outcome = await bench.call(tool, **await bench.number(on), **arguments)

    assert outcome.kind is OutcomeKind.RESULT


@pytest.mark.parametrize(
    ("start", "key", "kind"),
    [
        ("chat", "ENTER", OutcomeKind.NEEDS_APPROVAL),
        ("tea", "ENTER", OutcomeKind.NEEDS_APPROVAL),
        ("shop", "ENTER", OutcomeKind.RESULT),
        ("tea", "DELETE", OutcomeKind.NEEDS_APPROVAL),
        ("chat", "DELETE", OutcomeKind.RESULT),
        ("chat", "HOME", OutcomeKind.RESULT),
    ],
)
async def test_a_key_is_judged_by_the_field_that_has_the_focus(
    bench: Bench, start: str, key: str, kind: OutcomeKind
) -> None:
    bench.phones.now = start

    assert (await bench.call("press_key", key=key)).kind is kind


@pytest.mark.parametrize(
    ("y_percent", "kind"), [(6, OutcomeKind.RESULT), (23, OutcomeKind.NEEDS_APPROVAL), (90, OutcomeKind.RESULT)]
)
async def test_a_point_is_judged_by_what_lies_there(bench: Bench, y_percent: int, kind: OutcomeKind) -> None:
    await bench.call("screen")

    assert (await bench.call("tap_point", screen=1, x_percent=50, y_percent=y_percent)).kind is kind


@pytest.mark.parametrize("where", ["keyboard", "over"])
async def test_a_point_outside_the_window_that_was_read_is_withheld(bench: Bench, where: str) -> None:
    area = (0, 1800, 1080, 2400)
    covered = {"keyboard": area} if where == "keyboard" else {"over": (area,)}
    bench.phones.pages["shop"] = SHOP.model_copy(update=covered)
    await bench.call("screen")

    assert (await bench.call("tap_point", screen=1, x_percent=50, y_percent=90)).kind is OutcomeKind.NEEDS_APPROVAL


async def test_a_finger_across_the_display_is_judged_by_what_it_moves_over(bench: Bench) -> None:
    bench.phones.pages["shop"] = page(node("Slide to pay", (0, 1100, 1080, 1300), clickable=True))

    assert (await bench.call("swipe", direction="RIGHT")).kind is OutcomeKind.NEEDS_APPROVAL


async def test_a_yes_is_judged_by_the_whole_screen_also_after_a_search_for_it(bench: Bench) -> None:
    bench.phones.now = "question"
    await bench.call("find_text", text="OK")

    assert (await bench.call("tap", screen=1, element=1)).kind is OutcomeKind.NEEDS_APPROVAL


async def test_a_harmless_yes_that_became_another_question_is_withheld(bench: Bench) -> None:
    bench.phones.pages["shop"] = page(node("OK", (500, 1200, 1080, 1300), clickable=True))
    target = await bench.number("OK")
    bench.phones.now = "question"

    assert (await bench.call("tap", **target)).kind is OutcomeKind.NEEDS_APPROVAL


async def test_a_field_that_says_it_sends_is_no_search(bench: Bench) -> None:
    bench.phones.pages["shop"] = page(field((0, 300, 1080, 400), hint="Search or send", focused=True))

    assert (await bench.call("press_key", key="ENTER")).kind is OutcomeKind.NEEDS_APPROVAL


async def test_why_a_call_is_withheld_keeps_the_words_of_the_screen_in_quotes(bench: Bench) -> None:
    bench.phones.pages["shop"] = page(node("Send </s> now", (0, 0, 1080, 100), clickable=True))

    outcome = await bench.call("tap", **await bench.number("Send"))

    assert r'"Send \u003c/s> now"' in outcome.why


# What a person allowed ------------------------------------------------------------------------------------------------


async def test_what_a_person_allowed_is_done(bench: Bench) -> None:
    target = await bench.number("Delete account")
    await bench.call("tap", **target)

    outcome = await bench.call_allowed("tap", **target)

    assert (outcome.kind, bench.phones.done) == (OutcomeKind.RESULT, ["CLICK Delete account"])


async def test_what_changed_since_it_was_allowed_is_not_done(bench: Bench) -> None:
    bench.phones.now = "question"
    target = await bench.number("OK")
    await bench.call("tap", **target)
    bench.phones.pages["question"] = page(
        node("Delete all photos?", (0, 1000, 1080, 1100)), node("OK", (500, 1200, 1080, 1300), clickable=True)
    )

    outcome = await bench.call_allowed("tap", **target)

    assert (outcome.kind, outcome.code, bench.phones.done) == (OutcomeKind.RETRY, "SCREEN_CHANGED", [])


async def test_allowing_one_call_allows_no_other(bench: Bench) -> None:
    bench.phones.now = "chat"
    target = await bench.number("Message")
    await bench.call("type_text", **target, text="hello", submit=True)

    outcome = await bench.call_allowed("type_text", **target, text="goodbye", submit=True)

    assert (outcome.code, bench.phones.done) == ("SCREEN_CHANGED", [])
