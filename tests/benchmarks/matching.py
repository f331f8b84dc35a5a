"""Reading a dump and finding a node in it: ours, and uiautomator2's xpath on the same tree."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.figures import Figure, interleaved, median_ms
from droidfleet_agent.screen.matching import Matched, Matcher
from droidfleet_agent.screen.node import Node
from droidfleet_shared.protocol.selector import Selector
from support.screens import WIDTH, dump, node, screen_of, window

ROUNDS = 100
SIZES = (100, 500)
MOST_MATCHING_MS = 2.0
NODES_IN_A_ROW = 10

SELECTOR = Selector(text="Add", right_of=Selector(text="Price 3"), within=Selector(class_name="ListView"))


def figures() -> list[Figure]:
    """Medians and ratios for small and large screens."""
    return [figure for size in SIZES for figure in _for_size(size)]


def _for_size(size: int) -> Sequence[Figure]:
    from uiautomator2.xpath import PageSource

    xml = dump(window(_list(size)))
    where = screen_of(xml)

    def match() -> object:
        found = Matcher(where).match(SELECTOR, touch=True)
        assert isinstance(found, Matched)
        return found

    def parse_and_match() -> object:
        found = Matcher(screen_of(xml)).match(Selector(text="Title 3"), touch=True)
        assert isinstance(found, Matched)
        return found

    def stock() -> object:
        (found,) = PageSource(xml).find_elements("//*[@text='Title 3']")
        return found

    contenders: dict[str, Callable[[], object]] = {"match": match, "whole": parse_and_match, "stock": stock}
    times = interleaved(contenders, rounds=ROUNDS)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        Figure(f"match in {size} nodes", median_ms(times["match"]), "ms", MOST_MATCHING_MS, note="with two relations"),
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
        clickable=True,
    )
