"""The adb server's client against a scripted server: answers, refusals and silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from droidfleet_agent.driver import adb as adb_module
from droidfleet_agent.driver.adb import AdbServer, CommandUnknownError, Forward, phone_state
from droidfleet_agent.driver.adb_errors import AdbError, AdbProblem, device_error, refusal
from droidfleet_shared.bus.messages import PhoneState
from droidfleet_shared.clock import Deadline, SystemClock
from droidfleet_shared.errors import InvalidInputError
from support.scripted_phone import ScriptedAdb, block, scripted_adb
from support.waiting import until

SERIAL = "127.0.0.1:7101"


def soon(seconds: float = 5.0) -> Deadline:
    return SystemClock().deadline(seconds)


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedAdb]:
    async with scripted_adb(SERIAL, target_port=40_001) as server:
        yield server


@pytest.fixture
def adb(scripted: ScriptedAdb) -> AdbServer:
    return AdbServer("127.0.0.1", scripted.port)


async def problem_of(call: Awaitable[object]) -> AdbProblem:
    with pytest.raises(AdbError) as caught:
        await call
    return caught.value.problem


async def test_devices_are_listed_with_adbs_words(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.state = "unauthorized"
    assert await adb.devices(deadline=soon()) == {SERIAL: "unauthorized"}


async def test_phone_that_is_not_listed_is_absent(adb: AdbServer) -> None:
    assert await adb.state("other", deadline=soon()) == "absent"


async def test_shell_gives_what_was_printed_without_the_marker(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.shells["wm size"] = "Physical size: 1080x1920\n"
    assert await adb.shell(SERIAL, "wm size", deadline=soon()) == b"Physical size: 1080x1920\n"


async def test_shell_on_an_unknown_phone_is_not_found(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.state = "absent"
    assert await problem_of(adb.shell(SERIAL, "ls", deadline=soon())) is AdbProblem.DEVICE_NOT_FOUND


async def test_shell_that_the_phone_closes_is_refused(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.refusals.append("closed")
    assert await problem_of(adb.shell(SERIAL, "ls", deadline=soon())) is AdbProblem.STREAM_REFUSED


async def test_shell_that_prints_without_end_is_stopped(
    adb: AdbServer, scripted: ScriptedAdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adb_module, "MAX_OUTPUT_BYTES", 100)
    scripted.shells["cat"] = "x" * 1_000
    assert await problem_of(adb.shell(SERIAL, "cat", deadline=soon())) is AdbProblem.ADB_REFUSED


async def test_command_that_does_something_gives_what_it_printed(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.shells["am start"] = "Starting: Intent\n"
    assert await adb.run_once(SERIAL, "am start -n a/.B", deadline=soon()) == b"Starting: Intent\n"
    assert sum(request.startswith("shell:am start") for request in scripted.requests) == 1


@pytest.mark.parametrize("text", ["closed", "device offline", "no such service"])
async def test_command_that_the_phone_did_not_take_was_not_sent(
    adb: AdbServer, scripted: ScriptedAdb, text: str
) -> None:
    scripted.refusals.append(text)
    with pytest.raises(AdbError):
        await adb.run_once(SERIAL, "am start", deadline=soon())


@pytest.mark.parametrize("state", ["offline", "absent"])
async def test_command_that_was_closed_because_the_phone_went_away_may_have_run(
    adb: AdbServer, scripted: ScriptedAdb, state: str
) -> None:
    scripted.refusals.append("closed")
    scripted.state_after_refusal = state
    with pytest.raises(CommandUnknownError):
        await adb.run_once(SERIAL, "am start", deadline=soon())


async def test_command_whose_output_has_no_end_may_have_run() -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY")
        await reader.readuntil(b"shell:am start")
        writer.write(b"OKAYStarting: In")
        writer.close()

    async with server_that(cut) as port:
        with pytest.raises(CommandUnknownError):
            await AdbServer("127.0.0.1", port).run_once(SERIAL, "am start", deadline=soon())


async def test_command_that_was_never_answered_may_have_run() -> None:
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"OKAY")
        await reader.read()

    async with server_that(mute) as port:
        with pytest.raises(CommandUnknownError):
            await AdbServer("127.0.0.1", port).run_once(SERIAL, "am start", deadline=soon(0.2))


async def test_open_shell_keeps_the_tail_of_what_is_printed(
    adb: AdbServer, scripted: ScriptedAdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adb_module, "TAIL_BYTES", 9)
    scripted.shells["run"] = "a long story and its end"
    stream = await adb.open_shell(SERIAL, "run", deadline=soon())
    await until(lambda: stream.tail == "d its end")
    assert not stream.closed.is_set()
    stream.close()
    await asyncio.wait_for(stream.closed.wait(), 5)


async def test_open_shell_raises_the_phones_refusal(adb: AdbServer, scripted: ScriptedAdb) -> None:
    scripted.refusals.append("closed")
    assert await problem_of(adb.open_shell(SERIAL, "run", deadline=soon())) is AdbProblem.STREAM_REFUSED


async def test_forwarded_port_is_listed_and_removed(adb: AdbServer) -> None:
    assert await adb.forward(SERIAL, "tcp:9008", deadline=soon()) == 40_001
    forward = Forward(SERIAL, "tcp:40001", "tcp:9008")
    assert list(await adb.forwards(deadline=soon())) == [forward]
    await adb.remove_forward(forward, deadline=soon())
    assert list(await adb.forwards(deadline=soon())) == []


@asynccontextmanager
async def server_that(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (OSError, EOFError):
            pass  # The client is gone.
        finally:
            writer.close()

    async with await asyncio.start_server(guarded, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize(
    "call",
    [
        lambda adb, deadline: adb.devices(deadline=deadline),
        lambda adb, deadline: adb.shell(SERIAL, "ls", deadline=deadline),
        lambda adb, deadline: adb.open_shell(SERIAL, "ls", deadline=deadline),
        lambda adb, deadline: adb.forward(SERIAL, "tcp:9008", deadline=deadline),
        lambda adb, deadline: adb.push(SERIAL, b"x", "/x", mode=0o644, deadline=deadline),
        lambda adb, deadline: adb.start(deadline=deadline),
    ],
    ids=["devices", "shell", "open_shell", "forward", "push", "start"],
)
async def test_silent_server_ends_at_the_deadline(call: Callable[[AdbServer, Deadline], Awaitable[object]]) -> None:
    async with server_that(silent) as port:
        loop = asyncio.get_running_loop()
        start = loop.time()
        assert await problem_of(call(AdbServer("127.0.0.1", port), soon(0.1))) is AdbProblem.ADB_SILENT
        assert loop.time() - start < 4  # a machine that does other things wakes us late


@pytest.mark.parametrize("answer", [b"", b"OK", b"OKAYzzzz", b"OKAY0010abc", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
async def test_what_is_no_adb_server_is_told_so(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(answer)

    async with server_that(serve) as port:
        problem = await problem_of(AdbServer("127.0.0.1", port).devices(deadline=soon()))
        assert problem in {AdbProblem.ADB_UNREACHABLE, AdbProblem.ADB_REFUSED}


async def test_file_that_the_phone_does_not_take_gives_its_reason() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readexactly(int(await reader.readexactly(4), 16))
            writer.write(b"OKAY")
        await reader.readuntil(b"DONE")
        writer.write(b"FAIL\x0d\x00\x00\x00No space left")
        await reader.read()

    async with server_that(serve) as port:
        with pytest.raises(AdbError, match="No space left"):
            await AdbServer("127.0.0.1", port).push(SERIAL, b"x" * 50_000, "/x", mode=0o644, deadline=soon())


async def test_tracking_gives_every_list_and_survives_the_server() -> None:
    lists = ["one\tdevice\n", "one\tdevice\ntwo\toffline\n"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readexactly(int(await reader.readexactly(4), 16))
        if request == b"host:version":
            writer.write(b"OKAY" + block("0029"))
        else:
            writer.write(b"OKAY" + block(lists[0]) + block(lists[1]))  # and then it goes away

    seen = []
    async with server_that(serve) as port:
        async for devices in AdbServer("127.0.0.1", port).track():
            seen.append(devices)
            if len(seen) == 4:
                break
    assert seen == [{"one": "device"}, {"one": "device", "two": "offline"}] * 2


async def test_server_of_another_machine_is_not_started(kept_port: int) -> None:
    adb = AdbServer("127.0.0.2", kept_port)
    assert await problem_of(adb.start(deadline=soon())) is AdbProblem.ADB_UNREACHABLE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("device 'R58' not found", AdbProblem.DEVICE_NOT_FOUND),
        ("device offline", AdbProblem.DEVICE_OFFLINE),
        ("device still connecting", AdbProblem.DEVICE_OFFLINE),
        ("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", AdbProblem.DEVICE_UNAUTHORIZED),
        ("device still authorizing", AdbProblem.DEVICE_UNAUTHORIZED),
        ("closed", AdbProblem.STREAM_REFUSED),
        ("", AdbProblem.ADB_REFUSED),
        ("cannot bind to 127.0.0.1:1: Permission denied", AdbProblem.ADB_REFUSED),
    ],
)
def test_adbs_words_become_codes(text: str, problem: AdbProblem) -> None:
    assert refusal("R58", text).problem is problem


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("absent", AdbProblem.DEVICE_NOT_FOUND),
        ("offline", AdbProblem.DEVICE_OFFLINE),
        ("recovery", AdbProblem.DEVICE_OFFLINE),
        ("unauthorized", AdbProblem.DEVICE_UNAUTHORIZED),
    ],
)
def test_listed_states_become_codes_with_a_hint(word: str, problem: AdbProblem) -> None:
    error = device_error("R58", word)
    assert (error.problem, bool(error.hint)) == (problem, True)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("device", PhoneState.ONLINE),
        ("unauthorized", PhoneState.UNAUTHORIZED),
        ("authorizing", PhoneState.UNAUTHORIZED),
        ("offline", PhoneState.OFFLINE),
        ("no permissions (user in plugdev group)", PhoneState.OFFLINE),
    ],
)
def test_adbs_words_mean_states_of_a_fleet(word: str, state: PhoneState) -> None:
    assert phone_state(word) is state


def test_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_HOST", "10.0.0.7")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "5999")
    assert AdbServer().address == "10.0.0.7:5999"
    assert AdbServer("127.0.0.1", 6000).address == "127.0.0.1:6000"


@pytest.mark.parametrize("text", ["abc", "0", "65536", "-1", "5037 "])
def test_port_of_the_environment_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", text)
    with pytest.raises(InvalidInputError) as caught:
        AdbServer()
    assert caught.value.code == "BAD_ADB_PORT"
