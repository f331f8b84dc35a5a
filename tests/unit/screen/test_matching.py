"""Which node a selector means: protocol section 5 field by field, and the candidate rule of section 3."""

from __future__ import annotations

import pytest

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Disabled, Matched, Matcher, NotFound, Outcome, uses_emoji
from droidfleet_shared.screen.node import Bounds, Node, Screen
from support.screens import HEIGHT, PACKAGE, WIDTH, dump, field, node, screen, screen_of, window


def match(where: Screen, selector: Selector, *, touch: bool = False) -> Outcome:
    return Matcher(where).match(selector, touch=touch)


def found(where: Screen, selector: Selector, *, touch: bool = False) -> Node:
    outcome = match(where, selector, touch=touch)
    assert isinstance(outcome, Matched), outcome
    return outcome.node


def texts(outcome: Outcome) -> list[str]:
    assert isinstance(outcome, Ambiguous), outcome
    return [each.text for each in outcome.candidates]


def test_every_literal_field_must_hold() -> None:
    where = screen(
        node(
            "Buy now",
            (0, 0, 100, 50),
            description="buys the thing",
            resource_id=f"{PACKAGE}:id/buy",
            class_name="android.widget.Button",
            hint="tap me",
        )
    )
    right: dict[str, str] = {
        "text": "Buy now",
        "text_contains": "uy n",
        "text_starts_with": "Buy",
        "text_matches": "B.* now",
        "description": "buys the thing",
        "description_contains": "the",
        "description_starts_with": "buys",
        "description_matches": "buys .+",
        "resource_id": "buy",
        "class_name": "android.widget.Button",
        "hint": "tap me",
        "package_name": PACKAGE,
    }
    assert found(where, Selector.model_validate(right, strict=False)).text == "Buy now"
    for name in right:
        wrong = right | {name: "other"}
        assert isinstance(match(where, Selector.model_validate(wrong, strict=False)), NotFound), name


@pytest.mark.parametrize("flag", ["enabled", "checked", "selected", "focused", "clickable", "scrollable", "password"])
def test_a_boolean_field_holds_for_its_own_value_alone(flag: str) -> None:
    where = screen(
        node("on", (0, 0, 9, 9), **{flag: True}),  # type: ignore[arg-type]  # the flag's name is a variable here
        node("off", (0, 10, 9, 19), **{flag: False}),  # type: ignore[arg-type]  # as above
    )
    selector = {"textMatches": "on|off"}
    assert found(where, Selector.model_validate(selector | {flag: True})).text == "on"
    assert found(where, Selector.model_validate(selector | {flag: False})).text == "off"


@pytest.mark.parametrize(
    "label",
    [
        "50%",
        "%d items",
        "/help",
        "@home",
        "^_^",
        'It\'s "ok"',
        "Health Club at Disney's Resort",
        "a.b",
        "(",
        "\\d",
        "''",
    ],
)
def test_a_label_with_quotes_or_signs_is_found_literally(label: str) -> None:
    where = screen(node(label, (0, 0, 9, 9)), node("axb", (0, 10, 9, 19)), node("5", (0, 20, 9, 29)))
    assert found(where, Selector(text=label)).text == label
    assert found(where, Selector(text_contains=label)).text == label
    assert found(where, Selector(text_starts_with=label)).text == label


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ("Cafe\u0301", "Café"),
        ("Café", "Cafe\u0301"),
        ("\u200bPay\u200f", "Pay"),
        ("1\u00a0000\u202f€", "1 000 €"),
        ("  two \n lines ", "two lines"),
        ("\u05e9\u05dc\u05d5\u05dd", "\u2067\u05e9\u05dc\u05d5\u05dd\u2069"),
    ],
)
def test_texts_that_look_equal_are_equal(shown: str, wanted: str) -> None:
    assert found(screen(node(shown, (0, 0, 9, 9))), Selector(text=wanted)).text == shown


def test_case_is_not_ignored() -> None:
    assert isinstance(match(screen(node("PAY", (0, 0, 9, 9))), Selector(text="Pay")), NotFound)


def test_an_emoji_is_compared_as_the_dots_of_the_dump() -> None:
    where = screen(node("Send 🎁 now", (0, 0, 9, 9)))
    assert found(where, Selector(text="Send 🎁 now")).text == "Send .. now"
    assert found(where, Selector(text_contains="🎁")).text == "Send .. now"
    assert found(where, Selector(text_matches="Send 🎁 (now|later)")).text == "Send .. now"
    assert isinstance(match(where, Selector(text="Send now")), NotFound)
    assert uses_emoji(Selector(within=Selector(text="🎁")))
    assert not uses_emoji(Selector(text="Send .. now"))


@pytest.mark.parametrize("blank", ["\u200b", " ", "\u00a0"])
def test_a_selector_of_invisible_characters_matches_nothing(blank: str) -> None:
    where = screen(node("", (0, 0, 9, 9)), node("text", (0, 10, 9, 19)))
    for selector in (Selector(text=blank), Selector(text_contains=blank), Selector(text_starts_with=blank)):
        assert isinstance(match(where, selector), NotFound)


def test_a_pattern_matches_the_whole_text() -> None:
    where = screen(node("Order 12", (0, 0, 9, 9)), node("Order 12 of 15", (0, 10, 9, 19)))
    assert found(where, Selector(text_matches=r"Order \d+")).text == "Order 12"


@pytest.mark.parametrize(
    ("identity", "wanted", "matches"),
    [
        ("com.a:id/buy", "buy", True),
        ("com.a:id/buy", "com.a:id/buy", True),
        ("com.a:id/buy", "com.b:id/buy", False),
        ("com.a:id/rebuy", "buy", False),
        ("buy", "buy", True),
        ("com.a:id/buy", "id/buy", False),
    ],
)
def test_a_resource_id_is_given_with_its_package_or_without(identity: str, wanted: str, matches: bool) -> None:
    outcome = match(screen(node("x", (0, 0, 9, 9), resource_id=identity)), Selector(resource_id=wanted))
    assert isinstance(outcome, Matched) is matches


def test_the_visible_twin_of_a_zero_area_node_is_the_one() -> None:
    where = screen(node("Open", (0, 0, 0, 0)), node("Open", (10, 10, 60, 40)))
    assert found(where, Selector(text="Open"), touch=True).bounds == Bounds(10, 10, 60, 40)


@pytest.mark.parametrize(
    "bounds", [(0, 0, 0, 0), (50, 50, 10, 10), (-100, 0, 0, 50), (0, HEIGHT, 100, HEIGHT + 50), (WIDTH, 0, 2000, 50)]
)
def test_a_node_without_an_area_on_the_display_is_not_found(bounds: tuple[int, int, int, int]) -> None:
    outcome = match(screen(node("Open", bounds)), Selector(text="Open"), touch=True)
    assert isinstance(outcome, NotFound)
    assert outcome.reason == "1 matching node is not visible or without area"


def test_a_node_that_is_not_visible_to_the_user_is_not_found() -> None:
    assert isinstance(match(screen(node("Open", (0, 0, 9, 9), visible=False)), Selector(text="Open")), NotFound)


def test_bounds_are_clipped_to_the_display_and_to_what_scrolls() -> None:
    where = screen(node("", (0, 100, WIDTH, 1000), node("Last", (-50, 950, WIDTH + 50, 1100)), scrollable=True))
    outcome = match(where, Selector(text="Last"), touch=True)
    assert isinstance(outcome, Matched)
    assert outcome.visible_bounds == Bounds(0, 950, WIDTH, 1000)


def test_a_row_scrolled_under_a_bar_is_not_found() -> None:
    where = screen(node("", (0, 100, WIDTH, 1000), node("Hidden", (0, 1000, WIDTH, 1100)), scrollable=True))
    assert isinstance(match(where, Selector(text="Hidden")), NotFound)


def test_a_label_inside_a_clickable_row_is_a_target() -> None:
    where = screen(node("", (0, 100, WIDTH, 200), node("Wi-Fi", (40, 120, 300, 180)), clickable=True))
    outcome = match(where, Selector(text="Wi-Fi"), touch=True)
    assert isinstance(outcome, Matched)
    assert where.root is not None
    row = where.root.children[0]
    assert row.bounds.contains(*outcome.visible_bounds.center)


def test_a_disabled_node_can_be_seen_and_not_touched() -> None:
    where = screen(node("Continue", (0, 0, 9, 9), enabled=False))
    assert found(where, Selector(text="Continue")).text == "Continue"
    outcome = match(where, Selector(text="Continue"), touch=True)
    assert isinstance(outcome, Disabled)
    assert [each.text for each in outcome.nodes] == ["Continue"]


def test_the_enabled_twin_of_a_disabled_node_is_the_one() -> None:
    where = screen(node("Next", (0, 0, 9, 9), enabled=False), node("Next", (0, 10, 9, 19)))
    assert found(where, Selector(text="Next"), touch=True).bounds.top == 10


def three_rows() -> Screen:
    return screen(
        *(
            node(
                "",
                (0, top, WIDTH, top + 100),
                node(name, (0, top + 10, 400, top + 90)),
                node("Delete", (800, top + 10, WIDTH, top + 90), clickable=True),
                clickable=True,
            )
            for top, name in ((600, "Gamma"), (200, "Alpha"), (400, "Beta"))
        )
    )


def test_the_same_text_in_several_rows_is_ambiguous_with_candidates_in_reading_order() -> None:
    outcome = match(three_rows(), Selector(text="Delete"), touch=True)
    assert isinstance(outcome, Ambiguous)
    assert [each.bounds.top for each in outcome.candidates] == [210, 410, 610]


def test_a_relation_makes_one_of_several_rows_unique() -> None:
    where = three_rows()
    beta = Selector(text="Beta")
    assert found(where, Selector(text="Delete", right_of=beta)).bounds.top == 410
    row = Selector(clickable=True, has=beta)
    assert found(where, row).bounds.top == 400
    assert found(where, Selector(text="Delete", within=row)).bounds.top == 410


def test_index_counts_in_reading_order() -> None:
    where = three_rows()
    assert [found(where, Selector(text="Delete", index=each)).bounds.top for each in range(3)] == [210, 410, 610]
    outcome = match(where, Selector(text="Delete", index=3))
    assert isinstance(outcome, NotFound)
    assert outcome.reason == "index 3 of 3 matches"


def test_reading_order_is_from_left_to_right_within_a_line() -> None:
    where = screen(node("b", (500, 0, 600, 50)), node("a", (0, 0, 100, 50)), node("c", (0, 60, 100, 90)))
    order = [found(where, Selector(text_matches="[abc]", index=each)).text for each in range(3)]
    assert order == ["a", "b", "c"]


def test_index_does_not_move_when_a_node_is_disabled() -> None:
    where = screen(node("Add", (0, 0, 9, 9)), node("Add", (0, 10, 9, 19), enabled=False), node("Add", (0, 20, 9, 29)))
    assert isinstance(match(where, Selector(text="Add", index=1), touch=True), Disabled)
    assert found(where, Selector(text="Add", index=2), touch=True).bounds.top == 20


def test_beside_means_on_the_same_line_or_in_the_same_column() -> None:
    where = screen(
        node("centre", (400, 400, 600, 500)),
        node("x", (0, 410, 100, 490), description="left"),
        node("x", (700, 380, 800, 480), description="right"),
        node("x", (450, 0, 550, 100), description="above"),
        node("x", (350, 700, 650, 800), description="below"),
        node("x", (0, 0, 100, 100), description="corner"),
        node("x", (700, 451, 800, 700), description="half a line lower"),
    )
    centre = Selector(text="centre")
    assert found(where, Selector(text="x", left_of=centre)).description == "left"
    assert found(where, Selector(text="x", right_of=centre)).description == "right"
    assert found(where, Selector(text="x", above=centre)).description == "above"
    assert found(where, Selector(text="x", below=centre)).description == "below"


def test_what_overlaps_is_not_beside() -> None:
    where = screen(node("a", (0, 0, 100, 50)), node("b", (99, 0, 200, 50)), node("c", (100, 0, 200, 50)))
    assert found(where, Selector(text_matches="[bc]", right_of=Selector(text="a"))).text == "c"


@pytest.mark.parametrize("relation", ["within", "leftOf", "rightOf", "above", "below"])
def test_an_ambiguous_relation_makes_the_selector_ambiguous_and_is_named(relation: str) -> None:
    where = screen(node("twin", (0, 0, 9, 9)), node("twin", (0, 10, 9, 19)), node("target", (20, 0, 29, 9)))
    selector = Selector.model_validate({"text": "target", relation: {"text": "twin"}})
    outcome = match(where, selector)
    assert texts(outcome) == ["twin", "twin"]
    assert isinstance(outcome, Ambiguous)
    assert f"`{relation}`" in outcome.reason


def test_an_ambiguous_descendant_makes_the_selector_ambiguous_and_is_named() -> None:
    row = node("", (0, 0, 100, 50), node("Delete", (0, 0, 9, 9)), node("Delete", (20, 0, 29, 9)), clickable=True)
    outcome = match(screen(row), Selector(clickable=True, has=Selector(text="Delete")))
    assert texts(outcome) == ["Delete", "Delete"]
    assert isinstance(outcome, Ambiguous)
    assert "`has`" in outcome.reason


def test_a_nested_relation_is_named_by_its_path() -> None:
    selector = Selector(text="Delete", within=Selector(clickable=True, has=Selector(text="Delete", index=0)))
    assert isinstance(match(three_rows(), selector), Ambiguous)
    missing = match(three_rows(), Selector(text="Delete", right_of=Selector(text="Beta", below=Selector(text="Zeta"))))
    assert missing == NotFound("of the selector in `rightOf.below` nothing matches")


def test_has_with_an_index_is_unique_in_its_row() -> None:
    row = node("", (0, 0, 100, 50), node("Delete", (0, 0, 9, 9)), node("Delete", (20, 0, 29, 9)), clickable=True)
    assert found(screen(row), Selector(clickable=True, has=Selector(text="Delete", index=1))).clickable


def test_within_is_any_ancestor_and_not_the_node_itself() -> None:
    where = screen(node("outer", (0, 0, 90, 90), node("", (0, 0, 80, 80), node("inner", (0, 0, 70, 70)))))
    assert found(where, Selector(text="inner", within=Selector(text="outer"))).text == "inner"
    assert isinstance(match(where, Selector(text="outer", within=Selector(text="outer"))), NotFound)


def test_any_visible_needs_one_match_and_no_more() -> None:
    matcher = Matcher(three_rows())
    assert matcher.any_visible(Selector(text="Delete"))
    assert matcher.any_visible(Selector(text="Delete", index=2))
    assert not matcher.any_visible(Selector(text="Delete", index=3))
    assert not matcher.any_visible(Selector(text="Missing"))
    assert not matcher.any_visible(Selector(text="Alpha", rightOf=Selector(text="Delete")))  # type: ignore[call-arg]  # alias


def test_the_keyboards_keys_never_match() -> None:
    keyboard = "com.android.inputmethod.latin"
    keys = [node(key, (0, 1600, 100, 1700), package=keyboard) for key in ("a", "1", "Delete")]
    where = screen_of(dump(window(*keys, package=keyboard), window(node("Search", (0, 0, 100, 50)))))
    for key in ("a", "1", "Delete"):
        assert isinstance(match(where, Selector(text=key)), NotFound)
    assert isinstance(match(where, Selector(package_name=keyboard)), NotFound)


def test_a_rotated_screen_is_clipped_to_the_rotated_display() -> None:
    root = window(node("Pay", (2200, 500, 2500, 700)), bounds=(0, 0, HEIGHT, WIDTH))
    outcome = match(screen_of(dump(root, rotation=1)), Selector(text="Pay"), touch=True)
    assert isinstance(outcome, Matched)
    assert outcome.visible_bounds == Bounds(2200, 500, HEIGHT, 700)


def test_nothing_matches_where_no_application_is_in_front() -> None:
    where = screen_of(dump())
    assert isinstance(match(where, Selector(text="x")), NotFound)
    assert isinstance(match(where, Selector(xpath="//*")), NotFound)


def test_a_hint_is_matched_by_hint() -> None:
    where = screen(field((0, 0, 90, 40), hint="Email"), field((0, 50, 90, 90), hint="Phone"))
    assert found(where, Selector(hint="Phone")).bounds.top == 50
