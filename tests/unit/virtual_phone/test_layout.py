"""Whatever the widgets, children lie inside their containers and stacks do not overlap."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.model.spec import Flow
from droidfleet_agent.virtual_phone.model.text import text_size, text_width, wrapped
from droidfleet_agent.virtual_phone.model.view import ViewNode
from unit.virtual_phone.phones import APP, screen, selector

SIZES = st.one_of(st.none(), st.sampled_from(["fill", "wrap"]), st.integers(0, 500))
COMMON = st.fixed_dictionaries(
    {},
    optional={
        "weight": st.integers(1, 5),
        "padding": st.integers(0, 24),
        "margin": st.one_of(st.integers(0, 24), st.tuples(st.integers(0, 24), st.integers(0, 24)).map(list)),
        "align": st.sampled_from(["start", "center", "end"]),
    },
)


def sized(fields: dict[str, object], common: dict[str, object], width: object, height: object) -> dict[str, object]:
    size = {name: value for name, value in (("width", width), ("height", height)) if value is not None}
    return {**fields, **common, **size}


LEAVES = st.builds(
    sized,
    st.one_of(
        st.builds(lambda text: {"type": "text", "text": text}, st.text("ab 中\n", max_size=80)),
        st.builds(lambda text: {"type": "button", "text": text}, st.text("ab", max_size=20)),
        st.sampled_from(
            [
                {"type": "icon", "icon": "x"},
                {"type": "image"},
                {"type": "field", "hint": "h"},
                {"type": "switch", "text": "s"},
                {"type": "divider"},
                {"type": "space"},
            ]
        ),
    ),
    COMMON,
    SIZES,
    SIZES,
)


def container(children: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    fields = st.fixed_dictionaries(
        {
            "type": st.sampled_from(["column", "row", "stack", "scroll", "list"]),
            "children": st.lists(children, max_size=5),
        },
        optional={
            "gap": st.integers(0, 30),
            "justify": st.sampled_from(["start", "center", "end", "between"]),
            "align_items": st.sampled_from(["start", "center", "end"]),
        },
    )
    return st.builds(sized, fields, COMMON, SIZES, SIZES)


TREES = st.recursive(LEAVES, container, max_leaves=15)


def scrolls(node: ViewNode) -> bool:
    return node.spec.flow in (Flow.SCROLL_DOWN, Flow.SCROLL_ACROSS)


def app_nodes(tree: dict[str, object]) -> list[ViewNode]:
    hand = screen(tree)
    (root,) = (node for node in hand.phone.find(selector(packageName=APP)) if node.parent is None)
    return list(root.walk())


@given(TREES)
@settings(max_examples=60)
def test_children_lie_inside_their_containers_except_where_these_scroll(tree: dict[str, object]) -> None:
    for node in app_nodes(tree):
        for child in node.children:
            if not scrolls(node) and node.widget is not None and child.has_area:
                margin = child.spec.margin
                # A margin larger than its container pushes an empty child out; it then has no area.
                assert child.left - margin[0] >= node.left or child.w == 0
                assert child.right <= node.right
                assert child.bottom <= node.bottom
                assert child.top >= node.top


@pytest.mark.parametrize("flow", ["row", "stack"])
def test_what_fills_is_no_taller_than_its_container_though_a_margin_is(flow: str) -> None:
    filling, empty = {"type": "text", "text": "a", "height": "fill"}, {"type": "text", "text": "", "margin": 1}
    [root, *_] = app_nodes({"type": "row", "height": 1, "children": [{"type": flow, "children": [filling, empty]}]})
    [inner] = [node for node in root.walk() if len(node.children) == 2]
    assert inner.children[0].bottom <= inner.bottom


@given(TREES)
@settings(max_examples=60)
def test_siblings_in_a_line_never_overlap(tree: dict[str, object]) -> None:
    for node in app_nodes(tree):
        if node.spec.flow in (Flow.COLUMN, Flow.SCROLL_DOWN):
            ends = [(child.top, child.bottom) for child in node.children]
        elif node.spec.flow in (Flow.ROW, Flow.SCROLL_ACROSS):
            ends = [(child.left, child.right) for child in node.children]
        else:
            continue
        for (_, end), (start, _) in itertools.pairwise(ends):
            assert end <= start


@given(TREES)
@settings(max_examples=40)
def test_visible_part_lies_inside_the_node_its_container_and_the_display(tree: dict[str, object]) -> None:
    for node in app_nodes(tree):
        if node.shown:
            assert node.left <= node.seen_left <= node.seen_right <= node.right
            assert node.top <= node.seen_top <= node.seen_bottom <= node.bottom
            assert node.parent is None or node.parent.seen_top <= node.seen_top
            assert node.seen_bottom <= 2400


@given(TREES)
@settings(max_examples=20)
def test_layout_is_the_same_every_time(tree: dict[str, object]) -> None:
    assert screen(tree).phone.dump() == screen(tree).phone.dump()


def heights(*widgets: dict[str, object]) -> list[int]:
    hand = screen({"type": "column", "id": "box", "height": 400, "children": list(widgets)})
    (box,) = hand.phone.find(selector(resourceId=f"{APP}:id/box"))
    return [child.h for child in box.children]


def test_weights_share_what_is_left() -> None:
    filler = {"type": "column"}

    assert heights({"type": "space", "height": 100}, {**filler, "weight": 1}, {**filler, "weight": 2}) == [
        262,
        262,
        525,
    ]


def test_fill_takes_what_is_left() -> None:
    assert heights({"type": "space", "height": 100}, {"type": "column", "height": "fill"}) == [262, 788]


def test_last_child_of_a_full_column_is_squeezed_not_pushed_out() -> None:
    assert heights({"type": "space", "height": 300}, {"type": "space", "height": 300}) == [788, 262]


def test_margins_gaps_and_padding_add_up() -> None:
    hand = screen(
        {
            "type": "column",
            "id": "box",
            "padding": 8,
            "gap": 8,
            "children": [
                {"type": "space", "height": 16, "margin": [0, 8], "description": "a"},
                {"type": "space", "height": 16, "description": "b"},
            ],
        }
    )
    box = hand.node(resourceId=f"{APP}:id/box").bounds
    first, second = hand.node(description="a").bounds, hand.node(description="b").bounds

    assert (first.top - box.top, second.top - first.bottom, box.bottom - second.bottom) == (42, 42, 21)


def test_columns_of_a_list_are_equally_wide() -> None:
    hand = screen(
        {"type": "list", "columns": 3, "items": "rows", "row": {"type": "space", "height": 50, "description": "cell"}},
        variables={"rows": list(range(7))},
    )
    cells = [node.bounds for node in hand.nodes(description="cell")]

    assert [(cell.left, cell.right) for cell in cells[:3]] == [(0, 360), (360, 720), (720, 1080)]
    assert len(cells) == 7


def test_list_builds_only_the_rows_in_sight() -> None:
    hand = screen(
        {"type": "list", "items": "rows", "row": {"type": "text", "text": "row {{item}}", "height": 60}},
        variables={"rows": {"generate": {"count": 2000, "item": "{{number}}"}}},
    )

    assert len(hand.dumped()) < 80


@given(st.text("ab 中\nW", max_size=120), st.integers(10, 400))
def test_wrapped_lines_fit_and_lose_no_letter(text: str, width: int) -> None:
    lines = wrapped(text, 10.0, width)

    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(len(line) <= 1 or text_width(line, 10.0) <= width + 10 for line in lines)


def test_text_taller_than_its_lines_ends_in_an_ellipsis() -> None:
    assert wrapped("one two three four", 10.0, 40, 2)[-1].endswith("…")


def test_empty_text_is_one_line_high() -> None:
    assert text_size("", 10.0, 100) == (0, 13)
