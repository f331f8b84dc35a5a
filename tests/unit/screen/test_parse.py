"""Parsing survives what phones really write, and refuses what is not a screen."""

from __future__ import annotations

import pytest

from droidfleet_shared.screen.node import Bounds, Node
from droidfleet_shared.screen.parse import MAX_DEPTH, Hierarchy, ScreenUnreadableError, parse, parse_bounds
from droidfleet_shared.screen.write import write
from support.screens import PACKAGE, dump, field, node, window


def shapes(hierarchy: Hierarchy) -> list[tuple[str, str, str, Bounds]]:
    return [
        (each.class_name, each.text, each.description, each.bounds) for root in hierarchy.roots for each in root.walk()
    ]


def test_a_written_dump_reads_back_the_same() -> None:
    root = window(node('It\'s "ok" <&>\n\ttwo', (1, 2, 3, 4), clickable=True), field((5, 6, 7, 8), hint="Email"))
    first = parse(dump(root, rotation=3))
    assert shapes(parse(write(first))) == shapes(first)
    assert first.rotation == 3
    assert first.roots[0].children[0].text == 'It\'s "ok" <&>\n\ttwo'
    assert first.roots[0].children[0].parent is first.roots[0]


@pytest.mark.parametrize("class_name", ["", "  ", "a b", "1abc", "a/b", "$Inner", "Größe", "<x>"])
def test_a_blank_or_odd_class_name_does_not_break_the_screen(class_name: str) -> None:
    hierarchy = parse(dump(window(node("Pay", (0, 0, 9, 9), class_name=class_name))))
    assert hierarchy.roots[0].children[0].class_name == class_name


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('<hierarchy rotation="0"><node text="a" bounds="[0,0', "unclosed token"),
        ('<hierarchy rotation="0"><node text="a">', "no element found"),
        ('<hierarchy rotation="0"><node text="a" text="b"/></hierarchy>', "duplicate attribute"),
        ("", "no element found"),
        ("ERROR: could not get idle state.", "syntax error"),
        ("<html><body/></html>", "not with <hierarchy>"),
        ('<!DOCTYPE h [<!ENTITY a "b">]><hierarchy/>', "document type"),
        ("<hierarchy>" + "<node>" * (MAX_DEPTH + 1) + "</node>" * (MAX_DEPTH + 1) + "</hierarchy>", "nested deeper"),
    ],
)
def test_a_cut_or_foreign_dump_is_refused_with_the_reason_and_the_raw_text(broken: str, reason: str) -> None:
    with pytest.raises(ScreenUnreadableError) as refused:
        parse(broken)
    assert refused.value.raw == broken
    assert refused.value.code == "SCREEN_UNREADABLE"
    assert reason in refused.value.message


@pytest.mark.parametrize("written", ["a&#1;b", "a&#x1F;b", "a\x01b", "a&#xFFFE;b", "a&#55357;b", "a\ud83db"])
def test_control_characters_are_read_as_dots(written: str) -> None:
    hierarchy = parse(f'<hierarchy rotation="0"><node text="{written}" bounds="[0,0][1,1]"/></hierarchy>')
    assert hierarchy.roots[0].text == "a.b"


def test_repairing_control_characters_keeps_legal_references() -> None:
    hierarchy = parse('<hierarchy><node text="&#1;&#10;&#x41;&#128512;&amp;"/></hierarchy>')
    assert hierarchy.roots[0].text == ".\nA😀&"


def test_missing_attributes_take_neutral_values() -> None:
    only = parse("<hierarchy><node/></hierarchy>").roots[0]
    assert (only.text, only.enabled, only.visible, only.clickable, only.bounds.area) == ("", True, True, False, 0)


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("[0,84][1080,2400]", Bounds(0, 84, 1080, 2400)),
        ("[-10,-5][3,4]", Bounds(-10, -5, 3, 4)),
        ("[9,9][3,4]", Bounds(9, 9, 3, 4)),
        ("", Bounds(0, 0, 0, 0)),
        ("[1,2][3]", Bounds(0, 0, 0, 0)),
        ("[1,2][3,4] ", Bounds(0, 0, 0, 0)),
        ("[99999999999,0][1,1]", Bounds(0, 0, 0, 0)),
    ],
)
def test_bounds_are_read_whole_or_are_without_area(text: str, bounds: Bounds) -> None:
    assert parse_bounds(text) == bounds


def test_an_empty_hierarchy_has_no_windows() -> None:
    assert parse('<hierarchy rotation="0" />') == Hierarchy((), 0)


@pytest.mark.parametrize(("written", "rotation"), [("1", 1), ("", 0), ("-1", 0), ("x", 0), ("4", 0)])
def test_an_odd_rotation_is_read_as_a_quarter_turn_or_none(written: str, rotation: int) -> None:
    assert parse(f'<hierarchy rotation="{written}"/>').rotation == rotation


def test_nodes_outside_of_the_known_attributes_are_read() -> None:
    extra = f'<hierarchy><node NAF="true" package="{PACKAGE}" drawing-order="3" display-id="0" text="x"/></hierarchy>'
    read: Node = parse(extra).roots[0]
    assert (read.text, read.package) == ("x", PACKAGE)
