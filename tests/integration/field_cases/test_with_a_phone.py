"""Field cases that need a phone: driver and engine over the real adb server. The phone's effect log is the judge."""

from __future__ import annotations

import asyncio

import pytest

from droidfleet_agent.driver.phone import AdbPhone
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from integration.field_cases.conftest import MakeHandset
from support.adb import AdbServer
from support.hanging import LATE_MS
from support.runs import run_steps

pytestmark = pytest.mark.integration

DIGITS = "123456789012345678"
CARD = {"action": "INPUT", "selector": {"resourceId": "card"}, "value": DIGITS}
NEXT = {"action": "CLICK", "selector": {"text": "Next"}}
PAY = {"action": "CLICK", "selector": {"text": "Pay now"}}
THANKS = {"action": "WAIT", "selector": {"text": "Thank you"}}
LONG_MS = 30_000
"""adb 29 takes up to twelve seconds to call a phone that was away."""

DUMP = "dumpWindowHierarchy"


async def test_f02_a_dump_that_is_cut_or_repeats_an_attribute_is_taken_again(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on=DUMP, do=FaultKind.CUT), Fault(on=DUMP, do=FaultKind.REPEAT_ATTRIBUTE, nth=3)])
    assert (await one.run(NEXT, THANKS)).successful
    assert one.seen("next_pressed") == ["next_pressed"]


async def test_f02_two_broken_dumps_keep_the_raw_text(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on=DUMP, do=FaultKind.CUT, times=2)])
    task = await one.run(NEXT)
    assert task.code is StepCode.SCREEN_UNREADABLE
    assert task.steps[0].artifacts[0].inline
    assert one.seen() == []


async def test_f08_the_keyboards_keys_are_never_tapped(handset: MakeHandset) -> None:
    one = await handset()
    assert (await one.run(CARD)).successful
    assert one.running.do(lambda phone: phone.phone.keyboard_shown)
    for key in ("a", "q", "1"):
        task = await one.run({"action": "CLICK", "selector": {"text": key}, "timeoutMs": 1_500})
        assert task.code is StepCode.TARGET_NOT_FOUND


async def test_f10_lost_characters_are_repaired_once(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on="setText", do=FaultKind.LOSE_CHARACTER)])
    task = await one.run(CARD)
    assert task.steps[0].detail is Detail.VERIFIED
    assert one.seen("set_text") == ["set_text", "set_text"]


async def test_f10_characters_that_are_lost_again_are_a_failure(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on="setText", do=FaultKind.LOSE_CHARACTER, times=None)])
    task = await one.run({**CARD, "submit": True})
    assert task.code is StepCode.ACTION_FAILED
    assert one.seen("set_text", "key") == ["set_text", "set_text"]


@pytest.mark.parametrize(
    "value",
    [
        "日本語 ÄÖ",
        "\U0001f469\u200d\U0001f467 \U0001f381",
        "\U0001f1e9\U0001f1ea \u2764\ufe0f 1\ufe0f\u20e3",
        "line one\nline two\ttab",
        "\n\n  both ends \n",
        "one\r\ntwo\rthree\u2028four\x85five",
        "%s $HOME 'it' \"ok\" \\",
        "%20s %%s `id` $(id) ${x} ;|&<>#!*?~ \\n \\u0041 &amp; ]]>",
        "שלום عليكم हिन्दी ไทย \u202eabc\u202c",
        "e\u0301 \u212b \u00a0 \u3000 \u200b|",
        "\x01\x1b[31m\x7f",
        "- [ ] {a: b}",
        "input text true null 0x41 --es",
        "",
        "x" * 16_384,
        "字" * 16_384,
    ],
    ids=lambda value: ascii(value[:12]),
)
async def test_any_text_arrives_byte_for_byte(handset: MakeHandset, value: str) -> None:
    one = await handset()
    task = await one.run({"action": "INPUT", "selector": {"resourceId": "note"}, "value": value})
    assert task.steps[0].detail is Detail.VERIFIED, task.message
    assert one.running.effects.of("set_text")[0].details["text"] == value


async def test_f11_the_keyboard_that_was_selected_stays_selected(handset: MakeHandset) -> None:
    one = await handset()
    before = one.running.do(lambda phone: (phone.phone.default_input_method, phone.phone.installed_input_methods))
    assert (await one.run(CARD, {**CARD, "clear": False, "value": "9"})).successful
    after = one.running.do(lambda phone: (phone.phone.default_input_method, phone.phone.installed_input_methods))
    assert after == before
    assert not one.seen("type_text")


async def test_f12_the_keyboard_is_hidden_from_the_button_and_the_page_stays(handset: MakeHandset) -> None:
    one = await handset()
    task = await one.run(CARD, PAY, {"action": "WAIT", "selector": {"text": DIGITS}})
    assert task.successful
    assert one.seen("key", "paid") == ["key", "paid"]
    assert one.running.effects.of("key")[0].details["code"] == 111


@pytest.mark.parametrize("method", ["click", "setText"])
@pytest.mark.parametrize("fault", [FaultKind.STALE, FaultKind.NOT_FOUND])
async def test_f14_a_stale_object_is_looked_for_again_with_one_effect(
    handset: MakeHandset, method: str, fault: FaultKind
) -> None:
    one = await handset(faults=[Fault(on=method, do=fault)])
    assert (await one.run(CARD)).steps[0].detail is Detail.VERIFIED
    assert one.seen("tap", "set_text") == ["tap", "set_text"]


@pytest.mark.parametrize("orientation", ["left", "right", "upsidedown"])
async def test_f15_taps_land_in_the_frame_of_the_rotated_phone(handset: MakeHandset, orientation: str) -> None:
    one = await handset()
    one.running.do(lambda phone: phone.phone.set_orientation(orientation))  # type: ignore[arg-type]  # one of them
    task = await one.run(PAY)
    assert task.successful
    assert task.steps[0].target is not None
    assert one.seen("tap", "paid") == ["tap", "paid"]


async def test_f16_a_read_that_is_never_answered_ends_at_the_steps_deadline(handset: MakeHandset) -> None:
    hung = await handset.hung(Fault(on=DUMP, do=FaultKind.HANG, times=None), NEXT)
    assert hung.task.code is StepCode.DEVICE_UNAVAILABLE
    assert hung.timeout_ms * 0.9 <= hung.task.duration_ms < hung.timeout_ms + LATE_MS
    assert hung.handset.seen() == []


@pytest.mark.parametrize("after", [False, True])
async def test_f16_an_action_that_is_never_answered_is_unknown_at_the_steps_deadline(
    handset: MakeHandset, after: bool
) -> None:
    hung = await handset.hung(Fault(on="click", do=FaultKind.HANG, after=after), NEXT, THANKS)
    assert hung.task.code is StepCode.OUTCOME_UNKNOWN
    assert hung.timeout_ms * 0.9 <= hung.task.duration_ms < hung.timeout_ms + LATE_MS
    assert len(hung.handset.seen("next_pressed")) == int(after)


async def test_f17_a_server_killed_during_a_read_is_started_again_and_the_step_goes_on(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on=DUMP, do=FaultKind.KILL_SERVER)])
    task = await one.run({**NEXT, "timeoutMs": LONG_MS}, THANKS)
    assert task.successful
    assert one.seen("next_pressed") == ["next_pressed"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("fault", [FaultKind.KILL_SERVER, FaultKind.DROP])
async def test_f17_a_server_killed_during_an_action_leaves_its_outcome_unknown_and_unrepeated(
    handset: MakeHandset, fault: FaultKind, after: bool
) -> None:
    one = await handset(faults=[Fault(on="click", do=fault, after=after)])
    task = await one.run(NEXT, THANKS)
    assert task.code is StepCode.OUTCOME_UNKNOWN
    assert len(task.steps) == 1
    assert len(one.seen("tap")) == int(after)


async def test_f17_the_phone_can_be_used_again_after_an_unknown_outcome(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on="click", do=FaultKind.KILL_SERVER)])
    assert (await one.run(NEXT)).code is StepCode.OUTCOME_UNKNOWN
    assert (await one.run({**NEXT, "timeoutMs": LONG_MS}, THANKS)).successful


async def test_f18_a_step_goes_on_when_adb_was_away_for_seconds(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on=DUMP, do=FaultKind.OFFLINE, seconds=3)])
    task = await one.run({**THANKS, "selector": {"text": "Payment"}, "timeoutMs": LONG_MS}, NEXT)
    assert task.successful
    assert one.seen("next_pressed") == ["next_pressed"]


async def test_f18_an_action_cut_off_by_adb_is_unknown(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on="click", do=FaultKind.OFFLINE, seconds=1, after=True)])
    assert (await one.run(NEXT, THANKS)).code is StepCode.OUTCOME_UNKNOWN
    assert one.seen("next_pressed") == ["next_pressed"]


async def test_f19_streams_that_are_refused_at_first_are_tried_again(handset: MakeHandset) -> None:
    refused = [Fault(on="shell_stream", do=FaultKind.REFUSE), Fault(on="tcp", do=FaultKind.REFUSE)]
    one = await handset(faults=refused, ready=False)
    assert (await one.run({**NEXT, "timeoutMs": LONG_MS}, THANKS)).successful


async def test_f20_two_phones_run_side_by_side_and_nothing_reaches_the_other(handset: MakeHandset) -> None:
    first, second = await handset(), await handset()
    values = ["111", "222"]
    for _round in range(5):
        tasks = await asyncio.gather(
            *(
                one.run({**CARD, "value": value}, NEXT, THANKS, {"action": "BACK"})
                for one, value in zip((first, second), values, strict=True)
            )
        )
        assert [task.code for task in tasks] == [StepCode.OK, StepCode.OK]
    for one, value in zip((first, second), values, strict=True):
        assert {effect.details["text"] for effect in one.running.effects.of("set_text")} == {value}
        assert len(one.seen("next_pressed")) == 5


async def test_f20_after_a_restart_of_the_adb_server_each_agent_finds_its_own_phone(
    handset: MakeHandset, adb_server: AdbServer
) -> None:
    first, second = await handset(), await handset()
    assert (await first.run(NEXT)).successful
    adb_server.kill()
    adb_server.start()
    for one in (second, first):  # the other order, so that a free forwarded port may go to the other one
        adb_server.run("connect", one.running.address, check=False)
    tasks = await asyncio.gather(
        second.run({**CARD, "value": "222", "timeoutMs": LONG_MS}),
        first.run({"action": "CLICK", "selector": {"text": "Again"}, "timeoutMs": LONG_MS}),
    )
    assert [task.code for task in tasks] == [StepCode.OK, StepCode.OK]
    assert first.seen("set_text", "again_pressed") == ["again_pressed"]
    assert second.seen("set_text", "again_pressed") == ["set_text"]


async def test_f20_the_adb_server_of_the_environment_is_used(handset: MakeHandset, adb_server: AdbServer) -> None:
    one = await handset()
    phone = AdbPhone(one.running.address)
    try:
        assert (await run_steps(phone, SystemClock(), NEXT)).successful
    finally:
        await phone.close()
    assert one.seen("next_pressed") == ["next_pressed"]
