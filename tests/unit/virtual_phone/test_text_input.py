"""Text reaches fields as a keyboard or accessibility brings it, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unit.virtual_phone.phones import Hand, screen, shipped


def field(**fields: object) -> Hand:
    hand = screen(
        {"type": "field", "name": "f", "id": "f", "bind": "v", "hint": "Hint", **fields},
        {"type": "field", "id": "g", "hint": "Second"},
        variables={"v": ""},
        on_open=[{"focus": "f"}],
    )
    assert hand.phone.keyboard_shown
    return hand


def value(hand: Hand) -> str:
    node = hand.phone.focused_node()
    assert node is not None
    return node.value


@given(st.text(max_size=200).map(lambda text: text.encode("utf-8", "ignore").decode()))
def test_set_text_keeps_every_character(text: str) -> None:
    hand = field()
    node = hand.phone.focused_node()
    assert node is not None
    hand.phone.set_text(node, text)

    assert value(hand) == text


def test_typed_text_goes_in_at_the_cursor() -> None:
    hand = field()
    hand.phone.type_text("ac")
    hand.phone.press_key("left")
    hand.phone.type_text("b")

    assert value(hand) == "abc"


def test_delete_keys_take_the_characters_beside_the_cursor() -> None:
    hand = field()
    hand.phone.type_text("abcd")
    hand.phone.press_key_code(21)
    hand.phone.press_key("delete")
    hand.phone.press_key_code(112)

    assert value(hand) == "ab"


def test_keys_of_the_keyboard_type_their_letter() -> None:
    hand = field()
    for key in ("a", "1", "Space", "b", "Delete"):
        hand.tap(description=key)

    assert value(hand) == "a1 "


def test_shift_writes_one_capital() -> None:
    hand = field()
    hand.tap(description="Shift")
    hand.tap(description="A")
    hand.tap(description="b")

    assert value(hand) == "Ab"


def test_number_field_opens_digits_and_takes_nothing_else() -> None:
    hand = field(kind="number")
    assert hand.nodes(description="q") == []
    hand.tap(description="7")
    hand.phone.type_text("a4 ")

    assert value(hand) == "74"


def test_text_is_cut_at_the_longest_that_the_field_takes() -> None:
    hand = field(max_length=3)
    hand.phone.type_text("abcdef")

    assert value(hand) == "abc"


def test_enter_submits_a_single_line_and_closes_the_keyboard() -> None:
    hand = field(on_submit=[{"effect": "submitted", "details": {"text": "{{value}}"}}])
    hand.phone.type_text("x")
    hand.phone.press_key("enter")

    assert [effect.details for effect in hand.effects.of("submitted")] == [{"text": "x"}]
    assert not hand.phone.keyboard_shown


def test_enter_breaks_the_line_in_a_field_of_several() -> None:
    hand = field(multiline=True)
    hand.phone.type_text("a")
    hand.phone.press_key("enter")
    hand.phone.type_text("b")

    assert value(hand) == "a\nb"


def test_tab_goes_to_the_next_field() -> None:
    hand = field()
    hand.phone.press_key_code(61)
    node = hand.phone.focused_node()

    assert node is not None
    assert node.hint == "Second"


def test_escape_hides_the_keyboard_and_never_leaves_the_page() -> None:
    hand = shipped("login")
    hand.tap(resourceId="com.example.bank:id/username")
    before = hand.phone.focus()
    hand.phone.press_key_code(111)
    hand.phone.press_key_code(111)

    assert (hand.phone.keyboard_shown, hand.phone.focus()) == (False, before)


def test_back_hides_the_keyboard_before_it_leaves_the_page() -> None:
    hand = shipped("shop")
    hand.tap(resourceId="com.example.shop:id/search_bar")
    hand.phone.press_key("back")
    assert hand.phone.focus().activity.endswith("SearchActivity")
    hand.phone.press_key("back")

    assert hand.phone.focus().activity.endswith("HomeActivity")


def test_clipboard_is_pasted_at_the_cursor() -> None:
    hand = field()
    hand.phone.set_clipboard("pasted")
    assert hand.phone.paste()

    assert (value(hand), hand.phone.clipboard) == ("pasted", "pasted")


def test_ctrl_c_copies_the_field_but_never_a_password() -> None:
    hand = field(kind="password")
    hand.phone.type_text("secret")
    hand.phone.press_key_code(31, 0x1000)

    assert hand.phone.clipboard is None


def test_text_without_a_focused_field_goes_nowhere() -> None:
    hand = shipped("shop")

    assert not hand.phone.type_text("x")
    assert not hand.phone.clear_focused_text()


def test_disabled_field_takes_no_text() -> None:
    hand = screen({"type": "field", "hint": "F", "enabled_when": "on"}, variables={"on": False})

    assert not hand.phone.set_text(hand.node(text="F"), "x")


def test_set_text_on_a_label_is_refused_and_not_logged() -> None:
    hand = screen({"type": "text", "text": "A"})

    assert not hand.phone.set_text(hand.node(text="A"), "x")
    assert hand.effects.all() == ()


def test_stale_node_takes_no_text() -> None:
    hand = shipped("login")
    node = hand.node(resourceId="com.example.bank:id/username")
    hand.phone.stop_app("com.example.bank")

    assert not hand.phone.set_text(node, "x")
    assert hand.phone.current(node) is None


def test_change_handler_sees_the_new_text() -> None:
    hand = field(on_change=[{"effect": "typed", "details": {"text": "{{value}}"}}])
    hand.phone.type_text("a")
    hand.phone.type_text("b")

    assert [effect.details["text"] for effect in hand.effects.of("typed")] == ["a", "ab"]


def test_unbound_field_forgets_its_text_with_its_page() -> None:
    hand = screen({"type": "field", "hint": "F"})
    hand.enter("x", text="F")
    hand.phone.stop_app("com.example.test")
    hand.phone.start_app("com.example.test")

    assert hand.nodes(text="F")


def test_keyboard_without_a_window_is_never_shown() -> None:
    hand = shipped("login")
    hand.phone.install_input_method("com.github.uiautomator/.AdbKeyboard")
    assert not hand.phone.set_default_input_method("com.github.uiautomator/.AdbKeyboard")
    assert hand.phone.enable_input_method("com.github.uiautomator/.AdbKeyboard")
    assert hand.phone.set_default_input_method("com.github.uiautomator/.AdbKeyboard")
    hand.tap(resourceId="com.example.bank:id/username")

    assert not hand.phone.keyboard_shown
    assert hand.phone.type_text("ada")


@pytest.mark.parametrize("count", [1, 2])
def test_lossy_knob_loses_one_character_of_so_many_texts(count: int) -> None:
    hand = field()
    hand.phone.knobs.lossy_set_texts = count
    node = hand.phone.focused_node()
    assert node is not None
    lengths = []
    for _ in range(3):
        hand.phone.set_text(node, "123456789012345678")
        lengths.append(len(value(hand)))

    assert lengths == [17] * count + [18] * (3 - count)
