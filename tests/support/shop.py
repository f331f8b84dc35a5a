"""A small shop for the memory phone: a home page with a search field, a list, a detail page."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from droidfleet_agent.driver.memory import Call, MemoryPhone, Page
from droidfleet_shared.clock import Clock
from droidfleet_shared.screen.node import Node
from support.screens import PACKAGE, dump, field, node, window

BUTTON = "android.widget.Button"
SEARCH = (40, 200, 1040, 320)


def button(label: str, top: int, *, enabled: bool = True, left: int = 40) -> Node:
    return node(label, (left, top, left + 400, top + 100), class_name=BUTTON, clickable=True, enabled=enabled)


def pages() -> dict[str, Page]:
    """The pages by name."""
    return {
        "home": Page(
            dump(
                window(
                    node("Shop", (40, 100, 400, 180)),
                    field(SEARCH, hint="Search", resource_id=f"{PACKAGE}:id/search"),
                    field((40, 340, 1040, 440), hint="Password", resource_id=f"{PACKAGE}:id/password", password=True),
                    button("Tea", 500),
                    button("Sold out", 700, enabled=False),
                    button("Delete", 900),
                    button("Delete", 1100),
                )
            ),
            taps={"Tea": "detail"},
        ),
        "detail": Page(
            dump(window(node("Green tea", (40, 100, 400, 180)), button("Add to cart", 2100))),
            taps={"Add to cart": "cart"},
            back="home",
            activity=".DetailActivity",
        ),
        "cart": Page(dump(window(node("In your cart", (40, 100, 400, 180)))), back="detail"),
        "empty": Page(dump(window())),
    }


def shop(
    clock: Clock,
    *,
    start: str = "home",
    latency: Mapping[Call, float] | None = None,
    typist: Callable[[str], str] = str,
    opens_keyboard: bool = False,
    more: Mapping[str, Page] | None = None,
) -> MemoryPhone:
    """A phone with the shop in front."""
    return MemoryPhone(
        {**pages(), **(more or {})},
        start=start,
        clock=clock,
        latency=latency,
        typist=typist,
        opens_keyboard=opens_keyboard,
    )
