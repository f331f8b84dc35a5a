"""Shell commands: what they print, and what they do to the phone."""

from __future__ import annotations

import base64

import pytest

from droidfleet_agent.virtual_phone.wire.commands import COMMANDS

from .phones import SERVER, selector, wired

SHOP = "com.example.shop"
ADB_KEYBOARD = "com.github.uiautomator/.AdbKeyboard"


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("wm size", "Physical size: 1080x2400"),
        ("wm density", "Physical density: 420"),
        ("getprop ro.build.version.release", "14"),
        ("getprop nothing.at.all", ""),
        ("pm path com.example.shop", "package:"),
        ("pm list packages -3", "package:com.example.shop"),
        ("cmd package resolve-activity --brief com.example.shop", "com.example.shop/"),
        ("dumpsys battery", "  level: 85"),
        ("dumpsys power", "mWakefulness=Awake"),
        ("dumpsys display", "orientation=0"),
        ("dumpsys input_method", "mInputShown=false"),
        ("dumpsys window displays", "mCurrentFocus=Window{"),
        ("dumpsys activity activities", "mResumedActivity: ActivityRecord{"),
        ("dumpsys activity top", f"ACTIVITY {SHOP}/"),
        ("dumpsys package com.example.shop", "versionName="),
        ("dumpsys SurfaceFlinger --display-id", "Display 4619827259835644672 "),
        ("ps -A", SHOP),
        ("ifconfig wlan0", "inet addr:"),
        ("ip addr show dev wlan0", "inet 10.0.2.15/24"),
        ("settings get system screen_brightness", "128"),
        ("settings put global a b; settings get global a", "b"),
        ("settings get secure nothing", "null"),
        ("toybox md5sum /data/local/tmp/u2.jar", "  /data/local/tmp/u2.jar"),
        ("ls /data/local/tmp", "u2.jar"),
        ("echo a; echo b | grep b", "a\nb"),
        ("echo kept > /sdcard/x; cat /sdcard/x", "kept"),
        ("nohup echo here", "here"),
        ("sh -c 'echo inner'", "inner"),
        ("echo 'getprop ro.product.brand' | sh", "google"),
    ],
)
async def test_command_prints(line: str, printed: str) -> None:
    async with wired() as phone:
        out, err, status = await phone.shell(line)
        assert printed in out
        assert (err, status) == ("", 0)


@pytest.mark.parametrize(
    ("line", "reason", "status"),
    [
        ("nosuch --flag", "nosuch: inaccessible or not found", 127),
        ("dumpsys nosuch", "Can't find service: nosuch", 1),
        ("cat /nowhere", "No such file or directory", 1),
        ("ls /nowhere", "No such file or directory", 1),
        ("rm /nowhere", "No such file or directory", 1),
        ("pm nosuch", "Unknown command", 1),
        ("pm install /nowhere.apk", "Unable to open file", 1),
        ("echo x > /sdcard/x.apk; pm install /sdcard/x.apk", "INSTALL_PARSE_FAILED_NOT_APK", 1),
        ("am start -n com.none/.Main", "does not exist", 1),
        ("monkey -p com.none -c android.intent.category.LAUNCHER 1", "No activities found", 252),
        ("input tap x y", "Invalid arguments", 255),
        ("input text ü", "NullPointerException", 255),
        ("input keyevent NOSUCH", "Unknown key", 1),
        ("ime set com.none/.Keyboard", "cannot be selected", 1),
        ("kill 99999", "No such process", 1),
        ("echo 'open", "no closing quote", 2),
        ("sleep", "Needs 1 argument", 1),
    ],
)
async def test_command_fails_with_a_reason(line: str, reason: str, status: int) -> None:
    async with wired() as phone:
        _, err, got = await phone.shell(line)
        assert reason in err
        assert got == status


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"app_process"}))
@pytest.mark.parametrize("words", ["", "a", "-x -y", "dump /sdcard/a b", "get", "--", "0", "-n"])
async def test_no_command_crashes_on_odd_words(name: str, words: str) -> None:
    async with wired() as phone:
        _, err, status = await phone.shell(f"{name} {words}")
        assert "Error(" not in err
        assert 0 <= status <= 255


async def test_status_of_the_last_command_is_told_to_the_next() -> None:
    async with wired() as phone:
        assert (await phone.shell("nosuch; echo X4EXIT:$?"))[0] == "X4EXIT:127\n"


async def test_conditional_commands_run_or_not() -> None:
    async with wired() as phone:
        assert (await phone.shell("true && echo and; false && echo no; false || echo or"))[0] == "and\nor\n"


async def test_app_is_stopped_and_started() -> None:
    async with wired() as phone:
        await phone.shell(f"am force-stop {SHOP}")
        assert phone.phone.focus().package != SHOP
        await phone.shell(f"monkey -p {SHOP} -c android.intent.category.LAUNCHER 1")
        assert phone.phone.focus().package == SHOP


async def test_keyboard_of_the_client_types_only_while_it_is_selected() -> None:
    text = base64.b64encode("Tee ü".encode()).decode()
    broadcast = f"am broadcast -a ADB_KEYBOARD_INPUT_TEXT --es text {text}"
    async with wired() as phone:
        phone.phone.install_input_method(ADB_KEYBOARD)
        search = phone.phone.find(selector(resourceId=f"{SHOP}:id/search_bar"))[0]
        phone.phone.tap(*search.visible_bounds.center)
        assert "result=0" in (await phone.shell(broadcast))[0]
        await phone.shell(f"ime enable {ADB_KEYBOARD}; ime set {ADB_KEYBOARD}")
        assert 'result=-1, data="success"' in (await phone.shell(broadcast))[0]
        focused = phone.phone.focused_node()
        assert focused is not None
        assert focused.value == "Tee ü"


async def test_broadcast_of_broken_base64_fails() -> None:
    async with wired() as phone:
        phone.phone.install_input_method(ADB_KEYBOARD)
        await phone.shell(f"ime enable {ADB_KEYBOARD}; ime set {ADB_KEYBOARD}")
        out, _, _ = await phone.shell("am broadcast -a ADB_KEYBOARD_INPUT_TEXT --es text '%%%'")
        assert "result=0" in out


async def test_stock_dump_cannot_run_beside_the_automation_server() -> None:
    async with wired() as phone:
        assert "dumped to" in (await phone.shell("uiautomator dump /sdcard/d.xml"))[0]
        await phone.start_server()
        assert await phone.shell("uiautomator dump /sdcard/d.xml") == ("", "Killed\n", 137)


@pytest.mark.parametrize("line", ["pkill -f com.wetest.uia2.Main", "kill -9 $(pidof app_process)"])
async def test_automation_server_can_be_killed_by_name(line: str) -> None:
    async with wired() as phone:
        await phone.start_server()
        if "$(" in line:
            line = f"kill -9 {(await phone.shell('pidof app_process'))[0].strip()}"
        await phone.shell(line)
        assert not phone.wire.automation.running


async def test_closed_shell_kills_its_command() -> None:
    async with wired() as phone:
        number = phone.open("shell:sleep 3600; input keyevent HOME")
        phone.close(number)
        await phone.shell("true")
        assert phone.phone.effects.of("key") == ()


async def test_script_that_runs_itself_ends() -> None:
    async with wired() as phone:
        await phone.shell("echo 'cat /sdcard/x | sh' > /sdcard/x")
        _, err, status = await phone.shell("cat /sdcard/x | sh")
        assert "too many levels" in err
        assert status == 1


async def test_background_command_outlives_its_shell() -> None:
    async with wired() as phone:
        assert (await phone.shell(f"{SERVER} >/dev/null 2>&1 &"))[2] == 0
        await phone.until_true(lambda: phone.wire.automation.port == 9008)


async def test_shell_protocol_1_merges_output_and_errors() -> None:
    async with wired() as phone:
        data = await phone.read(phone.open("shell:echo out; nosuch"), until_closed=True)
        assert data == b"out\n/system/bin/sh: nosuch: inaccessible or not found\n"


async def test_shell_takes_its_latency() -> None:
    async with wired(latency="shell=60") as phone:
        await phone.shell("true")
        assert phone.clock.monotonic() == pytest.approx(0.06)
