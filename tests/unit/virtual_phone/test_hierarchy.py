"""Dumps look like those of the uiautomator2 server on a real phone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from support.dumps import DUMPS
from unit.virtual_phone.phones import screen, selector, shipped

OWN_SAMPLE = Path(__file__).parents[2] / "data" / "virtual_phone" / "window_dump.xml"
REAL_DUMPS = [path for path in DUMPS if path.name.startswith("nora__")]
"""Those that the same release of Android wrote."""
ORDER = [
    "NAF",
    "index",
    "text",
    "resource-id",
    "class",
    "package",
    "content-desc",
    "checkable",
    "checked",
    "clickable",
    "enabled",
    "focusable",
    "focused",
    "scrollable",
    "long-clickable",
    "password",
    "selected",
    "visible-to-user",
    "bounds",
    "drawing-order",
    "hint",
    "display-id",
]
SCENARIOS = ("chat", "login", "settings", "shop")


def names_in(text: str) -> list[str]:
    """Attribute names of the first node, in the order of the text."""
    node = re.search(r"<node([^>]*)>", text)
    assert node is not None
    return re.findall(r' ([\w-]+)=(?:"[^"]*"|\'[^\']*\')', node.group(1))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_node_has_every_attribute_in_the_order_of_the_server(name: str) -> None:
    for node in shipped(name).dumped():
        assert [name for name in ORDER if name in node.attrib] == node.keys()
        assert set(ORDER) - set(node.keys()) <= {"NAF"}


@pytest.mark.parametrize("path", [OWN_SAMPLE, *REAL_DUMPS], ids=lambda path: path.stem)
def test_attribute_order_agrees_with_a_captured_dump(path: Path) -> None:
    captured = names_in(path.read_text(encoding="utf-8"))
    ours = names_in(shipped("chat").phone.dump())

    assert [name for name in ours if name in captured] == [name for name in captured if name in ours]


def test_dump_starts_as_androids_serializer_does() -> None:
    document = shipped("shop").phone.dump()

    assert document.startswith(
        "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>\r\n<hierarchy rotation=\"0\">\r\n  <node"
    )


def test_system_windows_come_first_and_the_app_last() -> None:
    roots = etree.fromstring(shipped("shop").phone.dump().encode()).findall("node")

    assert [root.get("package") for root in roots] == ["com.android.systemui"] * 3 + ["com.example.shop"]


def test_active_only_dump_has_the_apps_root_alone() -> None:
    roots = etree.fromstring(shipped("shop").phone.dump(active_only=True).encode()).findall("node")

    assert [root.get("package") for root in roots] == ["com.example.shop"]


def test_keyboard_is_a_window_of_its_own_before_the_app() -> None:
    hand = shipped("login")
    hand.tap(resourceId="com.example.bank:id/username")
    roots = etree.fromstring(hand.phone.dump().encode()).findall("node")

    assert [root.get("package") for root in roots][3:] == ["com.google.android.inputmethod.latin", "com.example.bank"]


@pytest.mark.parametrize(
    ("text", "dumped"),
    [
        ("a & b < c > d", 'text="a &amp; b &lt; c &gt; d"'),
        ('say "hi"', "text='say \"hi\"'"),
        ("it's", 'text="it\'s"'),
        ('it\'s "ok"', "text='it&apos;s \"ok\"'"),
        ("two\nlines\tand\rmore", 'text="two&#10;lines&#9;and&#13;more"'),
        ("smile 😀!", 'text="smile ..!"'),
        ("中文 é Ł", 'text="中文 é Ł"'),
        ("a\u0001b\u007fc\u0085d\u0099e", 'text="a.b.c\u0085d.e"'),
        ("x\ufffey", 'text="x.y"'),
        ("", 'text=""'),
    ],
)
def test_text_is_escaped_as_androids_serializer_does(text: str, dumped: str) -> None:
    assert dumped in screen({"type": "text", "text": "{{t}}", "id": "t"}, variables={"t": text}).phone.dump()


@given(st.text(max_size=40))
def test_dump_of_any_text_is_well_formed(text: str) -> None:
    hand = screen(
        {"type": "text", "text": "{{t}}", "description": "{{t}}"},
        {"type": "field", "hint": "{{t}}"},
        variables={"t": text.encode("utf-8", "ignore").decode()},
    )

    etree.fromstring(hand.phone.dump().encode())


def test_selector_sees_the_emoji_that_the_dump_hides() -> None:
    hand = screen({"type": "text", "text": "Run 🎢"})

    assert hand.node(text="Run 🎢").text == "Run 🎢"


@pytest.mark.parametrize(
    ("widget", "naf"),
    [
        ({"type": "stack", "clickable": True, "height": 40}, True),
        ({"type": "stack", "clickable": True, "height": 40, "description": "Go"}, False),
        ({"type": "stack", "clickable": True, "children": [{"type": "text", "text": "Go"}]}, False),
        ({"type": "stack", "clickable": True, "children": [{"type": "icon", "icon": "x"}]}, True),
        ({"type": "stack", "height": 40}, False),
        ({"type": "stack", "clickable": True, "height": 40, "class": "android.widget.GridView"}, False),
    ],
)
def test_naf_marks_touchable_nodes_that_nothing_names(widget: dict[str, object], naf: bool) -> None:
    hand = screen({**widget, "id": "it"})
    node = next(node for node in hand.dumped() if node.get("resource-id", "").endswith(":id/it"))

    assert (node.get("NAF") == "true") is naf


def test_gone_siblings_leave_gaps_in_the_index() -> None:
    hand = screen(
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b", "visible_when": "never"},
        {"type": "text", "text": "c"},
        variables={"never": False},
    )

    seen = {node.get("text"): node.get("index") for node in hand.dumped() if node.get("text") in {"a", "b", "c"}}

    assert seen == {"a": "0", "c": "2"}


def test_children_scrolled_out_of_sight_are_skipped_and_the_rest_keep_their_index() -> None:
    rows = [{"type": "text", "text": f"row {n}", "height": 100} for n in range(30)]
    hand = screen({"type": "scroll", "children": rows})
    hand.phone.swipe([(500, 2000), (500, 500)], 100)
    seen = [(n.get("text"), n.get("index")) for n in hand.dumped() if str(n.get("text")).startswith("row")]

    assert seen[0] != ("row 0", "0")
    assert all(text == f"row {index}" for text, index in seen)


def test_recycled_rows_count_from_the_first_in_sight() -> None:
    hand = screen(
        {"type": "list", "items": "rows", "row": {"type": "text", "text": "row {{item}}", "height": 100}},
        variables={"rows": list(range(30))},
    )
    hand.phone.swipe([(500, 2000), (500, 500)], 100)
    seen = [n.get("index") for n in hand.dumped() if str(n.get("text")).startswith("row")]

    assert seen == [str(n) for n in range(len(seen))]


def test_partly_visible_row_is_clipped_to_its_list() -> None:
    hand = shipped("settings")
    rows = [n for n in hand.dumped() if n.get("resource-id") == "com.android.settings:id/recycler_view"]
    (list_bounds,) = (n.get("bounds") for n in rows)
    last = [n.get("bounds") for n in rows[0].findall("node")][-1]

    assert str(last).rpartition(",")[2] == str(list_bounds).rpartition(",")[2]


def test_node_of_zero_area_is_dumped_with_its_visible_twin() -> None:
    hand = shipped("shop", "zero_twin")
    hand.tap(text="Ceramic tea pot 0.8 l")
    twins = [n.get("bounds") for n in hand.dumped() if n.get("text") == "Add to cart"]

    assert twins[0] == "[0,0][0,0]"
    assert len(twins) == 2


def test_node_outside_the_display_keeps_its_raw_bounds() -> None:
    hand = screen({"type": "text", "text": "far", "ghost": "off_screen"})
    node = next(n for n in hand.dumped() if n.get("text") == "far")

    assert str(node.get("bounds")).startswith("[-")


def test_max_depth_cuts_deeper_levels() -> None:
    document = shipped("shop").phone.dump(max_depth=3)

    assert max(len(list(node.iterancestors())) for node in etree.fromstring(document.encode()).iter("node")) == 3


def test_compressed_dump_drops_frames_and_keeps_what_matters() -> None:
    hand = shipped("shop")
    full = hand.dumped()
    small = list(etree.fromstring(hand.phone.dump(compressed=True).encode()).iter("node"))

    assert len(small) < len(full)
    assert {n.get("text") for n in full} == {n.get("text") for n in small}


def test_rotation_is_in_the_head_and_in_the_bounds() -> None:
    hand = shipped("shop")
    hand.phone.set_orientation("left")
    root = etree.fromstring(hand.phone.dump(active_only=True).encode())

    assert (root.get("rotation"), root[0].get("bounds")) == ("1", "[0,0][2400,1080]")


def test_empty_field_shows_its_hint_as_text_as_android_does() -> None:
    hand = screen({"type": "field", "id": "f", "hint": "Your name"})
    node = next(n for n in hand.dumped() if n.get("hint"))

    assert (node.get("text"), node.get("hint")) == ("Your name", "Your name")


def test_password_is_dumped_as_dots() -> None:
    hand = shipped("login")
    hand.enter("Sun", resourceId="com.example.bank:id/password")
    node = next(n for n in hand.dumped() if n.get("password") == "true")

    assert node.get("text") == "•••"


def test_range_widget_reads_as_a_float() -> None:
    hand = screen({"type": "slider", "bind": "v", "id": "s"}, variables={"v": 60})

    assert next(n for n in hand.dumped() if n.get("class") == "android.widget.SeekBar").get("text") == "60.0"


def test_compose_screen_has_no_ids_of_its_own() -> None:
    app = [n for n in shipped("chat").dumped(active_only=True) if n.get("resource-id")]

    assert [n.get("resource-id") for n in app] == ["android:id/content"]


def test_compose_field_holds_its_hint_in_a_child() -> None:
    hand = shipped("chat")
    field = next(n for n in hand.dumped() if n.get("class") == "android.widget.EditText")

    assert (field.get("text"), field.get("hint"), [n.get("text") for n in field]) == ("", "", ["Search chats"])


def test_dump_is_the_same_object_until_something_changes() -> None:
    hand = shipped("shop")

    assert hand.phone.dump() is hand.phone.dump()


def test_stock_dump_is_one_line_without_the_attributes_of_uiautomator2() -> None:
    document = shipped("shop").phone.dump_stock()

    assert "\n" not in document
    assert names_in(document)[-1] == "bounds"
    assert "visible-to-user" not in document


def test_stock_dump_is_well_formed() -> None:
    etree.fromstring(shipped("chat").phone.dump_stock().encode())


def test_find_and_dump_agree_on_bounds() -> None:
    hand = shipped("shop")
    for node in hand.phone.find(selector(clickable=True)):
        bounds = node.visible_bounds
        text = f'bounds="[{bounds.left},{bounds.top}][{bounds.right},{bounds.bottom}]"'
        assert text in hand.phone.dump()
