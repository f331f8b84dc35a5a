"""The stock adbutils package on a virtual phone."""

from __future__ import annotations

from pathlib import Path

import adbutils
import pytest

from droidfleet_agent.virtual_phone.server import PhoneOptions
from support.adb import ConnectedPhones, RunningPhone

from .conftest import BENCH, WORKBENCH

pytestmark = pytest.mark.integration


def test_properties_are_the_identitys(adb_device: adbutils.AdbDevice) -> None:
    names = ("ro.serialno", "ro.product.brand", "ro.build.version.sdk")
    assert [adb_device.getprop(name) for name in names] == ["VP00000001", "google", "34"]


def test_battery_is_read(adb_device: adbutils.AdbDevice) -> None:
    assert adb_device.battery().level == 85


def test_window_size_follows_the_rotation(adb_device: adbutils.AdbDevice, phone: RunningPhone) -> None:
    assert tuple(adb_device.window_size()) == (1080, 2400)
    phone.do(lambda handle: handle.phone.set_orientation("left"))
    assert tuple(adb_device.window_size()) == (2400, 1080)
    assert adb_device.rotation() == 1


def test_screen_state_is_read(adb_device: adbutils.AdbDevice, phone: RunningPhone) -> None:
    assert adb_device.is_screen_on()
    phone.do(lambda handle: handle.phone.sleep())
    assert not adb_device.is_screen_on()


def test_foreground_app_is_read(adb_device: adbutils.AdbDevice) -> None:
    current = adb_device.app_current()
    assert (current.package, current.activity) == (BENCH, f"{BENCH}.MainActivity")


def test_app_info_has_the_scenarios_version(adb_device: adbutils.AdbDevice) -> None:
    info = adb_device.app_info(BENCH)
    assert info is not None
    assert (info.version_name, info.version_code) == ("2.3.4", 20304)


def test_unknown_app_has_no_info(adb_device: adbutils.AdbDevice) -> None:
    assert adb_device.app_info("com.example.missing") is None


def test_apps_start_and_stop(adb_device: adbutils.AdbDevice) -> None:
    adb_device.app_start("com.example.other")
    assert adb_device.app_current().package == "com.example.other"
    adb_device.app_stop("com.example.other")
    assert adb_device.app_current().package != "com.example.other"


def test_packages_are_listed(adb_device: adbutils.AdbDevice) -> None:
    assert {BENCH, "com.example.other"} <= set(adb_device.list_packages(["-3"]))
    assert "com.android.systemui" not in adb_device.list_packages(["-3"])


def test_files_are_pushed_listed_and_pulled(adb_device: adbutils.AdbDevice, tmp_path: Path) -> None:
    adb_device.sync.push(b"hello", "/sdcard/Download/note.txt")
    assert [entry.path for entry in adb_device.sync.iter_directory("/sdcard/Download")] == ["note.txt"]
    assert adb_device.sync.stat("/sdcard/Download/note.txt").size == 5
    adb_device.sync.pull("/sdcard/Download/note.txt", tmp_path / "note.txt")
    assert (tmp_path / "note.txt").read_bytes() == b"hello"


def test_push_over_the_quota_is_refused(adb_device: adbutils.AdbDevice) -> None:
    for number in range(6):
        adb_device.sync.push(bytes(10_000_000), f"/sdcard/{number}")
    with pytest.raises(adbutils.AdbError):
        adb_device.sync.push(bytes(10_000_000), "/sdcard/too-much")


def test_stock_dump_shows_the_app(adb_device: adbutils.AdbDevice) -> None:
    assert 'text="Tap me"' in adb_device.dump_hierarchy()


def test_screenshot_has_the_displays_size(adb_device: adbutils.AdbDevice) -> None:
    assert adb_device.screenshot().size == (1080, 2400)


def test_shell_version_2_tells_output_and_status_apart(adb_device: adbutils.AdbDevice) -> None:
    result = adb_device.shell2("echo out; nosuch", v2=True)
    assert (result.returncode, result.stdout) == (127, "out\n")
    assert "not found" in result.stderr


def test_forward_is_listed_and_removed(adb_device: adbutils.AdbDevice, phone: RunningPhone) -> None:
    port = adb_device.forward_port(9008)
    mine = [item for item in adb_device.forward_list() if item.serial == phone.address]
    assert [item.local for item in mine] == [f"tcp:{port}"]
    adb_device.forward_remove(f"tcp:{port}")
    assert [item for item in adb_device.forward_list() if item.serial == phone.address] == []


def test_each_phone_has_its_own_files(phones: ConnectedPhones) -> None:
    first, second = (adbutils.adb.device(phones(PhoneOptions(scenario=WORKBENCH)).address) for _ in range(2))
    first.sync.push(b"1", "/sdcard/only-here")
    assert [each.sync.exists("/sdcard/only-here") for each in (first, second)] == [True, False]
