"""Fingers hit what is on top, and nothing else happens."""

from __future__ import annotations

import pytest

from unit.virtual_phone.phones import APP, Hand, page_of, screen, selector, shipped

TOAST = [{"effect": "clicked"}]


def clicks(hand: Hand) -> int:
    return len(hand.effects.of("clicked"))


def test_label_in_a_clickable_row_clicks_the_row() -> None:
    hand = screen({"type": "row", "on_click": TOAST, "children": [{"type": "text", "text": "Label"}]})
    hand.tap(text="Label")

    assert clicks(hand) == 1


def test_disabled_button_swallows_the_tap_above_a_clickable_row() -> None:
    hand = screen(
        {
            "type": "row",
            "on_click": TOAST,
            "children": [{"type": "button", "text": "Off", "enabled_when": "never"}],
        },
        variables={"never": False},
    )
    hand.tap(text="Off")

    assert clicks(hand) == 0


def test_topmost_of_two_overlapping_nodes_takes_the_tap() -> None:
    hand = screen(
        {
            "type": "stack",
            "height": 200,
            "children": [
                {
                    "type": "button",
                    "text": "under",
                    "height": "fill",
                    "width": "fill",
                    "on_click": [{"effect": "under"}],
                },
                {"type": "button", "text": "over", "height": "fill", "width": "fill", "on_click": TOAST},
            ],
        }
    )
    hand.tap(text="over")

    assert (clicks(hand), len(hand.effects.of("under"))) == (1, 0)


def test_tap_beside_everything_does_nothing_and_is_logged() -> None:
    hand = screen({"type": "button", "text": "A", "on_click": TOAST})
    hand.phone.tap(1000, 2000)

    assert [effect.details["outcome"] for effect in hand.effects.of("tap")] == ["nothing"]


@pytest.mark.parametrize(("x", "y"), [(-1, 5), (5, -1), (1080, 5), (5, 2400)])
def test_tap_off_the_display_is_refused_and_not_logged(x: int, y: int) -> None:
    hand = shipped("shop")

    assert not hand.phone.tap(x, y)
    assert hand.happened(origin="outside") == []


@pytest.mark.parametrize(("duration", "kinds"), [(100, ["tap", "clicked"]), (600, ["long_press", "held"])])
def test_long_press_is_told_from_a_tap(duration: int, kinds: list[str]) -> None:
    hand = screen({"type": "button", "text": "A", "on_click": TOAST, "on_long_click": [{"effect": "held"}]})
    hand.phone.tap(*hand.node(text="A").visible_bounds.center, duration_ms=duration)

    assert [effect.kind for effect in hand.effects.all()] == kinds


def test_long_press_without_a_handler_clicks_as_on_android() -> None:
    hand = screen({"type": "button", "text": "A", "on_click": TOAST})
    hand.phone.tap(*hand.node(text="A").visible_bounds.center, duration_ms=600)

    assert clicks(hand) == 1


def dialog(**fields: object) -> dict[str, object]:
    inside = {"type": "column", "children": [{"type": "text", "text": "Sure?"}, {"type": "button", "text": "OK"}]}
    return {"ask": {"root": inside, **fields}}


OPENER = {"type": "button", "text": "Open", "on_click": [{"dialog": "ask"}]}


def test_modal_dialog_hides_the_screen_from_dumps() -> None:
    hand = screen(OPENER, dialogs=dialog())
    hand.tap(text="Open")

    assert hand.texts() == ["Sure?", "OK"]
    assert hand.nodes(text="Open") == []


def test_tap_outside_a_dialog_closes_it_and_reaches_nothing_below() -> None:
    hand = screen(
        OPENER,
        {"type": "button", "text": "Below", "on_click": TOAST, "width": "fill"},
        dialogs=dialog(position="bottom"),
    )
    below = hand.node(text="Below").visible_bounds.center
    hand.tap(text="Open")
    hand.phone.tap(*below)

    assert clicks(hand) == 0
    assert "Open" in hand.texts()


def test_dialog_that_is_not_cancelable_stays() -> None:
    hand = screen(OPENER, dialogs=dialog(cancelable=False))
    hand.tap(text="Open")
    hand.phone.tap(5, 300)
    hand.phone.press_key("back")

    assert hand.texts() == ["Sure?", "OK"]


def test_popup_that_is_not_modal_lets_touches_through_beside_it() -> None:
    hand = screen(
        OPENER, {"type": "button", "text": "Below", "on_click": TOAST}, dialogs=dialog(modal=False, position="bottom")
    )
    hand.tap(text="Open")
    hand.tap(text="Below")

    assert clicks(hand) == 1
    assert "Sure?" in [node.text for node in hand.phone.find(selector(packageName=APP))]


def test_keyboard_takes_taps_from_what_lies_below_it() -> None:
    hand = shipped("login")
    hand.enter("ada", resourceId="com.example.bank:id/username")
    button = hand.node(text="Sign in")
    keyboard = hand.phone.keyboard_bounds
    assert keyboard is not None
    assert keyboard.contains(*button.visible_bounds.center)
    hand.phone.tap(*button.visible_bounds.center)

    assert hand.effects.of("tap")[-1].package == "com.google.android.inputmethod.latin"


def test_screen_that_resizes_keeps_its_foot_above_the_keyboard() -> None:
    hand = shipped("chat")
    hand.tap(text="Mia Okafor")
    hand.tap(text="Message")
    keyboard = hand.phone.keyboard_bounds
    assert keyboard is not None

    assert hand.node(description="Send").visible_bounds.bottom <= keyboard.top


def rows(count: int = 40) -> Hand:
    return screen(
        {
            "type": "list",
            "items": "rows",
            "row": {"type": "text", "text": "row {{item}}", "width": "fill", "height": 60, "on_click": TOAST},
        },
        variables={"rows": list(range(count))},
    )


def first_row(hand: Hand) -> str:
    return hand.nodes(textContains="row ")[0].text


def moved(hand: Hand, way: list[tuple[float, float]], steps: int) -> int:
    """Pixels that the rows went up."""
    before = hand.node(text="row 12").bounds.top
    hand.phone.swipe(way, steps)
    return before - hand.node(text="row 12").bounds.top


def test_swipe_that_rests_at_its_end_scrolls_by_its_distance() -> None:
    assert moved(rows(), [(500, 1800), (500, 1500), (500, 1500)], 30) == 300


def test_swipe_that_is_slow_enough_scrolls_by_its_distance() -> None:
    assert moved(rows(), [(500, 1800), (500, 1700)], 200) == 100


def test_content_runs_on_the_further_the_faster_the_finger_was_lifted() -> None:
    slower, faster = (moved(rows(), [(500, 1800), (500, 1500)], steps) for steps in (60, 20))

    assert 300 < slower < faster < 1000


def test_rest_before_the_last_tenth_of_a_second_does_not_stop_a_fling() -> None:
    assert moved(rows(), [(500, 1800), (500, 1800), (500, 1500)], 20) > 300


def test_swipe_stops_at_the_end() -> None:
    hand = rows()
    for _ in range(20):
        hand.phone.swipe([(500, 2000), (500, 300)], 100)
    last = hand.phone.dump()
    hand.phone.swipe([(500, 2000), (500, 300)], 100)

    assert hand.phone.dump() == last
    assert "row 39" in last


def test_swipe_clicks_nothing() -> None:
    hand = rows()
    hand.phone.swipe([(500, 1800), (500, 1500)], 100)

    assert clicks(hand) == 0


def test_swipe_that_stays_in_place_is_a_tap() -> None:
    hand = rows()
    hand.phone.swipe([(500, 1000), (501, 1001)], 10)

    assert clicks(hand) == 1


def test_inner_scrollable_takes_its_direction_and_leaves_the_other() -> None:
    hand = shipped("shop")
    hand.phone.swipe([(900, 950), (200, 950), (200, 950)], 50)
    assert hand.nodes(text="Kitchen") == []

    before = hand.node(text="Categories").bounds.top
    hand.phone.swipe([(500, 950), (500, 650), (500, 650)], 50)

    assert before - hand.node(text="Categories").bounds.top == 300


def test_scroll_by_object_says_whether_more_follows() -> None:
    hand = rows(30)
    (container,) = hand.phone.find(selector(scrollable=True, packageName=APP))
    answers = [hand.phone.scroll(container, forward=True) for _ in range(3)]

    assert answers[-1] is False
    assert first_row(hand) != "row 0"


def test_scroll_to_the_end_and_back() -> None:
    hand = rows()
    (container,) = hand.phone.find(selector(scrollable=True, packageName=APP))
    hand.phone.scroll(container, forward=True, to_end=True)
    assert hand.nodes(text="row 39")
    hand.phone.scroll(container, forward=False, to_end=True)

    assert first_row(hand) == "row 0"


@pytest.mark.parametrize("how", ["tap", "drag"])
def test_slider_follows_the_finger(how: str) -> None:
    hand = screen({"type": "slider", "bind": "v", "description": "Volume"}, variables={"v": 0})
    bounds = hand.node(description="Volume").visible_bounds
    x, y = bounds.center
    if how == "tap":
        hand.phone.tap(x, y)
    else:
        hand.phone.drag((bounds.left + 5, y), (x, y), 50)

    assert hand.node(description="Volume").text == "50.0"


def test_switch_toggles_its_variable_and_tells_its_handler() -> None:
    hand = screen(
        {
            "type": "switch",
            "text": "Wi-Fi",
            "bind": "on",
            "on_change": [{"effect": "changed", "details": {"to": "{{value}}"}}],
        },
        variables={"on": False},
    )
    hand.tap(text="Wi-Fi")

    assert [effect.details for effect in hand.effects.of("changed")] == [{"to": True}]
    assert hand.node(text="Wi-Fi").checked


def test_unbound_checkbox_keeps_its_own_state_for_its_page() -> None:
    hand = screen({"type": "checkbox", "text": "Agree"}, {"type": "checkbox", "text": "Other"})
    hand.tap(text="Agree")

    assert (hand.node(text="Agree").checked, hand.node(text="Other").checked) == (True, False)


def test_navigation_bar_goes_back_home_and_to_the_overview() -> None:
    hand = screen({"type": "button", "text": "Next", "on_click": [{"go": "other"}]}, more={"other": page_of()})
    hand.tap(text="Next")
    hand.tap(description="Back")
    assert hand.phone.focus().activity == f"{APP}.Main"
    hand.tap(description="Home")
    assert hand.phone.focus().package == "com.google.android.apps.nexuslauncher"
    hand.tap(description="Overview")
    hand.tap(description="Test")

    assert hand.phone.focus().package == APP


def test_launcher_opens_the_app_by_its_icon() -> None:
    hand = shipped("shop")
    hand.phone.press_key("home")
    hand.tap(description="Harbour Goods")

    assert hand.phone.focus().package == "com.example.shop"
