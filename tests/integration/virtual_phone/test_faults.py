"""Every fault, as a client meets it: what the stock clients do is what field reports say of them."""

from __future__ import annotations

import gc
import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator

import adbutils
import pytest
import uiautomator2
from lxml import etree
from uiautomator2.exceptions import (
    AccessibilityServiceAlreadyRegisteredError,
    HTTPError,
    RPCUnknownError,
    UiObjectNotFoundError,
)

from droidfleet_agent.virtual_phone.server import PhoneOptions
from support.adb import AdbServer, ConnectedPhones, RunningPhone, wait_for

from .conftest import BENCH, WORKBENCH, fault

# The stock client forgets sockets on its way out of an error. They are collected within their own test.
pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.usefixtures("_forgotten_sockets"),
]


@pytest.fixture
def _forgotten_sockets() -> Iterator[None]:
    yield
    gc.collect()


class Calls:
    """JSON-RPC over a forwarded port, without the stock client's repeats."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self, method: str, *params: object) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            connection.request("POST", "/jsonrpc/0", body)
            return json.loads(connection.getresponse().read())["result"]
        finally:
            connection.close()


@pytest.fixture
def calls(device: uiautomator2.Device) -> Iterator[Calls]:
    port = device.adb_device.forward_port(9008)
    yield Calls(port)
    device.adb_device.forward_remove(f"tcp:{port}", raise_non_found=False)


@pytest.fixture
def tap_me(phone: RunningPhone) -> tuple[int, int]:
    return phone.do(lambda handle: handle.phone.find({"mask": 1, "text": "Tap me"})[0].visible_bounds.center)


def in_thread(act: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Runs ``act`` beside the test; the list gets what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


def tapped(phone: RunningPhone) -> int:
    return len(phone.effects.of("tapped"))


# -- what the stock client does (facts, section 11)


def test_hang_blocks_the_stock_client_past_its_own_timeout(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("deviceInfo", "hang"))
    call, raised = in_thread(lambda: device.jsonrpc.deviceInfo(http_timeout=0.5))
    call.join(timeout=2.0)
    assert call.is_alive()
    phone.do(lambda handle: handle.disconnect())
    call.join(timeout=30)
    assert isinstance(raised[0], http.client.RemoteDisconnected)


def test_drop_escapes_as_a_disconnect_and_the_next_call_works(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("deviceInfo", "drop"))
    with pytest.raises(http.client.RemoteDisconnected):
        _ = device.info
    assert device.info["screenOn"]


def test_cut_answer_escapes_as_broken_json(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("deviceInfo", "cut_answer"))
    with pytest.raises((json.JSONDecodeError, http.client.IncompleteRead)):
        _ = device.info


@pytest.mark.parametrize("kind", ["http_error", "not_connected", "dead_object"])
def test_stock_client_restarts_the_server_and_repeats(
    device: uiautomator2.Device, phone: RunningPhone, kind: str
) -> None:
    phone.faults.add(fault("deviceInfo", kind))
    assert device.info["screenOn"]
    assert [fired.fault.do for fired in phone.faults.fired] == [kind]


def test_offline_escapes_then_says_so_then_recovers(
    device: uiautomator2.Device, phone: RunningPhone, adb_server: AdbServer
) -> None:
    phone.faults.add(fault("deviceInfo", "offline", seconds=1.0))
    with pytest.raises(http.client.RemoteDisconnected):
        _ = device.info
    with pytest.raises((adbutils.AdbError, HTTPError)):
        _ = device.info
    adb_server.wait_state(phone.address, "device")
    assert device.info["screenOn"]


def test_stale_object_is_an_unknown_error_to_the_stock_client(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("objInfo", "stale"))
    with pytest.raises(RPCUnknownError, match="StaleObjectException"):
        _ = device(text="Tap me").info


def test_object_not_found_has_its_own_error(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("objInfo", "not_found"))
    with pytest.raises(UiObjectNotFoundError):
        _ = device(text="Tap me").info


def test_already_registered_fails_the_connect(phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, faults=[fault("server_start", "already_registered")]))
    with pytest.raises(AccessibilityServiceAlreadyRegisteredError):
        uiautomator2.connect(phone.address)


def test_refused_first_shell_stream_is_closed_to_the_client(phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, faults=[fault("shell_stream", "refuse")]))
    with pytest.raises(adbutils.AdbError, match="closed"):
        uiautomator2.connect(phone.address)
    assert uiautomator2.connect(phone.address).info["screenOn"]


@pytest.mark.parametrize("kind", ["cut", "repeat_attribute"])
def test_damaged_dump_is_no_xml_and_the_next_one_is(
    device: uiautomator2.Device, phone: RunningPhone, kind: str
) -> None:
    phone.faults.add(fault("dumpWindowHierarchy", kind))
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(device.dump_hierarchy().encode())
    assert len(etree.fromstring(device.dump_hierarchy().encode())) > 0


# -- what happens on the phone


@pytest.mark.parametrize("kind", ["drop", "kill_server"])
@pytest.mark.parametrize("after", [False, True])
def test_lost_answer_does_not_tell_whether_the_tap_happened(
    calls: Calls, phone: RunningPhone, tap_me: tuple[int, int], kind: str, after: bool
) -> None:
    phone.faults.add(fault("click", kind, after=after))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        calls("click", *tap_me)
    assert tapped(phone) == int(after)


def test_hang_after_the_action_has_done_it(calls: Calls, phone: RunningPhone, tap_me: tuple[int, int]) -> None:
    phone.faults.add(fault("click", "hang", after=True))
    call, _ = in_thread(lambda: calls("click", *tap_me))
    wait_for(lambda: tapped(phone) == 1, timeout_s=30, what="the tap to happen")
    assert call.is_alive()
    phone.do(lambda handle: handle.kill_server())
    call.join(timeout=30)


def test_killed_server_refuses_streams_until_it_is_started_again(
    device: uiautomator2.Device, calls: Calls, phone: RunningPhone
) -> None:
    phone.faults.add(fault("deviceInfo", "kill_server"))
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        calls("deviceInfo")
    assert not phone.handle.server_running
    assert device.info["screenOn"]


def test_false_is_answered_and_nothing_happens(calls: Calls, phone: RunningPhone, tap_me: tuple[int, int]) -> None:
    phone.faults.add(fault("click", "false"))
    assert calls("click", *tap_me) is False
    assert tapped(phone) == 0


def test_first_tap_after_a_page_change_is_swallowed_and_said_to_be_done(
    device: uiautomator2.Device, calls: Calls, phone: RunningPhone
) -> None:
    phone.faults.add(fault("first_tap", "swallow", times=None))
    device(text="Next page").click()  # the first tap ever counts as the first on its page
    device(text="Next page").click()
    order = [int(number) for number in device(text="Order").center()]
    assert [calls("click", *order), len(phone.effects.of("ordered"))] == [True, 0]
    assert [calls("click", *order), len(phone.effects.of("ordered"))] == [True, 1]


def test_moving_content_is_elsewhere_at_the_next_look(calls: Calls, phone: RunningPhone) -> None:
    def top(xml: object) -> int:
        node = etree.fromstring(str(xml).encode()).find(".//node[@text='Tap me']")
        assert node is not None
        return int(str(node.get("bounds")).split(",")[1].split("]")[0])

    phone.faults.add(fault("dumpWindowHierarchy", "move", pixels=50))
    looks = [top(calls("dumpWindowHierarchy", False, 50)) for _ in range(3)]
    assert looks[1] != looks[0]


def test_text_loses_one_character(calls: Calls, phone: RunningPhone) -> None:
    phone.faults.add(fault("setText", "lose_character"))
    field = {"mask": 0x200000, "resourceId": f"{BENCH}:id/name", "childOrSibling": [], "childOrSiblingSelector": []}
    assert calls("setText", field, "123456789") is True
    assert len(str(calls("getText", field))) == 8


def test_slow_call_takes_its_time(calls: Calls, phone: RunningPhone) -> None:
    phone.faults.add(fault("dumpWindowHierarchy", "slow", seconds=0.4))
    before = time.monotonic()
    calls("dumpWindowHierarchy", False, 50)
    assert time.monotonic() - before >= 0.4


def test_slow_phone_does_not_hold_up_another(phones: ConnectedPhones) -> None:
    slow, quick = (phones(PhoneOptions(scenario=WORKBENCH)) for _ in range(2))
    slow.faults.add(fault("shell", "hang", times=None))
    call, _ = in_thread(lambda: adbutils.adb.device(slow.address).shell("echo slow"))
    wait_for(lambda: slow.faults.fired, timeout_s=30, what="the slow phone to hang")
    assert adbutils.adb.device(quick.address).shell("echo quick") == "quick"
    assert call.is_alive()
    slow.do(lambda handle: handle.disconnect())
    call.join(timeout=30)


# -- shell and connection


def test_dropped_shell_ends_without_output(adb_device: adbutils.AdbDevice, phone: RunningPhone) -> None:
    phone.faults.add(fault("shell:echo", "drop"))
    assert adb_device.shell("echo lost") == ""
    assert adb_device.shell("echo found") == "found"


def test_shell_dropped_afterwards_was_carried_out(adb_device: adbutils.AdbDevice, phone: RunningPhone) -> None:
    phone.faults.add(fault("shell:input keyevent", "drop", after=True))
    adb_device.keyevent("HOME")
    assert len(phone.effects.of("key")) == 1


def test_refused_connection_is_told_by_adb(adb_server: AdbServer, phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, faults=[fault("connect", "refuse")]), connect=False)
    adb_server.run("connect", phone.address, check=False)
    adb_server.disconnect(phone.address)
    adb_server.connect(phone.address)
    assert [fired.call for fired in phone.faults.fired] == ["connect"]


def test_ping_fails_while_calls_work(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.faults.add(fault("ping", "http_error"))
    assert device.info["screenOn"]
    connection = http.client.HTTPConnection("127.0.0.1", device.adb_device.forward_port(9008), timeout=30)
    connection.request("GET", "/ping")
    assert connection.getresponse().status == 500
    connection.close()
