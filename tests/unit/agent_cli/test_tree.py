"""`droidfleet-agent tree`: the lines that it prints."""

from __future__ import annotations

from droidfleet_agent.cli.tree import lines_of
from droidfleet_agent.session.seen import seen_tree
from droidfleet_shared.screen.matching import Matcher
from support.screens import node, screen

ROW = node(
    "",
    (0, 0, 1080, 200),
    node("Green tea", (0, 0, 400, 100)),
    node("$3.00\x1b", (0, 100, 400, 200)),
    class_name="android.view.ViewGroup",
    clickable=True,
)


def test_nodes_that_say_something_stand_under_each_other_with_their_selectors() -> None:
    tree = seen_tree(Matcher(screen(ROW)), max_bytes=100_000)
    assert lines_of(tree, every=False) == [
        "com.example.shop",
        '  ViewGroup  {"className": "android.view.ViewGroup", "has": {"text": "Green tea"}}',
        '    TextView "Green tea"  {"text": "Green tea"}',
        '    TextView "$3.00."  {"className": "android.widget.TextView", "below": {"text": "Green tea"}}',
    ]


def test_all_shows_the_frames_too() -> None:
    tree = seen_tree(Matcher(screen(ROW)), max_bytes=100_000)
    assert "FrameLayout" in lines_of(tree, every=True)[1]
