"""The real adb command line on a virtual phone."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from droidfleet_agent.virtual_phone.server import PhoneOptions
from support.adb import AdbServer, ConnectedPhones, RunningPhone, wait_for

from .conftest import WORKBENCH

pytestmark = pytest.mark.integration


def run(adb: AdbServer, phone: RunningPhone, *arguments: str, stdin: bytes = b"") -> str:
    return adb.run("-s", phone.address, *arguments, stdin=stdin)


def status(adb: AdbServer, phone: RunningPhone, line: str) -> int:
    command = [adb.executable, "-P", str(adb.port), "-s", phone.address, "shell", line]
    return subprocess.run(command, env=adb.environment, capture_output=True, check=False, timeout=20).returncode


def test_phone_is_listed_with_its_model(adb_server: AdbServer, phone: RunningPhone) -> None:
    line = next(line for line in adb_server.run("devices", "-l").splitlines() if phone.address in line)
    assert "device product:panther model:Pixel_7 device:panther" in line


@pytest.mark.parametrize(
    ("line", "code"), [("true", 0), ("false", 1), ("nosuch", 127), ("false || true", 0), ("true && false", 1)]
)
def test_shell_gives_the_exit_status(adb_server: AdbServer, phone: RunningPhone, line: str, code: int) -> None:
    assert status(adb_server, phone, line) == code


def test_unknown_command_is_not_found(adb_server: AdbServer, phone: RunningPhone) -> None:
    assert "nosuch: inaccessible or not found" in adb_server.run("-s", phone.address, "shell", "nosuch", check=False)


@pytest.mark.parametrize(
    "script", [b"getprop ro.product.model\nexit\n", b"getprop ro.product.model\n", b"getprop ro.product.model"]
)
def test_shell_runs_a_script_from_its_input(adb_server: AdbServer, phone: RunningPhone, script: bytes) -> None:
    assert run(adb_server, phone, "shell", stdin=script) == "Pixel 7\n"


def test_file_goes_there_and_back(adb_server: AdbServer, phone: RunningPhone, tmp_path: Path) -> None:
    source, back = tmp_path / "a.bin", tmp_path / "b.bin"
    source.write_bytes(bytes(range(256)) * 3_000)
    run(adb_server, phone, "push", str(source), "/sdcard/a.bin")
    run(adb_server, phone, "pull", "/sdcard/a.bin", str(back))
    assert back.read_bytes() == source.read_bytes()


def test_screenshot_is_a_png_of_the_display(adb_server: AdbServer, phone: RunningPhone) -> None:
    picture = adb_server.run_bytes("-s", phone.address, "exec-out", "screencap -p")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert (int.from_bytes(picture[16:20]), int.from_bytes(picture[20:24])) == (1080, 2400)


def test_stock_dump_is_written_to_a_file(adb_server: AdbServer, phone: RunningPhone) -> None:
    assert "dumped to" in run(adb_server, phone, "shell", "uiautomator dump /sdcard/d.xml")
    assert "Tap me" in run(adb_server, phone, "shell", "cat /sdcard/d.xml")


def test_input_tap_reaches_the_app(adb_server: AdbServer, phone: RunningPhone) -> None:
    x, y = phone.do(lambda handle: handle.phone.find({"mask": 1, "text": "Tap me"})[0].visible_bounds.center)
    run(adb_server, phone, "shell", f"input tap {x} {y}")
    assert len(phone.effects.of("tapped")) == 1


def test_forwarded_port_is_refused_while_the_automation_server_is_down(
    adb_server: AdbServer, phone: RunningPhone
) -> None:
    port = int(run(adb_server, phone, "forward", "tcp:0", "tcp:9008"))
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        assert connection.recv(1) == b""


def test_unauthorized_phone_shows_as_such_until_it_is_allowed(adb_server: AdbServer, phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, authorized=False), connect=False)
    assert "failed to authenticate" in adb_server.run("connect", phone.address, check=False)
    assert adb_server.states()[phone.address] == "unauthorized"
    phone.do(lambda handle: handle.authorize())
    adb_server.wait_state(phone.address, "device")


def test_phone_that_goes_offline_comes_back_by_itself(adb_server: AdbServer, phone: RunningPhone) -> None:
    phone.do(lambda handle: handle.go_offline(1.0))
    adb_server.wait_state(phone.address, "offline")
    adb_server.wait_state(phone.address, "device")
    assert run(adb_server, phone, "shell", "echo back") == "back\n"


def test_phone_survives_its_adb_server_being_killed(adb_server: AdbServer, phone: RunningPhone) -> None:
    adb_server.kill()
    adb_server.start()
    adb_server.connect(phone.address)
    assert run(adb_server, phone, "shell", "echo alive") == "alive\n"


def test_two_phones_never_mix(adb_server: AdbServer, phones: ConnectedPhones) -> None:
    first, second = (phones(PhoneOptions(scenario=WORKBENCH)) for _ in range(2))
    for number in range(20):
        run(adb_server, first if number % 2 else second, "shell", "input keyevent HOME")
    assert [len(each.effects.of("key")) for each in (first, second)] == [10, 10]


def test_a_shell_command_ends_with_its_stream(adb_server: AdbServer, phone: RunningPhone) -> None:
    command = [adb_server.executable, "-P", str(adb_server.port), "-s", phone.address, "shell"]
    server = subprocess.Popen(
        [*command, "CLASSPATH=/data/local/tmp/u2.jar app_process / com.wetest.uia2.Main -p 9008"],
        env=adb_server.environment,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.PIPE,
    )
    try:
        wait_for(lambda: phone.handle.server_running, timeout_s=30, what="the automation server to start")
    finally:
        server.kill()
        server.communicate()
    wait_for(lambda: not phone.handle.server_running, timeout_s=30, what="the automation server to end")
