"""The automation server: its life, its answers, its errors, its time."""

from __future__ import annotations

import json

import pytest

from droidfleet_agent.virtual_phone.calls import RPC_CALLS
from droidfleet_agent.virtual_phone.faults import Fault
from droidfleet_agent.virtual_phone.wire.rpc_device import DEVICE_METHODS
from droidfleet_agent.virtual_phone.wire.rpc_objects import OBJECT_METHODS

from .phones import SERVER, selector, wired

DEVICE_INFO = b'{"method": "deviceInfo"}'
SEARCH = selector(resourceId="com.example.shop:id/search_bar")


def fault(**values: object) -> Fault:
    return Fault.model_validate(values)


def error_of(answer: dict[str, object]) -> dict[str, object]:
    error = answer["error"]
    assert isinstance(error, dict)
    return error


def test_every_call_that_faults_can_name_is_served_and_the_other_way_round() -> None:
    assert set(RPC_CALLS) == {*OBJECT_METHODS, *DEVICE_METHODS, "executeShellCommand"}


async def test_port_is_refused_until_the_server_runs_and_after_it_died() -> None:
    async with wired() as phone:
        assert await phone.read(phone.open("tcp:9008"), until_closed=True) == b""
        stream = await phone.start_server()
        assert await phone.request("GET", "/ping") == (200, b"pong")
        phone.close(stream)
        await phone.until_true(lambda: not phone.wire.automation.running)
        assert await phone.read(phone.open("tcp:9008"), until_closed=True) == b""


async def test_stop_answers_and_ends_the_server() -> None:
    async with wired() as phone:
        await phone.start_server()
        assert await phone.request("GET", "/stop") == (200, b"Finished!")
        await phone.until_true(lambda: not phone.wire.automation.running)


async def test_second_server_is_told_that_one_is_registered() -> None:
    async with wired() as phone:
        await phone.start_server()
        _, err, status = await phone.shell(SERVER)
        assert "already registered" in err
        assert status == 1
        assert phone.wire.automation.running


async def test_server_without_its_jar_does_not_start() -> None:
    async with wired(with_jar=False) as phone:
        _, err, status = await phone.shell(SERVER)
        assert "Could not find or load main class" in err
        assert status == 1


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nothing", 404), ("PUT", "/jsonrpc/0", 404), ("GET", "/jsonrpc/0", 404)]
)
async def test_other_paths_are_not_found(method: str, path: str, status: int) -> None:
    async with wired() as phone:
        await phone.start_server()
        assert (await phone.request(method, path))[0] == status


async def test_screenshot_path_gives_a_jpeg() -> None:
    async with wired() as phone:
        await phone.start_server()
        status, picture = await phone.request("GET", "/screenshot/0?scale=0.1&quality=50")
        assert (status, picture[:2]) == (200, b"\xff\xd8")


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", -32700), (b"[]", -32600), (b'{"method": 3}', -32600), (b'{"method": "nonsense"}', -32601)]
)
async def test_wrong_requests_get_json_rpc_errors(body: bytes, code: int) -> None:
    async with wired() as phone:
        await phone.start_server()
        status, content = await phone.request("POST", "/jsonrpc/0", body)
        assert status == 200
        assert json.loads(content)["error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("click", [1]),
        ("click", [True, False]),
        ("objInfo", []),
        ("objInfo", [3]),
        ("swipe", [1, 2, 3, 4, float("inf")]),
        ("swipePoints", [[1, "a"], 5]),
        ("setText", [SEARCH, 5]),
        ("pressKey", [None]),
        ("freezeRotation", ["yes"]),
        ("swipe", [SEARCH, "sideways", 5]),
    ],
)
async def test_wrong_parameters_are_refused_by_type(method: str, params: list[object]) -> None:
    async with wired() as phone:
        await phone.start_server()
        error = error_of(await phone.rpc(method, *params))
        assert error["code"] == -32602


async def test_broken_pattern_is_an_exception_of_java() -> None:
    async with wired() as phone:
        await phone.start_server()
        broken = {**selector(text="("), "mask": 0x4, "textMatches": "("}
        assert error_of(await phone.rpc("exist", broken))["code"] == -32001


async def test_missing_object_is_told_by_its_class_name() -> None:
    async with wired() as phone:
        await phone.start_server()
        error = error_of(await phone.rpc("objInfo", selector(text="Nowhere")))
        assert "uiautomator.UiObjectNotFoundException" in str(error["message"])


async def test_handle_of_an_object_that_went_is_stale() -> None:
    async with wired() as phone:
        await phone.start_server()
        handle = await phone.call("getUiObject", SEARCH)
        assert await phone.call("exist", handle) is True
        await phone.call("click", SEARCH)
        error = error_of(await phone.rpc("objInfo", handle))
        assert "StaleObjectException" in str(error["message"])


async def test_handle_is_forgotten_after_a_minute() -> None:
    async with wired() as phone:
        await phone.start_server()
        handle = await phone.call("getUiObject", SEARCH)
        phone.clock.advance(61)
        assert "NotFound" in str(error_of(await phone.rpc("objInfo", handle))["message"])


async def test_wait_for_exists_ends_at_its_time_with_false() -> None:
    async with wired() as phone:
        await phone.start_server()
        before = phone.clock.monotonic()
        assert await phone.call("waitForExists", selector(text="Nowhere"), 3_000) is False
        assert phone.clock.monotonic() - before == pytest.approx(3.0, abs=0.2)


async def test_wait_until_gone_sees_the_page_change() -> None:
    async with wired() as phone:
        await phone.start_server()
        await phone.call("click", SEARCH)
        assert await phone.call("waitUntilGone", SEARCH, 5_000) is True


async def test_latency_is_paid_before_the_answer() -> None:
    async with wired(latency="query=30,tap=20") as phone:
        await phone.start_server()
        before = phone.clock.monotonic()
        await phone.call("deviceInfo")
        await phone.call("click", 5, 5)
        assert phone.clock.monotonic() - before == pytest.approx(0.05)


async def test_long_press_takes_its_time_on_a_realistic_phone() -> None:
    async with wired(latency="realistic,tap=0,server_start=0,shell=0") as phone:
        await phone.start_server()
        before = phone.clock.monotonic()
        await phone.call("click", 5, 5, 700)
        assert phone.clock.monotonic() - before == pytest.approx(0.7)


async def test_drag_holds_before_it_moves_on_a_realistic_phone() -> None:
    async with wired(latency="realistic,tap=0,server_start=0,shell=0") as phone:
        await phone.start_server()
        before = phone.clock.monotonic()
        await phone.call("drag", 500, 500, 500, 900, 60)
        assert phone.clock.monotonic() - before == pytest.approx(0.8)


async def test_server_that_starts_slowly_refuses_meanwhile() -> None:
    async with wired(latency="server_start=900") as phone:
        await phone.start_server()
        assert phone.clock.monotonic() == pytest.approx(0.9)


async def test_finger_put_down_and_lifted_taps_and_a_dragged_one_swipes() -> None:
    async with wired() as phone:
        await phone.start_server()
        for action, x, y in [(0, 500, 2000), (1, 500, 2000), (0, 500, 2000), (2, 500, 1500), (1, 500, 1000)]:
            assert await phone.call("injectInputEvent", action, x, y, 0) is True
        assert [effect.kind for effect in phone.phone.effects.all()] == ["tap", "swipe"]


@pytest.mark.parametrize(("wanted", "rotation"), [("right", 3), ("upsidedown", 1), ("sideways", 1)])
async def test_phone_is_turned_to_its_sides_and_never_upside_down(wanted: str, rotation: int) -> None:
    async with wired() as phone:
        await phone.start_server()
        phone.phone.set_orientation("left")
        assert await phone.call("setOrientation", wanted) is None
        assert phone.phone.rotation == rotation


async def test_shell_command_by_rpc_gives_its_output() -> None:
    async with wired() as phone:
        await phone.start_server()
        assert await phone.call("executeShellCommand", "echo hello", 1_000) == "hello\n"


async def test_defect_of_the_model_is_answered_like_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_phone: object) -> object:
        raise ZeroDivisionError

    async with wired() as phone:
        await phone.start_server()
        monkeypatch.setattr(type(phone.phone), "device_info", broken)
        assert "ZeroDivisionError" in str(error_of(await phone.rpc("deviceInfo"))["data"])


@pytest.mark.parametrize("kind", ["drop", "kill_server"])
async def test_struck_call_is_closed_without_an_answer(kind: str) -> None:
    async with wired(faults=[fault(on="deviceInfo", do=kind)]) as phone:
        await phone.start_server()
        assert await phone.request("POST", "/jsonrpc/0", DEVICE_INFO) == (0, b"")


async def test_offline_fault_asks_the_network_for_its_seconds() -> None:
    async with wired(faults=[fault(on="deviceInfo", do="offline", seconds=9)]) as phone:
        await phone.start_server()
        phone.send_request("POST", "/jsonrpc/0", DEVICE_INFO)
        await phone.until_true(lambda: phone.offline_s == [9.0])
