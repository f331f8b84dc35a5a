"""Reading a dump and finding a node in it: ours, and uiautomator2's xpath on the same tree."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.figures import Figure, interleaved, median_ms
from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Matched, Matcher
from droidfleet_shared.screen.node import Node
from support.screens import WIDTH, dump, node, screen_of, window

ROUNDS = 100
SIZES = (100, 500)
LARGE = 500
MOST_LITERAL_MS = 2.0
MOST_RELATIONS_MS = 10.0
NODES_IN_A_ROW = 10

RELATIONS = Selector(text="Add", right_of=Selector(text="Price 3"), within=Selector(class_name="ListView"))
RELATIONS_XPATH = "//ListView//*[@text='Price 3']/following-sibling::*[@text='Add']"

LITERALS: Mapping[str, Selector] = {
    "text": Selector(text="Title 48"),
    "textContains": Selector(text_contains="Seller 48"),
    "textStartsWith": Selector(text_starts_with="Title 48"),
    "textMatches": Selector(text_matches=r"Title 4[8]"),
    "description": Selector(description="Row 48"),
    "descriptionContains": Selector(description_contains="w 48"),
    "descriptionStartsWith": Selector(description_starts_with="Row 48"),
    "descriptionMatches": Selector(description_matches=r"Row 4[8]"),
    "hint": Selector(hint="Nowhere"),
    "resourceId": Selector(resource_id="c3"),
    "className": Selector(class_name="android.widget.TextView"),
    "packageName": Selector(package_name="com.example.shop"),
    **{
        flag: Selector.model_validate({flag: True})
        for flag in ("enabled", "checked", "selected", "focused", "clickable", "scrollable", "password")
    },
}
"""Every literal field, with values that match one node, none, a column, or all 500."""


def figures() -> list[Figure]:
    """Medians and ratios for small and large screens."""
    return [*_literals(), *(figure for size in SIZES for figure in _for_size(size))]


def _literals() -> Sequence[Figure]:
    where = screen_of(dump(window(_list(LARGE))))
    contenders: dict[str, Callable[[], object]] = {
        field: lambda selector=selector: Matcher(where).match(selector, touch=True)  # type: ignore[misc]  # bound now
        for field, selector in LITERALS.items()
    }
    times = interleaved(contenders, rounds=ROUNDS)
    slowest = max(times, key=lambda field: statistics.median(times[field]))
    name = f"match in {LARGE} nodes by the slowest literal field"
    return [Figure(name, median_ms(times[slowest]), "ms", MOST_LITERAL_MS, note=slowest)]


def _for_size(size: int) -> Sequence[Figure]:
    from uiautomator2.xpath import PageSource

    xml = dump(window(_list(size)))
    where = screen_of(xml)
    stock_tree = PageSource(xml)

    def literal() -> object:
        found = Matcher(where).match(Selector(text="Title 3"), touch=True)
        assert isinstance(found, Matched)
        return found

    def stock_literal() -> object:
        (found,) = stock_tree.find_elements("//*[@text='Title 3']")
        return found

    def relations() -> object:
        found = Matcher(where).match(RELATIONS, touch=True)
        assert isinstance(found, Matched)
        return found

    def stock_relations() -> object:
        (found,) = stock_tree.find_elements(RELATIONS_XPATH)
        return found

    def parse_and_match() -> object:
        found = Matcher(screen_of(xml)).match(Selector(text="Title 3"), touch=True)
        assert isinstance(found, Matched)
        return found

    def stock() -> object:
        (found,) = PageSource(xml).find_elements("//*[@text='Title 3']")
        return found

    contenders: dict[str, Callable[[], object]] = {
        "literal": literal,
        "stock literal": stock_literal,
        "relations": relations,
        "stock relations": stock_relations,
        "whole": parse_and_match,
        "stock": stock,
    }
    times = interleaved(contenders, rounds=ROUNDS)
    medians = {name: statistics.median(values) for name, values in times.items()}
    where_text = f"in {size} nodes"
    return [
        Figure(f"match {where_text}", median_ms(times["literal"]), "ms", MOST_LITERAL_MS, note="by text"),
        Figure(
            f"match {where_text}: uiautomator2 xpath", median_ms(times["stock literal"]), "ms", note="parsed before"
        ),
        Figure(f"match {where_text}, two relations", median_ms(times["relations"]), "ms", MOST_RELATIONS_MS),
        Figure(f"match {where_text}, two relations: uiautomator2 xpath", median_ms(times["stock relations"]), "ms"),
        Figure(f"parse and match {size} nodes", median_ms(times["whole"]), "ms"),
        Figure(f"parse and match {size} nodes: uiautomator2 xpath", median_ms(times["stock"]), "ms"),
        Figure(f"parse and match {size} nodes / uiautomator2 xpath", medians["whole"] / medians["stock"], "x"),
    ]


def _list(size: int) -> Node:
    rows = (size - 2) // NODES_IN_A_ROW
    return node(
        "", (0, 100, WIDTH, 2300), *(_row(place, 100 + place * 40) for place in range(rows)), class_name="ListView"
    )


def _row(place: int, top: int) -> Node:
    texts = [f"Title {place}", f"Price {place}", "Add", "Remove", f"by Seller\u00a0{place}", "★★★★☆", "", "", ""]
    return node(
        "",
        (0, top, WIDTH, top + 40),
        *(
            node(text, (column * 120, top, column * 120 + 110, top + 40), resource_id=f"com.example.shop:id/c{column}")
            for column, text in enumerate(texts)
        ),
        class_name="android.view.ViewGroup",
        description=f"Row {place}",
        clickable=True,
    )
