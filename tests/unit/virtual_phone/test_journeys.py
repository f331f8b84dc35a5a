"""Each shipped scenario can be walked through as a person would."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.scenario.loader import shipped_scenarios
from unit.virtual_phone.phones import Hand, selector, shipped

SHOP = "com.example.shop:id/"
BANK = "com.example.bank:id/"


def business(hand: Hand) -> list[str]:
    return [effect.kind for effect in hand.happened() if effect.kind != "toast"]


def order_a_tea_pot(hand: Hand) -> None:
    hand.tap(resourceId=SHOP + "search_bar")
    hand.enter("tea pot", resourceId=SHOP + "search_src_text")
    hand.phone.press_key("enter")
    hand.tap(text="Ceramic tea pot 0.8 l")
    hand.tap(description="Increase quantity")
    hand.tap(text="Add to cart")
    hand.tap(text="View cart")
    hand.tap(text="Proceed to checkout")
    for field, text in (("full_name", "Ada 李"), ("street", "Main St 1"), ("postcode", "89073"), ("city", "Ulm")):
        hand.enter(text, resourceId=SHOP + field)
    hand.phone.press_key_code(111)
    hand.tap(text="Express, tomorrow, $4.90")
    hand.tap(text="I accept the terms of sale")
    hand.tap(text="Place order")


def test_shopping_ends_with_one_order_and_its_details() -> None:
    hand = shipped("shop")
    order_a_tea_pot(hand)

    assert business(hand) == ["searched", "added_to_cart", "order_placed"]
    assert hand.effects.of("order_placed")[0].details == {
        "order": "HG-2026-1",
        "name": "Ada 李",
        "city": "Ulm",
        "country": "United Kingdom",
        "delivery": "express",
        "items": [{"sku": "KIT-201", "title": "Ceramic tea pot 0.8 l", "price": 3490, "quantity": 2}],
    }
    assert "Thank you, Ada 李!" in hand.texts()


def test_back_stack_is_empty_after_an_order() -> None:
    hand = shipped("shop")
    order_a_tea_pot(hand)
    hand.phone.press_key("back")

    assert hand.phone.focus().package == "com.google.android.apps.nexuslauncher"


def test_order_waits_for_address_and_terms() -> None:
    hand = shipped("shop")
    hand.tap(text="Ceramic tea pot 0.8 l")
    hand.tap(text="Add to cart")
    hand.tap(text="View cart")
    hand.tap(text="Proceed to checkout")
    hand.tap(text="Place order")

    assert business(hand) == ["added_to_cart"]
    assert not hand.node(text="Place order").enabled


def test_article_is_removed_from_the_cart_after_a_question() -> None:
    hand = shipped("shop")
    hand.tap(text="Ceramic tea pot 0.8 l")
    hand.tap(text="Add to cart")
    hand.tap(text="View cart")
    hand.tap(text="Delete")
    hand.tap(resourceId="android:id/button1")

    assert "Your cart is empty" in hand.texts()
    assert "0 items" in hand.texts()


def favourites(hand: Hand) -> list[str]:
    return [node.text for node in hand.nodes(resourceId=SHOP + "product_title")]


def test_favourite_is_moved_by_its_handle_to_the_place_of_another() -> None:
    hand = shipped("shop")
    hand.tap(description="Favourites")
    first, *others = favourites(hand)
    handle = hand.node(description=f"Reorder {first}").visible_bounds.center
    assert hand.phone.drag(handle, hand.node(text=others[2]).visible_bounds.center, 50)

    assert favourites(hand) == [*others[:3], first, others[3]]
    assert [effect.details for effect in hand.effects.of("favourite_moved")] == [{"sku": "KIT-203", "from": 0, "to": 3}]


@pytest.mark.parametrize("how", ["a swipe", "a drag beside the handle", "a drag beside the list"])
def test_favourites_stay_as_they_are_after(how: str) -> None:
    hand = shipped("shop")
    hand.tap(description="Favourites")
    before = favourites(hand)
    handle = hand.node(description=f"Reorder {before[0]}").visible_bounds.center
    label, other = (hand.node(text=before[at]).visible_bounds.center for at in (0, 2))
    match how:
        case "a swipe":
            hand.phone.swipe([handle, other], 50)
        case "a drag beside the handle":
            hand.phone.drag(label, other, 50)
        case _:
            hand.phone.drag(handle, hand.node(text="Favourites").visible_bounds.center, 50)

    assert favourites(hand) == before
    assert business(hand) == []


def test_country_is_chosen_in_the_list_that_its_field_opens() -> None:
    hand = shipped("shop")
    hand.tap(text="Ceramic tea pot 0.8 l")
    hand.tap(text="Add to cart")
    hand.tap(text="View cart")
    hand.tap(text="Proceed to checkout")
    hand.tap(text="United Kingdom")
    assert hand.nodes(text="Place order") == []
    hand.tap(text="Bolivia")

    assert hand.node(resourceId="android:id/text1").text == "Bolivia"
    assert hand.nodes(text="Place order")


def test_twin_variant_has_two_equal_buttons_on_one_screen() -> None:
    hand = shipped("shop", "twin")
    hand.tap(text="Ceramic tea pot 0.8 l")
    twins = hand.nodes(text="Add to cart")

    assert len(twins) == 2
    assert {twin.resource_id for twin in twins} == {SHOP + "add_to_cart"}


def test_twin_is_only_in_its_variant() -> None:
    hand = shipped("shop")
    hand.tap(text="Ceramic tea pot 0.8 l")

    assert len(hand.nodes(text="Add to cart")) == 1


def test_promotion_opens_by_itself_and_is_declined() -> None:
    hand = shipped("shop", "promo")
    hand.wait(0.7)
    assert hand.nodes(text="No thanks") == []
    hand.wait(0.2)
    hand.tap(text="No thanks")

    assert business(hand) == []
    assert "Popular now" in hand.texts()


def test_slow_variant_shows_a_spinner_before_the_results() -> None:
    hand = shipped("shop", "slow")
    hand.tap(resourceId=SHOP + "search_bar")
    hand.tap(text="usb-c cable")
    assert hand.nodes(description="Loading")
    assert hand.nodes(text="USB-C cable 2 m") == []
    hand.wait(1.6)

    assert hand.nodes(text="USB-C cable 2 m")


def test_sold_out_variant_disables_the_button() -> None:
    hand = shipped("shop", "sold_out")
    hand.tap(text="Ceramic tea pot 0.8 l")
    hand.tap(text="Add to cart")

    assert business(hand) == []


def test_sign_in_waits_for_both_fields() -> None:
    hand = shipped("login")
    hand.enter("ada", resourceId=BANK + "username")

    assert not hand.node(text="Sign in").enabled


def sign_in(hand: Hand, password: str) -> None:
    hand.enter("ada", resourceId=BANK + "username")
    hand.enter(password, resourceId=BANK + "password")
    hand.phone.press_key_code(111)
    hand.tap(text="Sign in")


def test_right_password_signs_in_once() -> None:
    hand = shipped("login")
    sign_in(hand, "Sunflower-7")

    assert business(hand) == ["signed_in"]
    assert "人民币账户" in hand.texts()


def test_wrong_password_says_so_and_empties_the_field() -> None:
    hand = shipped("login")
    sign_in(hand, "wrong")

    assert "User name or password is wrong. Attempt 1 of 5." in hand.texts()
    assert hand.node(resourceId=BANK + "password").value == ""
    assert business(hand) == ["sign_in_refused"]


def test_slow_sign_in_shows_a_spinner() -> None:
    hand = shipped("login", "slow")
    sign_in(hand, "Sunflower-7")
    assert hand.nodes(description="Signing in")
    hand.wait(2.1)

    assert business(hand) == ["signed_in"]


def test_locked_account_refuses_the_right_password() -> None:
    hand = shipped("login", "locked")
    sign_in(hand, "Sunflower-7")

    assert "Your account is locked. Call us." in hand.texts()


@pytest.mark.parametrize(("code", "done"), [("428190", ["signed_in"]), ("000000", [])])
def test_one_time_code_is_asked_for_and_checked(code: str, done: list[str]) -> None:
    hand = shipped("login", "code")
    sign_in(hand, "Sunflower-7")
    focused = hand.phone.focused_node()
    assert focused is not None
    hand.phone.set_text(focused, code)
    hand.tap(text="Confirm")

    assert business(hand) == done


def open_mia(hand: Hand) -> None:
    hand.tap(text="Mia Okafor")
    hand.tap(text="Message")


def test_message_is_sent_once_with_emoji_and_line_breaks() -> None:
    hand = shipped("chat")
    open_mia(hand)
    text = 'On my way 🚆\n5 min, 50 % "late"'
    assert hand.phone.type_text(text)
    hand.tap(description="Send")

    assert [effect.details for effect in hand.effects.of("message_sent")] == [{"to": "Mia Okafor", "text": text}]
    assert hand.nodes(text=text)


def test_send_does_nothing_while_the_message_is_empty() -> None:
    hand = shipped("chat")
    hand.tap(text="Mia Okafor")
    hand.tap(description="Send")

    assert business(hand) == []


def test_other_person_answers_after_a_while() -> None:
    hand = shipped("chat", "typing")
    open_mia(hand)
    hand.phone.type_text("ok")
    hand.tap(description="Send")
    assert hand.nodes(textContains="Got it") == []
    hand.wait(1.3)

    assert hand.nodes(textContains="Got it")


def test_offline_message_stays_in_the_field() -> None:
    hand = shipped("chat", "offline")
    open_mia(hand)
    hand.phone.type_text("ok")
    hand.tap(description="Send")

    assert business(hand) == []
    assert hand.phone.last_toast == "No connection"


def test_chats_are_filtered_by_name() -> None:
    hand = shipped("chat")
    hand.tap(text="Search chats")
    hand.phone.type_text("李")

    assert hand.nodes(text="李雷")
    assert hand.nodes(text="Mia Okafor") == []


def test_newest_message_is_in_sight_when_a_chat_opens() -> None:
    hand = shipped("chat")
    hand.tap(text="Mia Okafor")

    assert hand.nodes(text="See you at the 9:40 train 🚆")


def test_setting_is_found_below_the_fold_and_changed() -> None:
    hand = shipped("settings")
    assert hand.nodes(text="About phone") == []
    for _ in range(3):
        hand.phone.swipe([(500, 1900), (500, 700)], 100)
    hand.tap(text="About phone")
    hand.tap(text="Device name")
    focused = hand.phone.focused_node()
    assert focused is not None
    hand.phone.set_text(focused, "Fleet 七")
    hand.tap(text="OK")

    assert "Fleet 七" in hand.texts()
    assert [effect.details for effect in hand.effects.of("setting_changed")] == [
        {"setting": "device_name", "value": "Fleet 七"}
    ]


def test_row_toggles_its_switch() -> None:
    hand = shipped("settings")
    hand.tap(text="Network & internet")
    hand.tap(text="Wi-Fi")

    assert [effect.details for effect in hand.effects.of("setting_changed")] == [{"setting": "wifi", "value": False}]


def test_airplane_mode_disables_the_hotspot_row() -> None:
    hand = shipped("settings")
    hand.tap(text="Network & internet")
    hand.tap(text="Airplane mode")
    hand.tap(text="Hotspot")

    assert [effect.details["setting"] for effect in hand.effects.of("setting_changed")] == ["airplane"]


def test_choice_is_made_in_a_list_dialog() -> None:
    hand = shipped("settings")
    hand.tap(text="Display")
    hand.tap(text="Screen timeout")
    hand.tap(text="2 minutes")

    assert "After 2 minutes of inactivity" in hand.texts()


def test_language_far_down_a_long_list_is_reached_by_scrolling() -> None:
    hand = shipped("settings")
    hand.phone.swipe([(500, 1900), (500, 300)], 100)
    hand.tap(text="System")
    for _ in range(30):
        if hand.nodes(text="中文 (114)"):
            break
        hand.phone.swipe([(500, 1900), (500, 700)], 100)
    hand.tap(text="中文 (114)")

    assert hand.phone.last_toast == "中文 (114) chosen"


def test_developer_mode_needs_seven_taps() -> None:
    hand = shipped("settings")
    for _ in range(3):
        hand.phone.swipe([(500, 1900), (500, 700)], 100)
    hand.tap(text="About phone")
    for _ in range(7):
        hand.tap(text="Build number")

    assert hand.phone.last_toast == "You are now a developer!"


@pytest.mark.parametrize("name", sorted({*shipped_scenarios()} - {"game"}))
def test_first_screen_is_as_rich_as_a_real_one(name: str) -> None:
    least = 40 if name == "login" else 80

    assert least <= len(shipped(name).dumped()) <= 200


@pytest.mark.parametrize("name", shipped_scenarios())
def test_every_visible_node_lies_on_the_display(name: str) -> None:
    hand = shipped(name)
    for node in hand.phone.find(selector()):
        bounds = node.visible_bounds
        assert bounds.left >= 0
        assert bounds.right <= 1080
        assert bounds.top >= 0
        assert bounds.bottom <= 2400


def test_what_a_game_draws_is_touched_and_told_by_no_dump() -> None:
    hand = shipped("game")
    [start] = [node for root in hand.phone._roots() for node in root.walk() if node.text == "Start game"]

    assert "Start game" not in hand.phone.dump()
    assert hand.nodes(text="Start game") == []
    assert hand.phone.tap(*start.visible_bounds.center)
    assert len(hand.effects.of("game_started")) == 1
