"""`AdbPhone` against a scripted phone: what each break means for a read and for an action."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import pytest

from droidfleet_agent.driver.phone import AdbPhone
from droidfleet_agent.driver.port import (
    ActionRefusedError,
    Display,
    Focus,
    Key,
    OutcomeUnknownError,
    PhoneUnavailableError,
)
from droidfleet_shared.clock import Deadline, SystemClock
from support.scripted_phone import (
    Exchange,
    Reaction,
    ScriptedAdb,
    ScriptedHttp,
    close,
    error,
    half_answer,
    hang,
    result,
    scripted_adb,
    scripted_http,
)
from support.waiting import until

SERIAL = "SCRIPTED1"
REMOTE = "tcp:9008"


def soon(seconds: float = 5.0) -> Deadline:
    return SystemClock().deadline(seconds)


@dataclass
class Bench:
    phone: AdbPhone
    http: ScriptedHttp
    adb: ScriptedAdb


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """A phone that is connected: its first look has been taken."""
    async with scripted_http() as http, scripted_adb(SERIAL, target_port=http.port) as adb:
        adb.shells = {"wm size": "Physical size: 1080x1920\n", "dumpsys battery": "  level: 85\n"}
        phone = AdbPhone(SERIAL, adb_host="127.0.0.1", adb_port=adb.port)
        try:
            http.script.append(result("<hierarchy/>"))
            await phone.dump(deadline=soon())
            http.calls.clear()
            yield Bench(phone, http, adb)
        finally:
            await phone.close()


Action = Callable[[AdbPhone, Deadline], Awaitable[bool]]
ACTIONS: dict[str, Action] = {
    "click": lambda phone, deadline: phone.tap(10, 20, deadline=deadline),
    "setText": lambda phone, deadline: phone.set_focused_text("x", deadline=deadline),
    "pressKeyCode": lambda phone, deadline: phone.press(Key.BACK, deadline=deadline),
}
every_action = pytest.mark.parametrize("method", ACTIONS)


@every_action
@pytest.mark.parametrize("said", [True, False])
async def test_action_gives_what_the_phone_said(bench: Bench, method: str, said: bool) -> None:
    bench.http.script.append(result(said))
    assert await ACTIONS[method](bench.phone, soon()) is said
    assert bench.http.calls == [method]


@every_action
@pytest.mark.parametrize(
    "reaction",
    [
        close,
        half_answer,
        error("java.lang.RuntimeException"),
        error("android.os.DeadObjectException"),
        result(None),
        result("yes"),
        lambda exchange: exchange.answer(b"oops", status="500 Internal Error"),
        lambda exchange: exchange.answer(b"{"),
        lambda exchange: exchange.answer(b'{"jsonrpc": "2.0", "id": 999, "result": true}'),
    ],
    ids=["closed", "cut", "exception", "dead object", "null", "text", "HTTP 500", "no JSON", "another call's answer"],
)
async def test_action_whose_answer_is_lost_is_unknown_and_never_repeated(
    bench: Bench, method: str, reaction: Reaction
) -> None:
    bench.http.script.append(reaction)
    with pytest.raises(OutcomeUnknownError):
        await ACTIONS[method](bench.phone, soon())
    assert bench.http.calls == [method]


@every_action
async def test_action_that_hangs_is_unknown_at_the_deadline(bench: Bench, method: str) -> None:
    bench.http.script.append(hang)
    with pytest.raises(OutcomeUnknownError):
        await ACTIONS[method](bench.phone, soon(0.15))
    assert bench.http.calls == [method]


@every_action
@pytest.mark.parametrize(
    "reaction",
    [
        error("androidx.test.uiautomator.UiObjectNotFoundException"),
        error("androidx.test.uiautomator.StaleObjectException"),
        error("java.lang.IllegalStateException: UiAutomation not connected!"),
        error("method not found", code=-32601),
    ],
    ids=["not found", "stale", "not connected", "no such method"],
)
async def test_action_that_certainly_did_not_happen_is_refused(bench: Bench, method: str, reaction: Reaction) -> None:
    bench.http.script.extend([reaction] * 2)
    with pytest.raises(ActionRefusedError):
        await ACTIONS[method](bench.phone, soon())
    assert set(bench.http.calls) == {method}


async def test_text_goes_into_a_field_of_another_class_when_no_edit_text_has_the_focus(bench: Bench) -> None:
    selectors: list[dict[str, object]] = []

    async def keep(exchange: Exchange) -> None:
        selectors.append(json.loads(exchange.body)["params"][0])
        await (exchange.result(True) if len(selectors) == 2 else exchange.error("UiObjectNotFoundException"))

    bench.http.script.extend([keep, keep])
    assert await bench.phone.set_focused_text("x", deadline=soon())
    assert ["className" in selector for selector in selectors] == [True, False]


async def test_cancelled_action_leaves_the_phone_usable(bench: Bench) -> None:
    bench.http.script.append(hang)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bench.phone.tap(1, 2, deadline=soon()))
        await until(lambda: bench.http.calls)
        task.cancel()
    assert await bench.phone.tap(3, 4, deadline=soon())
    assert bench.http.calls == ["click", "click"]


async def test_action_after_an_idle_close_goes_over_a_new_connection_once(bench: Bench) -> None:
    async def answer_and_close(exchange: Exchange) -> None:
        await exchange.result(True)
        exchange.writer.close()

    bench.http.script.append(answer_and_close)
    await bench.phone.tap(1, 2, deadline=soon())
    assert await bench.phone.tap(3, 4, deadline=soon())
    assert bench.http.calls == ["click", "click"]
    assert bench.http.connections == 2


async def test_action_after_a_pause_is_sent_over_a_connection_that_just_answered(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_agent.driver.link.FRESH_S", 0.0)
    await bench.phone.tap(1, 2, deadline=soon())
    bench.http.pings.append(close)
    assert await bench.phone.tap(3, 4, deadline=soon())
    assert bench.http.calls == ["click", "click"]
    assert bench.http.connections == 2


async def test_action_is_not_sent_when_the_new_connection_answers_no_ping(bench: Bench) -> None:
    bench.phone._link.drop()
    bench.http.pings.append(close)
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.tap(1, 2, deadline=soon())
    assert caught.value.code == "AUTOMATION_DOWN"
    assert bench.http.calls == []


async def test_action_is_not_sent_to_a_port_that_belongs_to_another_phone(bench: Bench) -> None:
    bench.phone._link.drop()
    bench.adb.forwards[:] = [f"OTHER tcp:{bench.http.port} {REMOTE}"]
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.tap(1, 2, deadline=soon())
    assert caught.value.code == "LINK_DOWN"
    assert bench.http.calls == []


async def test_read_makes_a_port_of_its_own_when_its_old_one_belongs_to_another_phone(bench: Bench) -> None:
    bench.phone._link.drop()
    bench.adb.forwards[:] = [f"OTHER tcp:{bench.http.port} {REMOTE}"]
    bench.http.script.append(result("<hierarchy/>"))
    assert await bench.phone.dump(deadline=soon()) == "<hierarchy/>"
    assert f"{SERIAL} tcp:{bench.http.port} {REMOTE}" in bench.adb.forwards


@pytest.mark.parametrize(
    "reaction",
    [
        close,
        half_answer,
        error("java.lang.RuntimeException"),
        error("java.lang.IllegalStateException: UiAutomation not connected!"),
        lambda exchange: exchange.answer(b"oops", status="500 Internal Error"),
        result(None),
        result(""),
    ],
    ids=["closed", "cut", "exception", "not connected", "HTTP 500", "null", "empty"],
)
async def test_read_that_fails_once_is_tried_again(bench: Bench, reaction: Reaction) -> None:
    bench.http.script.extend([reaction, result("<hierarchy/>")])
    assert await bench.phone.dump(deadline=soon()) == "<hierarchy/>"


async def test_read_that_never_succeeds_ends_at_the_deadline_and_tells_what_was_tried(bench: Bench) -> None:
    bench.http.script.extend([close] * 100)
    deadline = soon(0.4)
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.dump(deadline=deadline)
    assert "LINK_BROKEN x" in caught.value.details["tried"]
    assert soon(0).at - deadline.at < 0.5


async def test_last_try_that_the_deadline_cuts_off_does_not_hide_the_reason(bench: Bench) -> None:
    bench.http.script.extend([*[error("java.lang.NullPointerException")] * 3, hang])
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.dump(deadline=soon(0.3))
    assert caught.value.code == "AUTOMATION_ERROR"
    assert "PHONE_SILENT x1" in caught.value.details["tried"]


async def test_read_that_fails_at_once_is_not_tried_in_a_busy_loop(bench: Bench) -> None:
    bench.http.script.extend([close] * 100)
    with pytest.raises(PhoneUnavailableError):
        await bench.phone.dump(deadline=soon(0.4))
    assert len(bench.http.calls) <= 6


async def test_hanging_read_ends_at_the_deadline_and_the_next_one_works(bench: Bench) -> None:
    bench.http.script.extend([hang, result("<hierarchy/>")])
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.dump(deadline=soon(0.15))
    assert caught.value.code == "PHONE_SILENT"
    assert await bench.phone.dump(deadline=soon()) == "<hierarchy/>"


async def test_calls_that_hang_twice_make_the_server_start_anew(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("droidfleet_agent.driver.link.HUNG_CALL_S", 0.05)
    stops: list[bytes] = []

    async def stop(exchange: Exchange) -> None:
        stops.append(exchange.head.split(b" ")[1])
        await exchange.answer(b"pong")

    bench.http.script.extend([hang, hang, result("<hierarchy/>")])
    for _ in range(2):
        with pytest.raises(PhoneUnavailableError):
            await bench.phone.dump(deadline=soon(0.15))
    bench.http.pings.extend([stop] * 4)
    await bench.phone.dump(deadline=soon())
    assert b"/stop" in stops


async def test_first_shell_that_the_phone_closes_is_tried_again(bench: Bench) -> None:
    bench.adb.refusals.append("closed")
    assert await bench.phone.display(deadline=soon()) == Display(1080, 1920)


async def test_output_that_was_cut_is_not_believed(bench: Bench) -> None:
    bench.adb.shells["dumpsys input_method"] = "mInputShown=true"
    whole_shell = bench.adb._shell
    cut = 0

    async def shell(command: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal cut
        cut += 1
        if cut == 1:
            writer.write(b"OKAYmInputShown=false")
            return
        await whole_shell(command, reader, writer)

    bench.adb._shell = shell  # type: ignore[method-assign]  # one phone that goes away in the middle
    assert await bench.phone.keyboard_shown(deadline=soon())


async def test_focus_falls_back_to_the_command_that_newer_androids_answer(bench: Bench) -> None:
    bench.adb.shells["dumpsys window displays"] = "  mCurrentFocus=Window{1 u0 com.shop/.Main}\n"
    assert await bench.phone.focus(deadline=soon()) == Focus("com.shop", "com.shop.Main")
    bench.adb.requests.clear()
    await bench.phone.focus(deadline=soon())
    assert len([request for request in bench.adb.requests if request.startswith("shell:")]) == 1


async def test_display_and_keyboards_are_asked_once_for_a_connection(bench: Bench) -> None:
    bench.adb.shells["ime list"] = "com.kb/.Service\n"
    for _ in range(3):
        await bench.phone.display(deadline=soon())
        assert await bench.phone.input_methods(deadline=soon()) == {"com.kb"}
    assert len([request for request in bench.adb.requests if request.startswith("shell:")]) == 2


async def test_close_removes_the_forwarded_port(bench: Bench) -> None:
    assert bench.adb.forwards
    await bench.phone.close()
    assert bench.adb.forwards == []


async def test_close_leaves_a_port_alone_that_now_belongs_to_another_phone(bench: Bench) -> None:
    stolen = f"OTHER tcp:{bench.http.port} {REMOTE}"
    bench.adb.forwards[:] = [stolen]
    await bench.phone.close()
    assert bench.adb.forwards == [stolen]


async def test_forwarded_port_that_a_killed_agent_left_is_used_again(bench: Bench) -> None:
    heir = AdbPhone(SERIAL, adb_host="127.0.0.1", adb_port=bench.adb.port)
    bench.http.script.append(result("<hierarchy/>"))
    await heir.dump(deadline=soon())
    assert len(bench.adb.forwards) == 1
    await heir.close()


async def test_two_callers_take_turns(bench: Bench) -> None:
    async def slowly(exchange: Exchange) -> None:
        await until(lambda: len(taken) == 2)
        await exchange.result(True)

    taken: list[str] = []

    async def tap(name: str) -> bool:
        taken.append(name)
        return await bench.phone.tap(1, 2, deadline=soon())

    bench.http.script.append(slowly)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(tap(name)) for name in ("first", "second")]
    assert all(task.result() for task in tasks)
    assert bench.http.connections == 1


async def test_caller_whose_turn_never_comes_is_told_that_nothing_was_sent(bench: Bench) -> None:
    bench.http.script.append(hang)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(bench.phone.tap(1, 2, deadline=soon()))
        await until(lambda: bench.http.calls)
        with pytest.raises(PhoneUnavailableError) as caught:
            await bench.phone.tap(3, 4, deadline=soon(0.1))
        running.cancel()
    assert caught.value.code == "PHONE_BUSY"
    assert bench.http.calls == ["click"]


@pytest.mark.parametrize(
    ("word", "code"),
    [("unauthorized", "DEVICE_UNAUTHORIZED"), ("offline", "DEVICE_OFFLINE"), ("absent", "DEVICE_NOT_FOUND")],
)
async def test_phone_that_adb_cannot_use_is_named_with_what_to_do(bench: Bench, word: str, code: str) -> None:
    await bench.phone.close()
    bench.adb.state = word
    with pytest.raises(PhoneUnavailableError) as caught:
        await bench.phone.dump(deadline=soon(0.2))
    assert caught.value.code == code
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", 'It\'s "ok" 50% $HOME\n\t', "你好 👩‍👩‍👧 ي", "\ud83d", "a\x00b"])
async def test_text_arrives_as_it_was_given(bench: Bench, text: str) -> None:
    bodies: list[bytes] = []

    async def keep(exchange: Exchange) -> None:
        bodies.append(exchange.body)
        await exchange.result(True)

    bench.http.script.append(keep)
    await bench.phone.set_focused_text(text, deadline=soon())
    assert bodies[0].isascii()
    assert json.loads(bodies[0])["params"][1] == text
