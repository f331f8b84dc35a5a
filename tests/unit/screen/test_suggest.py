"""Which selectors are offered for a node, in which order, and what is said of the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from benchmarks.matching import _list
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Matched, Matcher, NotFound, Outcome
from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.stability import changing_text, lasting_prefix, made_up_id
from droidfleet_shared.screen.suggest import MAX_OFFERED, MAX_REJECTED, Suggester, Suggestions
from support.dumps import DUMPS
from support.screens import dump, field, node, screen, screen_of, window
from unit.screen.test_matching_properties import screens
from unit.screen.test_real_dumps import screen_of as real_screen

LINE = (0, 0, 400, 100)


def suggested(where: Screen, text: str, *, nth: int = 0) -> Suggestions:
    """The suggestions for the nth node with a text, a description, a hint or an id."""
    matcher = Matcher(where)
    found = [
        each
        for each in matcher.visible_nodes()
        if text in (each.text, each.description, each.hint, each.resource_id.rpartition("/")[2])
    ]
    return Suggester(matcher).suggest(found[nth])


def given_fields(selector: Selector) -> dict[str, object]:
    return selector.model_dump(by_alias=True, exclude_none=True)


def offered(where: Screen, text: str, *, nth: int = 0) -> list[dict[str, object]]:
    return [given_fields(each.selector) for each in suggested(where, text, nth=nth).offered]


def row(name: str, top: int, *, id_of_row: str = "a:id/row") -> Node:
    return node(
        "",
        (0, top, 1080, top + 100),
        node(name, (0, top, 400, top + 100)),
        node("Add", (800, top, 1000, top + 100), clickable=True),
        resource_id=id_of_row,
        class_name="android.view.ViewGroup",
    )


def test_a_unique_text_comes_first_and_the_id_after_it() -> None:
    where = screen(node("Buy", LINE, resource_id="a:id/buy"))
    assert offered(where, "Buy") == [{"text": "Buy"}, {"resourceId": "buy"}]


def test_a_text_that_counts_comes_after_the_id_and_says_so() -> None:
    where = screen(node("$7.90", LINE, resource_id="a:id/price"))
    found = suggested(where, "$7.90").offered
    assert [given_fields(each.selector) for each in found] == [{"resourceId": "price"}, {"text": "$7.90"}]
    assert [each.note for each in found] == ["", "it holds an amount of money"]


def test_the_lasting_beginning_of_a_changing_text_is_offered() -> None:
    assert offered(screen(node("Total: $7.90", LINE)), "Total: $7.90")[0] == {"textStartsWith": "Total:"}


def test_two_nodes_of_one_text_are_told_apart_by_their_ids_and_the_text_is_explained() -> None:
    where = screen(
        node("Delete", LINE, resource_id="a:id/one"),
        node("Delete", (0, 200, 400, 300), resource_id="a:id/two"),
    )
    found = suggested(where, "Delete")
    assert given_fields(found.offered[0].selector) == {"resourceId": "one"}
    assert [each.why for each in found.rejected] == ['text "Delete" matches 2 nodes']


def test_a_pair_of_fields_is_offered_where_none_is_enough_alone() -> None:
    where = screen(
        node("Delete", LINE, resource_id="a:id/one"),
        node("Delete", (0, 200, 400, 300), resource_id="a:id/two"),
        node("Keep", (0, 400, 400, 500), resource_id="a:id/one"),
        node("Keep", (0, 600, 400, 700), resource_id="a:id/two"),
    )
    assert offered(where, "Delete") == [{"text": "Delete", "resourceId": "one"}]


def test_the_label_and_the_button_of_one_text_are_told_apart_by_the_class() -> None:
    where = screen(node("Sign in", LINE), node("Sign in", (0, 200, 400, 300), class_name="android.widget.Button"))
    assert offered(where, "Sign in", nth=1) == [{"text": "Sign in", "className": "android.widget.Button"}]


def test_a_button_in_a_row_is_named_by_what_stands_beside_it_and_by_its_row() -> None:
    found = offered(screen(row("Green tea", 0), row("Black tea", 200)), "Add", nth=1)
    assert found == [
        {"text": "Add", "rightOf": {"text": "Black tea"}},
        {"text": "Add", "within": {"resourceId": "row", "has": {"text": "Black tea"}}},
        {"className": "android.widget.TextView", "rightOf": {"text": "Black tea"}},
    ]


def test_the_price_on_a_card_is_named_by_its_own_card_not_by_the_next_one() -> None:
    def card(name: str, price: str, top: int) -> Node:
        return node(
            "",
            (0, top, 1080, top + 200),
            node(name, (400, top, 1000, top + 60)),
            node(price, (0, top + 80, 200, top + 160), resource_id="a:id/price"),
            resource_id="a:id/card",
        )

    where = screen(card("Green tea", "$3.00", 0), node("Sponsored", (0, 220, 300, 260)), card("Cup", "$5.00", 300))
    assert offered(where, "$3.00")[0] == {
        "resourceId": "price",
        "within": {"resourceId": "card", "has": {"text": "Green tea"}},
    }


def test_a_row_without_a_label_of_its_own_is_named_by_the_one_in_it() -> None:
    where = screen(row("Green tea", 0), row("Black tea", 200))
    assert offered(where, "row", nth=1)[0] == {"resourceId": "row", "has": {"text": "Black tea"}}


def test_a_node_in_a_named_frame_is_named_within_it() -> None:
    def frame(name: str, top: int) -> Node:
        return node("", (0, top, 400, top + 90), node("Edit", (0, top, 400, top + 90)), resource_id=name)

    where = screen(frame("a:id/bill", 0), frame("a:id/home", 200))
    assert offered(where, "Edit", nth=1)[0] == {"text": "Edit", "within": {"resourceId": "home"}}


def test_an_index_is_the_last_resort_and_says_what_it_counts_on() -> None:
    where = screen(node("Delete", LINE), node("Delete", (0, 200, 400, 300)))
    (found,) = suggested(where, "Delete", nth=1).offered
    assert given_fields(found.selector) == {"text": "Delete", "index": 1}
    assert "reading order" in found.note


def test_what_a_field_holds_names_it_never() -> None:
    where = screen(field(LINE, hint="Search", resource_id="a:id/search"))
    assert offered(where, "Search") == [{"resourceId": "search"}, {"hint": "Search"}]


def test_a_password_is_in_no_selector() -> None:
    where = screen(node("hunter2", LINE, password=True, resource_id="a:id/secret"))
    said = str(suggested(where, "secret"))
    assert "hunter2" not in said


def test_a_node_that_nobody_sees_has_no_suggestions() -> None:
    matcher = Matcher(screen(node("Buy", LINE, visible=False)))
    hidden = next(each for each in matcher.screen.root.walk() if each.text) if matcher.screen.root else None
    assert hidden is not None
    assert Suggester(matcher).suggest(hidden) == Suggestions()


def test_a_disabled_node_is_named_as_well() -> None:
    assert offered(screen(node("Pay", LINE, enabled=False)), "Pay") == [{"text": "Pay"}]


def test_a_full_id_is_offered_where_two_packages_share_the_short_one() -> None:
    where = screen(node("", LINE, resource_id="a:id/ok"), node("", (0, 200, 400, 300), resource_id="b:id/ok"))
    assert offered(where, "ok")[0] == {"resourceId": "a:id/ok"}


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "Cart, 0 items",
        "$7.90",
        "9,90 €",
        "12:30",
        "Arrives 2026-01-02",
        "5 min ago",
        "3 items",
        "Inbox (3)",
        "80 %",
        "3分钟前",
        "x" * 61,
    ],
)
def test_texts_that_change_are_known(text: str) -> None:
    assert changing_text(text)


@pytest.mark.parametrize("text", ["Buy", "USB-C cable 1 m", "Step 2", "I'm 18 or older", "加入购物车", "4K-TV"])
def test_labels_with_a_number_in_them_are_labels(text: str) -> None:
    assert not changing_text(text)


@pytest.mark.parametrize(
    ("text", "prefix"), [("Total: $7.90", "Total:"), ("Inbox (3)", "Inbox"), ("$7.90", ""), ("x 3", ""), ("Buy", "")]
)
def test_only_words_are_a_lasting_beginning(text: str, prefix: str) -> None:
    assert lasting_prefix(text) == prefix


@pytest.mark.parametrize(("identity", "made_up"), [("buy_button", False), ("tab2", False), ("view_10482", True)])
def test_ids_that_a_program_made_up_are_known(identity: str, made_up: bool) -> None:
    assert bool(made_up_id(identity)) is made_up


def check(where: Screen) -> None:
    """Each suggestion names its node and no other, also for a touch."""
    matcher = Matcher(where)
    suggester = Suggester(matcher)
    for each in matcher.visible_nodes():
        found = suggester.suggest(each)
        assert len(found.offered) <= MAX_OFFERED
        assert len(found.rejected) <= MAX_REJECTED
        for suggestion in found.offered:
            assert suggestion.selector.point is None
            assert suggestion.selector.xpath is None
            outcome = matcher.match(suggestion.selector, touch=each.enabled)
            assert isinstance(outcome, Matched)
            assert outcome.node is each


@settings(max_examples=150)
@given(screens)
def test_every_suggestion_on_any_screen_names_exactly_its_node(where: Screen) -> None:
    check(where)


@settings(max_examples=50)
@given(screens)
def test_the_same_screen_gives_the_same_suggestions(where: Screen) -> None:
    def all_of(matcher: Matcher) -> list[Suggestions]:
        return [Suggester(matcher).suggest(each) for each in matcher.visible_nodes()]

    assert all_of(Matcher(where)) == all_of(Matcher(where))


@pytest.mark.skipif(not DUMPS, reason="no real dumps at hand")
@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_every_suggestion_on_a_real_screen_names_exactly_its_node(path: Path) -> None:
    where = real_screen(path)
    check(where)
    matcher = Matcher(where)
    assert all(Suggester(matcher).suggest(each).offered for each in matcher.visible_nodes())


class Denying(Matcher):
    """Finds nothing, whatever is asked."""

    def match(self, selector: Selector, *, touch: bool) -> Outcome:
        return NotFound("nothing matches")


def test_nothing_is_offered_that_the_matcher_does_not_confirm() -> None:
    matcher = Denying(screen(node("Buy", LINE, resource_id="a:id/buy")))
    assert [Suggester(matcher).suggest(each).offered for each in matcher.visible_nodes()] == [(), ()]


class Counting(Matcher):
    """Counts what it is asked."""

    asked = 0

    def match(self, selector: Selector, *, touch: bool) -> Outcome:
        self.asked += 1
        return super().match(selector, touch=touch)


def test_a_screen_of_500_nodes_takes_few_matches_for_each() -> None:
    matcher = Counting(screen_of(dump(window(_list(500)))))
    suggester = Suggester(matcher)
    nodes = list(matcher.visible_nodes())
    assert all(suggester.suggest(each).offered for each in nodes)
    assert matcher.asked <= 6 * len(nodes)
