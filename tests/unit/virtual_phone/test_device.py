"""The phone around the apps: starting and stopping, windows, keys, lock screen, rotation, timers, faults."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.identity import PhoneIdentity
from unit.virtual_phone.phones import APP, Hand, page_of, screen, selector, shipped

LAUNCHER = "com.google.android.apps.nexuslauncher"


def two_pages() -> Hand:
    return screen(
        {"type": "button", "text": "Next", "on_click": [{"go": "other"}]},
        {"type": "text", "text": "count {{n}}", "on_click": [{"add": {"n": 1}}]},
        variables={"n": 0},
        more={"other": page_of({"type": "text", "text": "Second"})},
    )


def test_back_returns_page_by_page_and_then_home() -> None:
    hand = two_pages()
    hand.tap(text="Next")
    fronts = [hand.phone.focus()]
    for _ in range(2):
        hand.phone.press_key("back")
        fronts.append(hand.phone.focus())

    assert [(front.package, front.activity.rpartition(".")[2]) for front in fronts] == [
        (APP, "Other"),
        (APP, "Main"),
        (LAUNCHER, "NexusLauncherActivity"),
    ]


def test_app_comes_back_where_it_was_left() -> None:
    hand = two_pages()
    hand.tap(text="Next")
    hand.phone.press_key("home")
    hand.phone.start_app(APP)

    assert hand.texts() == ["Second"]


def test_stopped_app_starts_anew_and_keeps_its_data() -> None:
    hand = two_pages()
    hand.tap(text="count 0")
    hand.tap(text="Next")
    hand.phone.stop_app(APP)
    assert hand.phone.focus().package == LAUNCHER
    hand.phone.start_app(APP)

    assert hand.texts() == ["Next", "count 1"]


def test_cleared_app_starts_with_its_first_data() -> None:
    hand = two_pages()
    hand.tap(text="count 0")
    hand.phone.clear_app(APP)
    hand.phone.start_app(APP)

    assert "count 0" in hand.texts()


@pytest.mark.parametrize("activity", [".Other", f"{APP}.Other"])
def test_app_starts_with_the_activity_that_is_asked_for(activity: str) -> None:
    hand = two_pages()

    assert hand.phone.start_app(APP, activity)
    assert hand.texts() == ["Second"]


@pytest.mark.parametrize(("package", "activity"), [("com.no.such", None), (APP, ".NoSuch")])
def test_unknown_app_or_activity_is_not_started(package: str, activity: str | None) -> None:
    hand = two_pages()

    assert not hand.phone.start_app(package, activity)
    assert hand.phone.focus().activity == f"{APP}.Main"


def test_unknown_app_is_neither_stopped_nor_cleared() -> None:
    hand = two_pages()

    assert not hand.phone.stop_app("com.no.such")
    assert not hand.phone.clear_app("com.no.such")


def test_packages_tell_system_apps_from_the_others() -> None:
    phone = shipped("shop").phone

    assert [one.package for one in phone.packages(third_party_only=True)] == ["com.example.shop"]
    assert "com.android.systemui" in [one.package for one in phone.packages()]


def test_installed_keyboard_is_a_package() -> None:
    phone = shipped("shop").phone
    phone.install_input_method("com.github.uiautomator/.AdbKeyboard")

    assert "com.github.uiautomator" in [one.package for one in phone.packages(third_party_only=True)]


def test_running_packages_follow_start_and_stop() -> None:
    hand = shipped("shop")
    assert "com.example.shop" in hand.phone.running_packages()
    hand.phone.stop_app("com.example.shop")

    assert "com.example.shop" not in hand.phone.running_packages()


def test_device_info_has_the_fields_of_the_server() -> None:
    assert shipped("shop").phone.device_info() == {
        "currentPackageName": "com.example.shop",
        "displayWidth": 1080,
        "displayHeight": 2400,
        "displayRotation": 0,
        "displaySizeDpX": 411,
        "displaySizeDpY": 914,
        "productName": "panther",
        "naturalOrientation": True,
        "screenOn": True,
        "sdkInt": 34,
    }


@pytest.mark.parametrize(
    ("orientation", "rotation", "size"),
    [
        ("left", 1, (2400, 1080)),
        ("right", 3, (2400, 1080)),
        ("natural", 0, (1080, 2400)),
        ("upsidedown", 2, (1080, 2400)),
    ],
)
def test_rotation_turns_the_display(orientation: str, rotation: int, size: tuple[int, int]) -> None:
    phone = shipped("shop").phone
    phone.set_orientation(orientation)  # type: ignore[arg-type]  # a parameter of the test

    assert (phone.rotation, phone.display_size) == (rotation, size)


def test_tap_hits_in_the_rotated_frame() -> None:
    hand = shipped("settings")
    hand.phone.set_orientation("left")
    hand.tap(text="Network & internet")

    assert hand.phone.focus().activity.endswith("NetworkDashboardActivity")


def test_sleeping_phone_ignores_touches_and_shows_its_lock_screen() -> None:
    hand = shipped("shop")
    hand.phone.sleep()
    hand.phone.tap(540, 300)

    assert not hand.phone.screen_on
    assert hand.phone.focus().package == "com.android.systemui"
    assert hand.happened() == []


def test_woken_phone_is_unlocked_by_a_swipe_up() -> None:
    hand = shipped("shop")
    hand.phone.sleep()
    hand.phone.wake()
    assert (hand.phone.locked, hand.nodes(text="Swipe up to open") != []) == (True, True)
    hand.phone.swipe([(540, 2000), (540, 800)], 50)

    assert hand.phone.focus().package == "com.example.shop"


@pytest.mark.parametrize("way", ["menu", "dismiss"])
def test_lock_screen_without_a_secret_can_be_dismissed(way: str) -> None:
    hand = shipped("shop")
    hand.phone.sleep()
    assert not hand.phone.dismiss_keyguard()
    hand.phone.wake()
    if way == "menu":
        hand.phone.press_key("menu")
    else:
        hand.phone.dismiss_keyguard()

    assert not hand.phone.locked


def test_power_key_turns_the_display_off_and_on() -> None:
    hand = shipped("shop")
    hand.phone.press_key("power")
    off = hand.phone.screen_on
    hand.phone.press_key("power")

    assert (off, hand.phone.screen_on) == (False, True)


@pytest.mark.parametrize("key", ["home", "recent", "back"])
def test_locked_phone_ignores_the_keys_of_apps(key: str) -> None:
    hand = shipped("shop")
    hand.phone.sleep()
    hand.phone.wake()
    hand.phone.press_key(key)

    assert hand.phone.locked


def test_unknown_key_is_refused() -> None:
    phone = shipped("shop").phone

    assert not phone.press_key("nonsense")
    assert not phone.press_key_code(9999)


@pytest.mark.parametrize("key", ["volume_up", "camera", "search", "up", "center"])
def test_key_without_a_use_here_is_taken_and_changes_nothing(key: str) -> None:
    hand = shipped("shop")
    before = hand.phone.dump()

    assert hand.phone.press_key(key)
    assert hand.phone.dump() == before


def test_shade_covers_the_app_until_back() -> None:
    hand = shipped("shop")
    hand.phone.open_notification()
    assert hand.phone.focus().package == "com.android.systemui"
    assert hand.nodes(text="Popular now") == []
    hand.phone.press_key("back")

    assert hand.phone.focus().package == "com.example.shop"


def test_swipe_from_the_top_edge_opens_the_shade_and_a_swipe_up_closes_it() -> None:
    hand = shipped("shop")
    hand.phone.swipe([(500, 10), (500, 1500)], 50)
    opened = hand.nodes(text="No notifications") != []
    hand.phone.swipe([(500, 2000), (500, 500)], 50)

    assert (opened, hand.phone.focus().package) == (True, "com.example.shop")


def test_quick_settings_tiles_can_be_switched() -> None:
    hand = shipped("shop")
    hand.phone.open_quick_settings()
    hand.tap(description="Bluetooth")

    assert hand.node(description="Bluetooth").checked


def test_locked_phone_has_no_shade() -> None:
    hand = shipped("shop")
    hand.phone.sleep()

    assert not hand.phone.open_notification()


def test_recent_apps_show_the_latest_first() -> None:
    hand = shipped("shop")
    hand.phone.press_key("recent")
    hand.tap(description="Harbour Goods")

    assert hand.phone.focus().package == "com.example.shop"


def test_window_changes_only_grow() -> None:
    hand = two_pages()
    seen = [hand.phone.window_changes]
    hand.tap(text="count 0")
    seen.append(hand.phone.window_changes)
    hand.tap(text="Next")
    seen.append(hand.phone.window_changes)
    hand.phone.press_key("back")
    seen.append(hand.phone.window_changes)

    assert seen[0] == seen[1] < seen[2] < seen[3]


def test_clock_in_the_status_bar_follows_the_time() -> None:
    hand = shipped("shop")
    hand.wait(61 * 60)

    assert hand.node(resourceId="com.android.systemui:id/clock").text == "01:01"


def test_battery_is_in_the_status_bar() -> None:
    hand = screen({"type": "text", "text": "A"}, identity=PhoneIdentity(battery_percent=7))

    assert hand.phone.battery_percent == 7
    assert hand.nodes(description="Battery 7 percent.")


def test_timer_of_a_closed_page_never_runs() -> None:
    page = {**page_of({"type": "text", "text": "S"}), "timers": [{"after_ms": 500, "do": [{"effect": "late"}]}]}
    hand = screen({"type": "button", "text": "Next", "on_click": [{"go": "other"}]}, more={"other": page})
    hand.tap(text="Next")
    hand.phone.press_key("back")
    hand.wait(1)

    assert hand.happened() == []


def test_repeating_timer_runs_once_for_each_look_however_late() -> None:
    hand = screen(
        {"type": "text", "text": "A"}, timers=[{"after_ms": 100, "every_ms": 100, "do": [{"effect": "beat"}]}]
    )
    hand.wait(0.1)
    hand.wait(5)
    hand.wait(0.1)

    assert len(hand.effects.of("beat")) == 3


def test_screens_that_open_each_other_end_at_a_bound() -> None:
    loop = {**page_of({"type": "text", "text": "S"}), "on_open": [{"go": "other"}]}
    hand = screen({"type": "button", "text": "Next", "on_click": [{"go": "other"}]}, more={"other": loop})
    hand.tap(text="Next")

    assert hand.texts() == ["S"]


def test_toast_stays_the_last_one_until_it_is_cleared() -> None:
    hand = screen({"type": "button", "text": "A", "on_click": [{"toast": "Saved"}]})
    hand.tap(text="A")
    hand.wait(600)
    stale = hand.phone.last_toast
    hand.phone.clear_toast()

    assert (stale, hand.phone.last_toast) == ("Saved", None)


def test_swallowed_taps_do_nothing_and_the_next_one_works() -> None:
    hand = two_pages()
    hand.phone.knobs.swallow_taps = 2
    for _ in range(3):
        hand.tap(text="count 0")

    assert "count 1" in hand.texts()


def test_moving_content_is_elsewhere_after_each_look_and_then_rests() -> None:
    hand = shipped("settings")
    hand.phone.knobs.moving_looks = 2
    hand.phone.knobs.moving_px = 50
    tops = []
    for _ in range(4):
        hand.phone.dump()
        tops.append(hand.node(text="Display").bounds.top)

    assert [later - tops[0] for later in tops] == [0, 50, 50, 50]


def test_moved_content_is_hit_where_it_now_is() -> None:
    hand = shipped("settings")
    old = hand.node(text="Display").visible_bounds.center
    hand.phone.knobs.moving_looks = 1
    hand.phone.knobs.moving_px = 200
    hand.phone.dump()
    hand.phone.tap(*old)

    assert not hand.phone.focus().activity.endswith("DisplaySettingsActivity")


def test_equal_seeds_and_calls_give_equal_phones() -> None:
    def run(seed: int) -> str:
        hand = screen({"type": "field", "hint": "F", "id": "f"}, seed=seed)
        hand.phone.knobs.lossy_set_texts = 1
        hand.enter("0123456789", text="F")
        return hand.phone.dump()

    assert run(1) == run(1)
    assert len({run(seed) for seed in range(5)}) > 1


def test_two_phones_of_one_scenario_share_nothing() -> None:
    first, second = shipped("settings"), shipped("settings")
    for hand in (first, second):
        hand.tap(text="Network & internet")
    first.tap(text="Wi-Fi")

    def state(hand: Hand) -> list[bool]:
        return [node.checked for node in hand.phone.find(selector(className="android.widget.Switch"))]

    assert state(first)[0] is not state(second)[0]
