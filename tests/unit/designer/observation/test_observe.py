"""What a model is told of a screen, line by line, and what its numbers stand for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from droidfleet_designer.observation.lines import MAX_LISTED
from droidfleet_designer.observation.naming import written
from droidfleet_designer.observation.observe import Element, Observation, observe
from droidfleet_shared.protocol.effects import EffectWords
from droidfleet_shared.screen.matching import Matched, Matcher
from droidfleet_shared.screen.node import Bounds, Node, Screen
from droidfleet_shared.screen.parse import ScreenUnreadableError
from droidfleet_shared.screen.snapshot import Snapshot, snapshot_of
from support.screens import Rectangle, field, node, screen
from unit.screen.test_matching_properties import screens

WORDS = EffectWords(["send", "delete"])
ROW: Rectangle = (0, 0, 1000, 100)


def observed(where: Screen) -> Observation:
    return observe(snapshot_of(where), number=7, words=WORDS)


def lines(*nodes: Node) -> list[str]:
    """The lines after the header."""
    return observed(screen(*nodes)).text.splitlines()[2:]


def element(*nodes: Node) -> Element:
    """The only one."""
    [only] = observed(screen(*nodes)).elements.values()
    return only


def selector(*nodes: Node) -> dict[str, object]:
    """Of the only element."""
    found = element(*nodes).selector
    assert found is not None
    return dict(written(found))


def switch_row(label: str, top: int, *, checked: bool) -> Node:
    return node(
        "",
        (0, top, 1000, top + 100),
        node(label, (0, top, 500, top + 100)),
        node("", (800, top, 1000, top + 100), class_name="android.widget.Switch", checkable=True, checked=checked),
        clickable=True,
        class_name="android.view.ViewGroup",
    )


# Lines ----------------------------------------------------------------------------------------------------------------


def test_the_header_tells_the_app_the_display_and_what_lies_over_it() -> None:
    where = replace(
        screen(node("Hello", ROW)),
        activity="com.example.shop.Main",
        keyboard=Bounds(0, 1500, 1080, 2400),
        over=(Bounds(0, 0, 9, 9), Bounds(9, 9, 20, 20)),
    )

    assert observed(where).text.splitlines()[0] == (
        "Screen 7: com.example.shop .Main, 1080x2400, keyboard shown, 2 other windows over it"
    )


def test_a_unique_text_needs_no_selector() -> None:
    assert lines(node("Buy", ROW, clickable=True)) == ['1 button "Buy"']


def test_a_description_is_told_from_a_text() -> None:
    assert lines(node("", ROW, description="Search", clickable=True)) == ['1 button desc "Search"']


def test_two_equal_texts_get_selectors() -> None:
    first = node("Add", ROW, resource_id="a:id/first", clickable=True)
    second = node("Add", (0, 100, 1000, 200), resource_id="a:id/second", clickable=True)

    assert lines(first, second) == [
        '1 button "Add" -> {"resourceId":"first"}',
        '2 button "Add" -> {"resourceId":"second"}',
    ]


def test_a_price_says_that_it_may_not_stay() -> None:
    assert lines(node("$7.90", ROW), node("Tea", (0, 100, 1000, 200)))[0].startswith('1 text "$7.90"')
    assert lines(node("$7.90", ROW)) == ['1 text "$7.90" ~']


def test_a_row_is_one_line_with_its_texts_and_their_ids() -> None:
    tea = node("Green tea", (0, 0, 500, 50), resource_id="a:id/title")
    price = node("$4.20", (0, 50, 500, 100), resource_id="a:id/price")

    assert lines(node("", ROW, tea, price, clickable=True)) == ['1 button "Green tea"#title "$4.20"#price']


def test_a_row_is_called_by_its_name_and_not_by_the_initial_in_its_picture() -> None:
    row = node("", ROW, node("M", (0, 0, 90, 90)), node("Mia", (100, 0, 500, 90)), clickable=True)

    assert lines(row) == ['1 button "Mia" "M"']


def test_a_label_repeated_on_tab_and_text_is_said_once() -> None:
    assert lines(node("", ROW, node("Home", (0, 0, 90, 90)), description="Home", clickable=True)) == [
        '1 button desc "Home"'
    ]


def test_a_row_with_a_switch_tells_its_state_and_is_named_by_the_switch() -> None:
    assert lines(switch_row("Wi-Fi", 0, checked=True), switch_row("Sound", 100, checked=False)) == [
        '1 switch "Wi-Fi" (checked) -> {"className":"android.widget.Switch","rightOf":{"text":"Wi-Fi"}}',
        '2 switch "Sound" (unchecked) -> {"className":"android.widget.Switch","rightOf":{"text":"Sound"}}',
    ]


def test_a_field_tells_what_it_asks_for_and_what_it_holds() -> None:
    filled = replace(field(ROW, hint="Name", focused=True), text="Ann")

    assert lines(filled) == ['1 field "Name" holds "Ann" (focused) -> {"hint":"Name"}']


def test_what_a_password_field_holds_is_never_told() -> None:
    secret = replace(field(ROW, hint="Password", password=True), text="hunter2")
    taken = snapshot_of(screen(secret))
    above, _, below = taken.window.rpartition('text=""')
    leaky = taken.model_copy(update={"window": f'{above}text="hunter2"{below}'})

    assert "hunter2" in leaky.window
    assert "hunter2" not in observe(leaky, number=1, words=WORDS).text


def test_a_disabled_button_is_named_with_its_own_state_and_not_by_its_enabled_label() -> None:
    row = node("", ROW, node("Save", (0, 0, 90, 90)), clickable=True, enabled=False, class_name="android.view.View")

    assert lines(node("", (0, 0, 1000, 200), row, class_name="android.view.View")) == [
        '1 button "Save" (disabled) -> {"clickable":true,"has":{"text":"Save"}}'
    ]


def test_a_list_that_alone_scrolls_is_named_by_that() -> None:
    items = [node(f"Item {letter}", (0, top, 500, top + 90)) for letter, top in (("A", 0), ("B", 100))]

    assert lines(node("", (0, 0, 1000, 1000), *items, scrollable=True))[0] == '1 list ~> {"scrollable":true}'


def test_lines_stand_in_reading_order() -> None:
    low, high = node("Low", (0, 900, 500, 990)), node("High", (0, 10, 500, 90))

    assert lines(low, high) == ['1 text "High"', '2 text "Low"']


def test_what_only_lays_out_is_left_out() -> None:
    layout = node("", ROW, node("", (0, 0, 10, 10)), node("Hello", (0, 0, 500, 90)), class_name="android.view.View")

    assert lines(layout) == ['1 text "Hello"']


def test_a_frame_around_a_button_is_counted_and_not_listed() -> None:
    inner = node("Latest", (0, 0, 1000, 90), clickable=True)

    assert lines(node("", ROW, inner, clickable=True)) == [
        '1 button "Latest"',
        "Not listed: 1 frame around a listed button.",
    ]


def test_a_page_that_takes_taps_tells_its_texts_one_by_one() -> None:
    texts = [
        node(f"Line {letter}", (0, place * 100, 500, place * 100 + 90)) for place, letter in enumerate("abcdefghi")
    ]

    told = lines(node("", (0, 0, 1000, 1000), *texts, clickable=True))
    assert len(told) == 10
    assert told[1] == '2 text "Line a"'


def test_a_button_under_something_else_or_under_the_keyboard_says_so() -> None:
    under = node("Under", ROW, clickable=True)
    over = node("Over", ROW, clickable=True)
    low = node("Low", (0, 2000, 500, 2100), clickable=True)
    where = replace(screen(under, over, low), keyboard=Bounds(0, 1500, 1080, 2400))

    assert observed(where).text.splitlines()[2:] == [
        '1 button "Under" (covered)',
        '2 button "Over"',
        '3 button "Low" (under the keyboard)',
    ]


def test_a_long_text_is_cut_and_named_by_its_beginning() -> None:
    told = lines(node("We are open on " + "Sunday " * 60, ROW))[0]

    assert told.startswith('1 text "We are open on Sunday')
    assert "…+" in told
    assert len(told) < 320


def test_without_a_window_it_says_so() -> None:
    nothing = Snapshot(package="", activity="", display=(0, 0, 1080, 2400), rotation=0)

    text = observe(nothing, number=1, words=WORDS).text
    assert text.splitlines()[0] == "Screen 1: no app in front, 1080x2400"
    assert text.splitlines()[-1] == "No window of an app is in front, so nothing can be named."


def test_a_window_that_says_nothing_points_to_the_picture() -> None:
    assert lines(node("", ROW, class_name="android.view.SurfaceView")) == [
        "Nothing in this window has words or can be used by name: look at the picture."
    ]


def test_a_window_that_is_no_hierarchy_is_refused() -> None:
    with pytest.raises(ScreenUnreadableError):
        observe(
            Snapshot(package="a", activity="", display=(0, 0, 1, 1), rotation=0, window="<x/>"), number=1, words=WORDS
        )


# Elements -------------------------------------------------------------------------------------------------------------


def test_the_observation_bears_its_number_and_the_snapshots_id() -> None:
    made = observed(screen(node("Buy", ROW)))

    assert (made.number, made.snapshot_id) == (7, "s7")


def test_an_element_has_what_its_line_has() -> None:
    found = element(node("", ROW, node("Buy", (0, 0, 90, 90)), node("now", (100, 0, 190, 90)), clickable=True))

    assert (found.number, found.kind, found.words, found.bounds) == (1, "button", "Buy | now", Bounds(*ROW))
    assert (found.note, found.danger, found.states) == ("", "", ())


def test_a_reference_on_the_screen_is_escaped_where_a_step_is_written() -> None:
    found = element(node("${x}", ROW)).selector

    assert found is not None
    assert found.text == "${x}"
    assert selector(node("${x}", ROW)) == {"text": "$${x}"}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Send", ROW, clickable=True)],
        [node("", ROW, description="Send message", clickable=True)],
        [node("", ROW, resource_id="a:id/btn_send", clickable=True)],
        [node("", ROW, node("Send", (0, 0, 90, 90)), clickable=True)],
        [node("", ROW, node("", (0, 0, 90, 90), resource_id="a:id/send_icon"), clickable=True)],
        [field(ROW, hint="Send a message")],
    ],
    ids=["text", "description", "id", "label", "picture inside", "hint"],
)
def test_a_word_of_an_effect_is_found_wherever_it_stands(nodes: list[Node]) -> None:
    found = element(*nodes)

    assert found.danger == "send"
    assert f"1 {found.kind}! " in observed(screen(*nodes)).text


def test_a_bin_beside_a_label_is_warned_of_by_the_label() -> None:
    bin_button = node("", (900, 0, 1000, 100), clickable=True)
    row = node("", ROW, node("Delete account", (0, 0, 500, 90)), bin_button)

    assert [each.danger for each in observed(screen(row)).elements.values()] == ["delete", "delete"]


def test_a_text_in_a_row_that_sends_is_warned_of_by_the_row() -> None:
    inner = node("Hello", (0, 0, 90, 90), long_clickable=True)
    row = node("", ROW, inner, node("x", (100, 0, 190, 90)), description="Send", clickable=True)

    assert [each.danger for each in observed(screen(row)).elements.values()] == ["send", "send"]


def test_what_was_typed_into_a_field_and_what_a_list_holds_warn_of_nothing() -> None:
    typed = replace(field((0, 0, 500, 90), hint="Note"), text="send it")
    items = node("", (0, 100, 500, 900), node("Plain", (0, 100, 500, 190), clickable=True), scrollable=True)
    where = screen(typed, items, node("Delete", (0, 1000, 500, 1090)))

    assert [each.danger for each in observed(where).elements.values()] == ["", "", "", "delete"]


@given(screens)
@settings(max_examples=60)
def test_each_selector_names_exactly_one_node_of_the_same_look(where: Screen) -> None:
    taken = snapshot_of(where)
    matcher = Matcher(taken.screen())
    for each in observe(taken, number=1, words=WORDS).elements.values():
        if each.selector is not None:
            outcome = matcher.match(each.selector, touch=False)
            assert isinstance(outcome, Matched)
            assert each.bounds.contains(*outcome.visible_bounds.center)


@given(screens)
@settings(max_examples=60)
def test_the_same_look_is_told_the_same(where: Screen) -> None:
    assert observed(where) == observed(where)


def test_of_too_much_the_usable_stays_and_the_rest_is_counted() -> None:
    grid = [(column * 100, row * 40) for row in range(60) for column in range(10)]
    nodes = [
        node(f"N{'abcdefghij'[place % 10]}{chr(0x4E00 + place)}", (x, y, x + 90, y + 30), clickable=place % 6 == 0)
        for place, (x, y) in enumerate(grid)
    ]

    made = observed(screen(*nodes))
    kinds = [each.kind for each in made.elements.values()]
    assert (kinds.count("button"), len(kinds)) == (100, MAX_LISTED)
    assert made.text.splitlines()[-1] == (
        "Left out, for there is too much on this screen: 350 texts. Search for them by text."
    )


def test_buttons_beyond_the_length_are_counted_too() -> None:
    blank = [node("", (x * 90, y * 90, x * 90 + 80, y * 90 + 80), clickable=True) for x in range(12) for y in range(20)]

    made = observed(screen(*blank))
    assert len(made.elements) < 240
    assert f"{240 - len(made.elements)} things that can be used" in made.text
