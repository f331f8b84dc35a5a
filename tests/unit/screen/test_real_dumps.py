"""Real dumps, captured by others, where the folder with them is at hand: each parses, and its labels are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_shared.protocol.selector import Selector
from droidfleet_shared.screen.matching import Ambiguous, Matched, Matcher
from droidfleet_shared.screen.node import Screen
from droidfleet_shared.screen.parse import parse
from droidfleet_shared.screen.windows import choose, rotated_display
from support.dumps import DUMPS, FOLDER

pytestmark = pytest.mark.skipif(not DUMPS, reason=f"no real dumps in {FOLDER}; DROIDFLEET_DUMPS names another folder")


def screen_of(path: Path) -> Screen:
    hierarchy = parse(path.read_text())
    display = rotated_display(1344, 2992, hierarchy.rotation)
    windows = choose(hierarchy.roots, input_methods=(), display=display)
    assert windows.root is not None
    return Screen(windows.root, windows.root.package, "", display, hierarchy.rotation, windows.keyboard)


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_every_visible_label_is_found_or_ambiguous_never_another(path: Path) -> None:
    matcher = Matcher(screen_of(path))
    for node in list(matcher.visible_nodes()):
        for selector, label in (
            (Selector(text=node.text) if node.text.strip() else None, "text"),
            (Selector(description=node.description) if node.description.strip() else None, "description"),
        ):
            if selector is None or matcher.visible_bounds(node).area == 0:
                continue
            outcome = matcher.match(selector, touch=False)
            among = outcome.candidates if isinstance(outcome, Ambiguous) else ()
            assert (isinstance(outcome, Matched) and outcome.node is node) or node in among, (label, selector)


@pytest.mark.skipif(not (FOLDER / "nora__ui3.xml").exists(), reason="this dump is not at hand")
def test_a_text_that_starts_with_line_breaks_is_found_without_them() -> None:
    matcher = Matcher(screen_of(FOLDER / "nora__ui3.xml"))
    broken = next(node for node in matcher.visible_nodes() if node.text.startswith("\n\n"))
    outcome = matcher.match(Selector(text=broken.text.strip()), touch=False)
    assert isinstance(outcome, Matched)
    assert outcome.node is broken
