"""The effect log holds what came in, once each, in order, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet_agent.virtual_phone.effects import Effect, EffectLog
from droidfleet_shared.clock import VirtualClock
from unit.virtual_phone.phones import APP, Hand, screen, selector, shipped

SECRET = "Sunflower-7"  # the shipped scenario's own password, nobody's


def test_one_tap_is_one_effect_with_what_it_hit() -> None:
    hand = shipped("settings")
    hand.tap(text="Display")
    (effect,) = hand.happened(origin="outside")

    assert (effect.kind, effect.package, effect.serial, effect.seq) == ("tap", "com.android.settings", "VP1", 1)
    assert effect.target is not None
    assert (effect.target.text, effect.target.class_name) == ("Display", "android.widget.LinearLayout")
    assert effect.details["outcome"] == "taken"


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda hand: hand.phone.press_key("home"), "key"),
        (lambda hand: hand.phone.press_key_code(66), "key"),
        (lambda hand: hand.phone.swipe([(500, 1800), (500, 1500)], 50), "swipe"),
        (lambda hand: hand.phone.drag((500, 1800), (500, 1500), 50), "drag"),
        (lambda hand: hand.phone.type_text("x"), "type_text"),
        (lambda hand: hand.phone.start_app(APP), "start_app"),
        (lambda hand: hand.phone.stop_app(APP), "stop_app"),
        (lambda hand: hand.phone.clear_app(APP), "clear_app"),
        (lambda hand: hand.phone.set_orientation("left"), "orientation"),
        (lambda hand: hand.phone.wake(), "wake"),
        (lambda hand: hand.phone.sleep(), "sleep"),
        (lambda hand: hand.phone.open_notification(), "open_notifications"),
        (lambda hand: hand.phone.open_quick_settings(), "open_quick_settings"),
        (lambda hand: hand.phone.set_clipboard("x"), "set_clipboard"),
        (lambda hand: hand.phone.dismiss_keyguard(), "dismiss_keyguard"),
        (lambda hand: hand.phone.freeze_rotation(True), "freeze_rotation"),
    ],
)
def test_every_action_from_outside_is_one_effect(call: object, kind: str) -> None:
    hand = screen({"type": "text", "text": "A"})
    assert callable(call)
    call(hand)

    assert [effect.kind for effect in hand.happened(origin="outside")] == [kind]


@pytest.mark.parametrize(
    "call",
    [
        lambda hand: hand.phone.dump(),
        lambda hand: hand.phone.dump(active_only=True),
        lambda hand: hand.phone.screenshot(media="JPEG"),
        lambda hand: hand.phone.find(selector(text="A")),
        lambda hand: hand.phone.focus(),
        lambda hand: hand.phone.device_info(),
        lambda hand: hand.phone.tick(),
        lambda hand: hand.phone.press_key("nonsense"),
    ],
)
def test_looking_leaves_no_effect(call: object) -> None:
    hand = screen({"type": "text", "text": "A"})
    assert callable(call)
    call(hand)

    assert hand.effects.all() == ()


def password_typed(how: str) -> Hand:
    hand = shipped("login")
    hand.tap(resourceId="com.example.bank:id/password")
    node = hand.phone.focused_node()
    assert node is not None
    if how == "set":
        hand.phone.set_text(node, SECRET)
    elif how == "type":
        hand.phone.type_text(SECRET)
    elif how == "paste":
        hand.phone.set_clipboard(SECRET)
        hand.phone.paste()
    elif how == "keys":
        for letter in "sun":
            hand.tap(description=letter)
    else:
        for code in (47, 49, 42):
            hand.phone.press_key_code(code)
    return hand


@pytest.mark.parametrize("how", ["set", "type", "paste"])
def test_password_never_enters_the_log(how: str) -> None:
    lines = "\n".join(effect.to_json() for effect in password_typed(how).effects.all())

    assert SECRET not in lines
    assert f'"length": {len(SECRET)}' in lines


@pytest.mark.parametrize("how", ["keys", "codes"])
def test_keys_of_a_password_are_logged_without_saying_which(how: str) -> None:
    effects = [json.loads(effect.to_json()) for effect in password_typed(how).effects.all()[1:]]

    assert len(effects) == 3
    assert (
        len(
            {
                json.dumps({key: value for key, value in effect.items() if key not in ("seq", "at")})
                for effect in effects
            }
        )
        == 1
    )


def test_text_of_other_fields_is_logged() -> None:
    hand = shipped("login")
    hand.enter("ada", resourceId="com.example.bank:id/username")

    assert hand.effects.of("set_text")[0].details == {"length": 3, "text": "ada"}


def test_swallowed_tap_is_logged_as_such() -> None:
    hand = shipped("settings")
    hand.phone.knobs.swallow_taps = 1
    hand.tap(text="Display")
    hand.tap(text="Display")

    assert [effect.details["outcome"] for effect in hand.effects.of("tap")] == ["swallowed", "taken"]


def test_file_gets_each_effect_as_one_line_at_once(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    log = EffectLog(VirtualClock(), serial="VP9", path=path)
    log.record("tap", package="a.b")
    log.record("order_placed", package="a.b", origin="app", details={"name": "李"})

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    log.close()
    log.close()

    assert [(line["serial"], line["seq"], line["kind"], line["origin"]) for line in lines] == [
        ("VP9", 1, "tap", "outside"),
        ("VP9", 2, "order_placed", "app"),
    ]
    assert lines[1]["details"] == {"name": "李"}


def test_two_phones_may_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    logs = [EffectLog(VirtualClock(), serial=serial, path=path) for serial in ("A", "B")]
    for _ in range(3):
        for log in logs:
            log.record("tap", package="a.b")
    for log in logs:
        log.close()

    assert [json.loads(line)["serial"] for line in path.read_text(encoding="utf-8").splitlines()] == ["A", "B"] * 3


def test_oldest_effects_are_dropped_and_counted() -> None:
    log = EffectLog(VirtualClock(), capacity=2)
    for kind in ("a", "b", "c"):
        log.record(kind, package="a.b")

    assert ([effect.kind for effect in log.all()], log.dropped) == (["b", "c"], 1)


def test_listener_hears_each_further_effect() -> None:
    log = EffectLog(VirtualClock())
    heard: list[Effect] = []
    log.record("before", package="a.b")
    log.subscribe(heard.append)
    log.record("after", package="a.b")

    assert [effect.kind for effect in heard] == ["after"]


def test_effect_bears_the_time_of_the_clock() -> None:
    hand = shipped("shop")
    hand.wait(90)
    hand.phone.press_key("home")

    assert hand.effects.all()[-1].at == hand.clock.now()
