"""For any screen and any selector: an answer, never a crash, and never one of several."""

from __future__ import annotations

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Disabled, Matched, Matcher, NotFound, Outcome
from droidfleet_shared.screen.node import Node, Screen
from droidfleet_shared.screen.parse import Hierarchy, ScreenUnreadableError, parse
from droidfleet_shared.screen.windows import SYSTEM_UI
from support.screens import Rectangle, dump, node, screen_of, window

examples = settings(max_examples=60)
"""No deadline for one example: other tests share the machine."""

LABELS = ["", "Buy", "Buy now", "Délete", "50%", "x" * 30, "a\u200bb", "..", "\u2067A\u2069", "😀"]
CLASSES = ["android.widget.TextView", "android.widget.Button", "", " ", "a b", "1", "com.a.B$C"]

labels = st.sampled_from(LABELS) | st.text(max_size=6)
edges = st.integers(-200, 2600)
rectangles: st.SearchStrategy[Rectangle] = st.tuples(edges, edges, edges, edges) | st.sampled_from(
    [(0, 0, 100, 100), (0, 0, 0, 0), (100, 0, 200, 100), (0, 100, 100, 200)]
)


@st.composite
def leaves(draw: st.DrawFn) -> Node:
    return node(
        draw(labels),
        draw(rectangles),
        description=draw(labels),
        resource_id=draw(st.sampled_from(["", "a:id/one", "a:id/two", "one"])),
        class_name=draw(st.sampled_from(CLASSES)),
        clickable=draw(st.booleans()),
        enabled=draw(st.booleans()),
        visible=draw(st.booleans()),
        scrollable=draw(st.booleans()),
    )


def holding(children: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    @st.composite
    def made(draw: st.DrawFn) -> Node:
        above = draw(leaves())
        return node(
            above.text,
            (above.bounds.left, above.bounds.top, above.bounds.right, above.bounds.bottom),
            *draw(st.lists(children, max_size=4)),
            class_name=above.class_name,
            enabled=above.enabled,
            scrollable=above.scrollable,
        )

    return made()


trees = st.recursive(leaves(), holding, max_leaves=8)
screens = st.lists(trees, max_size=5).map(lambda nodes: screen_of(dump(window(*nodes))))


@st.composite
def literals(draw: st.DrawFn) -> dict[str, object]:
    words = labels.filter(bool)
    choices = {
        "text": words,
        "textContains": words,
        "textStartsWith": words,
        "textMatches": st.sampled_from([".*", "Buy.*", "[A-Z]\\w+", "😀|B"]),
        "description": words,
        "resourceId": st.sampled_from(["one", "a:id/one", "two"]),
        "className": st.sampled_from([each for each in CLASSES if each]),
        "clickable": st.booleans(),
        "enabled": st.booleans(),
    }
    names = draw(st.sets(st.sampled_from(sorted(choices)), min_size=1, max_size=2))
    return {name: draw(choices[name]) for name in sorted(names)}


@st.composite
def selectors(draw: st.DrawFn, *, depth: int = 2) -> Selector:
    given_fields = draw(literals())
    if depth:
        for name in draw(
            st.sets(st.sampled_from(["within", "has", "leftOf", "rightOf", "above", "below"]), max_size=2)
        ):
            given_fields[name] = draw(selectors(depth=depth - 1)).model_dump(by_alias=True, exclude_none=True)
    if draw(st.booleans()):
        given_fields["index"] = draw(st.integers(0, 3))
    return Selector.model_validate(given_fields)


@st.composite
def cut_dumps(draw: st.DrawFn) -> str:
    xml = dump(window(draw(trees)))
    return xml[: draw(st.integers(0, len(xml)))]


def visible(matcher: Matcher, each: Node) -> bool:
    return each.visible and matcher.visible_bounds(each).area > 0


def oracle(where: Screen, selector: Selector) -> list[Node]:
    """The visible nodes that match a selector of only a text, written again as plainly as can be."""

    def plain(text: str) -> str:
        dotted = "".join("." * (len(each.encode("utf-16-le")) // 2) if ord(each) > 0xFFFF else each for each in text)
        return unicodedata.normalize("NFC", dotted).strip()

    assert where.root is not None
    assert selector.text is not None
    matcher = Matcher(where)
    wanted = plain(selector.text)
    return [each for each in where.root.walk() if plain(each.text) == wanted and visible(matcher, each)]


def seen(outcome: Outcome) -> tuple[object, ...]:
    match outcome:
        case Matched():
            return ("matched", outcome.node.text, outcome.visible_bounds)
        case Ambiguous():
            return ("ambiguous", [(each.text, each.bounds) for each in outcome.candidates], outcome.reason)
        case Disabled():
            return ("disabled", [(each.text, each.bounds) for each in outcome.nodes])
        case NotFound():
            return ("not found", outcome.reason)


@examples
@given(screens, selectors(), st.booleans())
def test_any_selector_on_any_screen_has_one_answer(where: Screen, selector: Selector, touch: bool) -> None:
    matcher = Matcher(where)
    outcome = matcher.match(selector, touch=touch)
    match outcome:
        case Matched():
            assert visible(matcher, outcome.node)
            assert outcome.node.enabled or not touch
            assert outcome.visible_bounds.area > 0
            assert outcome.node.bounds.contains(*outcome.visible_bounds.center)
        case Ambiguous():
            assert len(outcome.candidates) > 1
        case Disabled():
            assert touch
            assert all(not each.enabled for each in outcome.nodes)
        case NotFound():
            assert outcome.reason
    assert seen(matcher.match(selector, touch=touch)) == seen(outcome)


@examples
@given(screens, st.sampled_from(["Buy", "Buy now", "50%", "..", "😀", "Délete"]), st.booleans())
def test_of_several_matches_none_is_picked(where: Screen, label: str, touch: bool) -> None:
    selector = Selector(text=label)
    matching = oracle(where, selector)
    candidates = [each for each in matching if each.enabled] if touch else matching
    outcome = Matcher(where).match(selector, touch=touch)
    if len(candidates) == 1:
        assert isinstance(outcome, Matched)
    elif candidates:
        assert isinstance(outcome, Ambiguous)
        assert len(outcome.candidates) == len(candidates)
    else:
        assert isinstance(outcome, Disabled if matching else NotFound)


@examples
@given(st.lists(trees, max_size=4), selectors(), st.permutations(range(4)))
def test_the_order_of_the_windows_changes_nothing(nodes: list[Node], selector: Selector, order: list[int]) -> None:
    roots = [
        window(*nodes),
        window(node("12:30", (0, 0, 50, 50)), bounds=(0, 0, 1080, 80), package=SYSTEM_UI),
        window(bounds=(0, 2300, 1080, 2400), package=SYSTEM_UI),
        window(node("Buy", (0, 1500, 100, 1600)), package="com.android.inputmethod.latin"),
    ]
    straight = Matcher(screen_of(dump(*roots))).match(selector, touch=True)
    shuffled = Matcher(screen_of(dump(*(roots[place] for place in order)))).match(selector, touch=True)
    assert seen(shuffled) == seen(straight)


@examples
@given(screens, st.sampled_from(["Buy", "Buy now", "Délete"]), st.sampled_from("\u200b\u200e\u2067\ufeff\u2060"))
def test_marks_that_nobody_sees_change_nothing(where: Screen, label: str, mark: str) -> None:
    plain = Matcher(where).match(Selector(text=label), touch=True)
    marked = Matcher(where).match(
        Selector(text=f" {mark}{mark.join(unicodedata.normalize('NFD', label))}\u00a0"), touch=True
    )
    assert seen(marked) == seen(plain)


@examples
@given(st.text() | cut_dumps())
def test_any_text_is_a_screen_or_is_refused(xml: str) -> None:
    try:
        whole = isinstance(parse(xml), Hierarchy)
    except ScreenUnreadableError as refused:
        whole = refused.raw == xml
    assert whole


@examples
@given(screens, st.text(min_size=1, max_size=20))
def test_any_text_as_xpath_gives_an_answer(where: Screen, expression: str) -> None:
    assert Matcher(where).match(Selector(xpath=expression), touch=True) is not None
