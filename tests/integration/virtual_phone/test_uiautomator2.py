"""The stock uiautomator2 client, unmodified, on a virtual phone."""

from __future__ import annotations

from pathlib import Path

import pytest
import uiautomator2
from lxml import etree
from uiautomator2.exceptions import RPCUnknownError, UiObjectNotFoundError

from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_agent.virtual_phone.wire.files import JAR_PATH
from support.adb import ConnectedPhones, RunningPhone, wait_for

from .conftest import BENCH, WORKBENCH

pytestmark = pytest.mark.integration

ADB_KEYBOARD = "com.github.uiautomator/.AdbKeyboard"


def test_info_describes_the_display(device: uiautomator2.Device) -> None:
    info = device.info
    assert (info["displayWidth"], info["displayHeight"], info["displayRotation"]) == (1080, 2400, 0)
    assert info["currentPackageName"] == BENCH


def test_device_info_is_the_identitys(device: uiautomator2.Device) -> None:
    assert device.device_info == {
        "serial": "VP00000001",
        "sdk": 34,
        "brand": "google",
        "model": "Pixel 7",
        "arch": "arm64-v8a",
        "version": 14,
    }


def test_dump_is_well_formed_and_has_several_windows(device: uiautomator2.Device) -> None:
    root = etree.fromstring(device.dump_hierarchy().encode())
    packages = {window.get("package") for window in root}
    assert {BENCH, "com.android.systemui"} <= packages


def test_dump_of_the_active_window_holds_one(device: uiautomator2.Device) -> None:
    root = etree.fromstring(device.dump_hierarchy(root_in_active=True).encode())
    assert [window.get("package") for window in root] == [BENCH]


def test_emoji_is_dots_in_the_dump_and_real_to_selectors(device: uiautomator2.Device) -> None:
    assert 'text="Smile .. please"' in device.dump_hierarchy()
    assert device(text="Smile 🙂 please").exists


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"text": "Tap me"}, True),
        ({"text": "tap me"}, False),
        ({"textContains": "ap m"}, True),
        ({"textStartsWith": "Tap"}, True),
        ({"textMatches": "T.p me"}, True),
        ({"textMatches": "Tap"}, False),
        ({"resourceId": f"{BENCH}:id/tap_me"}, True),
        ({"resourceIdMatches": ".*tap_me"}, True),
        ({"className": "android.widget.Button", "text": "Tap me"}, True),
        ({"classNameMatches": r"android\.widget\.But.*", "textStartsWith": "Tap"}, True),
        ({"text": "Tap me", "clickable": True, "enabled": True}, True),
        ({"text": "Tap me", "clickable": False}, False),
        ({"text": "Tap me", "packageName": BENCH}, True),
        ({"text": "Tap me", "packageName": "com.other"}, False),
        ({"resourceId": f"{BENCH}:id/lamp", "checkable": True, "checked": False}, True),
        ({"resourceId": f"{BENCH}:id/rows", "scrollable": True}, True),
    ],
)
def test_selector_fields_mean_what_they_say(
    device: uiautomator2.Device, selector: dict[str, object], matches: bool
) -> None:
    assert bool(device(**selector).exists) is matches


def test_child_and_instance_choose_a_row(device: uiautomator2.Device) -> None:
    rows = device(resourceId=f"{BENCH}:id/rows").child(resourceId=f"{BENCH}:id/row")
    assert [rows[0].get_text(), rows[2].get_text()] == ["Row 1", "Row 3"]


def test_sibling_is_found(device: uiautomator2.Device) -> None:
    assert device(resourceId=f"{BENCH}:id/tap_me").sibling(resourceId=f"{BENCH}:id/lamp").exists


def test_count_and_info_list_agree(device: uiautomator2.Device) -> None:
    rows = device(resourceId=f"{BENCH}:id/row")
    assert rows.count == len(rows.info_list()) > 2


def test_child_by_text_gives_an_object_to_use(device: uiautomator2.Device) -> None:
    row = device(resourceId=f"{BENCH}:id/rows").child_by_text("Row 2", resourceId=f"{BENCH}:id/row")
    assert row.info["text"] == "Row 2"


def test_selector_click_reaches_the_app_once(device: uiautomator2.Device, phone: RunningPhone) -> None:
    device(text="Tap me").click()
    assert len(phone.effects.of("tapped")) == 1


def test_xpath_click_reaches_the_app_once(device: uiautomator2.Device, phone: RunningPhone) -> None:
    device.xpath("Tap me").click(timeout=5)
    assert len(phone.effects.of("tapped")) == 1


@pytest.mark.parametrize(
    "query", ["//android.widget.Button[@text='Tap me']", f"@{BENCH}:id/tap_me", "^Tap.*", "%ap m%"]
)
def test_xpath_forms_find_the_button(device: uiautomator2.Device, query: str) -> None:
    assert device.xpath(query).exists


def test_long_click_is_a_long_press(device: uiautomator2.Device, phone: RunningPhone) -> None:
    device(text="Tap me").long_click(duration=0.8)
    assert [len(phone.effects.of(kind)) for kind in ("held", "tapped")] == [1, 0]


def test_double_click_is_two_taps(device: uiautomator2.Device, phone: RunningPhone) -> None:
    device.double_click(*device(text="Tap me").center())
    assert len(phone.effects.of("tapped")) == 2


def test_click_on_nothing_says_that_it_was_not_found(device: uiautomator2.Device) -> None:
    with pytest.raises(UiObjectNotFoundError):
        device(text="Not there").click(timeout=0.2)


def test_wait_sees_what_appears_later(phones: ConnectedPhones) -> None:
    device = uiautomator2.connect(phones(PhoneOptions(scenario=WORKBENCH, variant="popup")).address)
    assert device(text="Rate this app").wait(timeout=30)


def test_wait_gone_sees_what_goes(device: uiautomator2.Device) -> None:
    device(text="Next page").click()
    assert device(text="Next page").wait_gone(timeout=5)


def test_wait_ends_at_its_time(device: uiautomator2.Device) -> None:
    assert device(text="Never").wait(timeout=0.2) is False


def test_set_text_replaces_the_text(device: uiautomator2.Device) -> None:
    field = device(resourceId=f"{BENCH}:id/name")
    field.set_text("First")
    field.set_text("Zweiter Ü 🙂")
    assert field.get_text() == "Zweiter Ü 🙂"


def test_set_text_taps_the_field_first_unless_it_is_chosen_by_instance(
    device: uiautomator2.Device, phone: RunningPhone
) -> None:
    """What the real server does: its newer path taps, its older one does not."""
    device(resourceId=f"{BENCH}:id/name", instance=0).set_text("quiet")
    assert not device(focused=True).exists
    device(resourceId=f"{BENCH}:id/name").set_text("loud")
    assert device(focused=True).get_text() == "loud"
    assert [effect.kind for effect in phone.effects.of("tap", "set_text")] == ["set_text", "tap", "set_text"]


def test_set_text_to_nothing_clears(device: uiautomator2.Device) -> None:
    field = device(resourceId=f"{BENCH}:id/name")
    field.set_text("x")
    field.clear_text()
    assert field.get_text() == "Your name"


def test_send_keys_pastes_without_the_input_method(device: uiautomator2.Device) -> None:
    device(resourceId=f"{BENCH}:id/name").click()
    device.send_keys("pasted")
    assert device(resourceId=f"{BENCH}:id/name").get_text() == "pasted"


def test_send_keys_through_the_clients_own_input_method(device: uiautomator2.Device) -> None:
    device(resourceId=f"{BENCH}:id/name").click()
    device.set_input_ime()
    assert device.current_ime() == ADB_KEYBOARD
    device.send_keys("typed ü", clear=True)
    assert device(resourceId=f"{BENCH}:id/name").get_text() == "typed ü"


def test_clipboard_is_kept(device: uiautomator2.Device) -> None:
    device.clipboard = "Text"
    assert device.clipboard == "Text"


def test_toast_is_read_and_cleared(device: uiautomator2.Device) -> None:
    device(text="Tap me").click()
    assert device.toast.get_message(wait_timeout=3) == "Tapped"
    device.clear_toast()
    assert device.last_toast is None


def test_toast_show_is_unknown_to_the_server(device: uiautomator2.Device) -> None:
    with pytest.raises(RPCUnknownError, match="-32601"):
        device.toast.show("x")


def test_swipe_scrolls_the_list(device: uiautomator2.Device) -> None:
    rows = device(resourceId=f"{BENCH}:id/rows")
    left, top, right, bottom = rows.bounds()
    device.swipe((left + right) // 2, bottom - 20, (left + right) // 2, top + 20, duration=0.1)
    assert not device(text="Row 1").exists


def test_scroll_to_finds_a_far_row(device: uiautomator2.Device) -> None:
    assert device(scrollable=True).scroll.to(text="Row 28")
    assert device(text="Row 28").exists


def test_scroll_to_end_and_back(device: uiautomator2.Device) -> None:
    device(scrollable=True).scroll.toEnd()
    assert device(text="Row 30").exists
    device(scrollable=True).scroll.toBeginning()
    assert device(text="Row 1").exists


def test_back_leaves_the_page(device: uiautomator2.Device) -> None:
    device(text="Next page").click()
    device.press("back")
    assert device(text="Tap me").exists


def test_unknown_key_is_refused(device: uiautomator2.Device) -> None:
    assert device.press("nonsense") is False


def test_screenshot_is_a_picture_of_the_display(device: uiautomator2.Device) -> None:
    assert device.screenshot().size == (1080, 2400)


def test_element_screenshot_is_cut_out(device: uiautomator2.Device) -> None:
    left, top, right, bottom = device(text="Tap me").bounds()
    assert device(text="Tap me").screenshot().size == (right - left, bottom - top)


def test_app_starts_waits_and_stops(device: uiautomator2.Device) -> None:
    device.app_start("com.example.other", wait=True)
    assert device.app_current()["package"] == "com.example.other"
    assert "com.example.other" in device.app_list_running()
    device.app_stop("com.example.other")
    assert "com.example.other" not in device.app_list_running()


def test_app_starts_at_an_activity(device: uiautomator2.Device) -> None:
    device.app_start("com.example.other", ".OtherActivity")
    assert device.wait_activity("com.example.other.OtherActivity", timeout=3)


def test_app_clear_forgets_what_was_typed(device: uiautomator2.Device) -> None:
    device(resourceId=f"{BENCH}:id/name").set_text("remember")
    device.app_clear(BENCH)
    device.app_start(BENCH)
    assert device(resourceId=f"{BENCH}:id/name").get_text() == "Your name"


def test_orientation_turns_the_display(device: uiautomator2.Device) -> None:
    device.orientation = "left"
    assert (device.orientation, device.window_size()) == ("left", (2400, 1080))
    device.orientation = "natural"
    assert device.window_size() == (1080, 2400)


def test_screen_off_and_on(device: uiautomator2.Device) -> None:
    device.screen_off()
    assert not device.info["screenOn"]
    device.screen_on()
    assert device.info["screenOn"]


def test_under_the_notification_shade_the_app_is_still_current(device: uiautomator2.Device) -> None:
    assert device.open_notification()
    assert device.info["currentPackageName"] == "com.android.systemui"
    assert device.app_current()["package"] == BENCH


def test_watcher_closes_the_popup(phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, variant="popup"))
    device = uiautomator2.connect(phone.address)
    device.watcher.when("Not now").click()
    device.watcher.start(interval=0.2)
    try:
        wait_for(lambda: phone.effects.of("declined"), timeout_s=30, what="the watcher to close the pop-up")
    finally:
        device.watcher.stop()


def test_watch_context_waits_until_nothing_pops_up(phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, variant="popup"))
    device = uiautomator2.connect(phone.address)
    device(text="Rate this app").wait(timeout=30)
    with device.watch_context(autostart=False) as context:
        context.when("Not now").click()
        context.wait_stable(seconds=1.0, timeout=20)
    assert len(phone.effects.of("declined")) == 1


def test_session_notices_that_its_app_has_gone(device: uiautomator2.Device) -> None:
    session = device.session(BENCH)
    assert session.running()
    device.app_stop(BENCH)
    assert not session.running()


def test_push_and_pull(device: uiautomator2.Device, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    device.push(tmp_path / "a", "/sdcard/a")
    device.pull("/sdcard/a", str(tmp_path / "b"))
    assert (tmp_path / "b").read_text() == "content"


def test_client_pushes_the_jar_where_it_is_missing(phones: ConnectedPhones) -> None:
    phone = phones(PhoneOptions(scenario=WORKBENCH, with_jar=False))
    device = uiautomator2.connect(phone.address)
    assert device.adb_device.sync.stat(JAR_PATH).size == 3_708_402
    assert device.info["screenOn"]


def test_stopping_the_client_ends_the_server_on_the_phone(device: uiautomator2.Device, phone: RunningPhone) -> None:
    assert phone.handle.server_running
    device.stop_uiautomator()
    assert not phone.handle.server_running


def test_stopped_server_is_started_again_by_the_next_call(device: uiautomator2.Device, phone: RunningPhone) -> None:
    phone.do(lambda handle: handle.kill_server())
    assert device.info["screenOn"]
    assert phone.handle.server_running
