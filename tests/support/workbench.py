"""A phone in memory with something for every action: a list that scrolls, a drop-down, a handle, two apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

from droidfleet_agent.driver.memory import Call, MemoryPhone, Page
from droidfleet_agent.driver.port import ScreenState
from droidfleet_shared.clock import Clock
from droidfleet_shared.screen.node import Node
from support.screens import PACKAGE, WHOLE, WIDTH, Flags, dump, node, window
from support.shop import button

OTHER = "com.example.other"
LAUNCHER = "com.example.launcher"
LIST = (0, 1000, WIDTH, 2200)
POPUP = (40, 600, 700, 1200)
ASLEEP = ScreenState(on=False, locked=True, secure=False)

COUNTRY: dict[str, object] = {"action": "SELECT_OPTION", "selector": {"resourceId": "country"}}


def rows(texts: Sequence[str], *, place: tuple[int, int, int, int] = LIST, **flags: Unpack[Flags]) -> Node:
    """A list that shows these rows."""
    left, top, right, _ = place
    shown = [node(text, (left, top + 100 * at, right, top + 100 * at + 100)) for at, text in enumerate(texts)]
    return node("", place, *shown, **{"scrollable": True, "resource_id": f"{PACKAGE}:id/rows"} | flags)


def main(texts: Sequence[str] = ("Row 1", "Row 2", "Row 3"), *, country: str = "Choose") -> Node:
    """The main screen, its list scrolled to some rows."""
    opener = node(country, (40, 300, 440, 400), resource_id=f"{PACKAGE}:id/country", clickable=True)
    return window(button("Hold me", 100), opener, button("Handle", 500), button("Place", 700), rows(texts))


def drop_down(*texts: str) -> Node:
    """A window of its own with options."""
    return window(
        *(
            node(text, (40, 600 + 100 * at, 700, 700 + 100 * at), clickable=True, class_name="Option")
            for at, text in enumerate(texts)
        ),
        bounds=POPUP,
    )


def pages() -> dict[str, Page]:
    """The pages by name."""
    taps = {f"{PACKAGE}:id/country": "countries", "Choose": "countries"}
    return {
        "main": Page(dump(main()), taps=taps, swipes={"UP": "further"}, drags={"Handle": "moved"}, back="launcher"),
        "further": Page(dump(main(("Row 3", "Row 4", "Row 5"))), swipes={"UP": "last", "DOWN": "main"}),
        "last": Page(dump(main(("Row 5", "Row 6", "Row 7"))), swipes={"DOWN": "further"}),
        "moved": Page(dump(window(button("Place", 500), button("Handle", 700)))),
        "countries": Page(
            dump(drop_down("Denmark", "Norway")),
            taps={"Denmark": "denmark", "Norway": "norway"},
            swipes={"UP": "countries further"},
        ),
        "countries further": Page(
            dump(drop_down("Norway", "Sweden")),
            taps={"Norway": "norway", "Sweden": "sweden"},
            swipes={"DOWN": "countries"},
        ),
        "denmark": Page(dump(main(country="Country: Denmark"))),
        "norway": Page(dump(main(country="Norway"))),
        "sweden": Page(dump(main(country="Sweden"))),
        "launcher": Page(dump(window(bounds=WHOLE, package=LAUNCHER))),
        "other": Page(dump(window(node("The other app", (40, 100, 400, 200), package=OTHER), package=OTHER))),
        "empty": Page(dump(window())),
    }


def workbench(
    clock: Clock,
    *,
    start: str = "main",
    latency: Mapping[Call, float] | None = None,
    more: Mapping[str, Page] | None = None,
) -> MemoryPhone:
    """A phone with the workbench in front."""
    return MemoryPhone(
        {**pages(), **(more or {})},
        start=start,
        clock=clock,
        latency=latency,
        apps={PACKAGE: "main", OTHER: "other"},
        home="launcher",
    )
