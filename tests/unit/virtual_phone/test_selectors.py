"""Selectors behave like those of the uiautomator2 server: every mask bit, chains, instances, Java's patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.selectors import SelectorError, java_pattern, object_info, uses_ui_selector
from unit.virtual_phone.phones import APP, BITS, Hand, chained, ids, screen, selector, shipped


@pytest.fixture(name="hand")
def make_hand() -> Hand:
    return screen(
        {
            "type": "text",
            "id": "title",
            "text": "Settings",
            "description": "The title",
            "on_long_click": [{"toast": "x"}],
        },
        {"type": "button", "id": "save", "text": "Save", "enabled_when": "never"},
        {"type": "switch", "id": "wifi", "text": "Wi-Fi", "bind": "on"},
        {"type": "field", "name": "f", "id": "name", "hint": "Name"},
        {"type": "text", "id": "tab", "text": "Tab", "selected_when": "on", "focusable": False},
        {
            "type": "scroll",
            "id": "scroller",
            "class": "android.widget.ScrollView",
            "children": [{"type": "text", "text": f"Row {n}", "id": "row", "height": 100} for n in range(40)],
        },
        variables={"never": False, "on": True},
        on_open=[{"focus": "f"}],
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("text", "Settings", ["title"]),
        ("textContains", "etting", ["title"]),
        ("textMatches", "S[a-z]+s", ["title"]),
        ("textStartsWith", "Set", ["title"]),
        ("className", "android.widget.Switch", ["wifi"]),
        ("classNameMatches", r".*\.Swit\w+", ["wifi"]),
        ("description", "The title", ["title"]),
        ("descriptionContains", "he ti", ["title"]),
        ("descriptionMatches", "The .*", ["title"]),
        ("descriptionStartsWith", "The t", ["title"]),
        ("checkable", True, ["wifi"]),
        ("checked", True, ["wifi"]),
        ("longClickable", True, ["title", "name"]),
        ("scrollable", True, ["scroller"]),
        ("enabled", False, ["save"]),
        ("focused", True, ["name"]),
        ("selected", True, ["tab"]),
        ("resourceId", f"{APP}:id/save", ["save"]),
        ("resourceIdMatches", r".*:id/s\w+e", ["save"]),
    ],
)
def test_field_selects(hand: Hand, field: str, value: object, expected: list[str]) -> None:
    assert ids(hand.phone.find(selector(**{field: value}))) == expected


@pytest.mark.parametrize(
    ("field", "expected"), [("clickable", ["save", "wifi", "name"]), ("focusable", ["save", "wifi", "name"])]
)
def test_flag_selects_within_the_app(hand: Hand, field: str, expected: list[str]) -> None:
    assert ids(hand.phone.find(selector(packageName=APP, **{field: True}))) == expected


def test_package_selects_its_window_alone(hand: Hand) -> None:
    found = hand.phone.find(selector(packageNameMatches=r"com\.android\..*"))

    assert {node.package for node in found} == {"com.android.systemui"}


def test_index_is_the_position_in_the_parent(hand: Hand) -> None:
    found = hand.phone.find(selector(index=2, packageName=APP, checkable=True))

    assert ids(found) == ["wifi"]


def test_instance_takes_one_match_in_document_order(hand: Hand) -> None:
    found = hand.phone.find(selector(resourceId=f"{APP}:id/row", instance=2))

    assert [node.text for node in found] == ["Row 2"]


@pytest.mark.parametrize("instance", [-1, 99])
def test_instance_beyond_the_matches_finds_nothing(hand: Hand, instance: int) -> None:
    assert hand.phone.find(selector(text="Save", instance=instance)) == []


def test_fields_without_their_bit_do_not_count(hand: Hand) -> None:
    assert ids(hand.phone.find({"mask": BITS["text"], "text": "Save", "className": "nothing"})) == ["save"]


def test_every_given_field_has_to_hold(hand: Hand) -> None:
    assert hand.phone.find(selector(text="Save", enabled=True)) == []


def test_child_is_any_descendant() -> None:
    hand = screen(
        {
            "type": "row",
            "id": "outer",
            "children": [{"type": "column", "children": [{"type": "text", "id": "deep", "text": "Deep"}]}],
        }
    )
    found = hand.phone.find(chained(selector(resourceId=f"{APP}:id/outer"), ("child", selector(text="Deep"))))

    assert ids(found) == ["deep"]


def test_sibling_is_another_child_of_the_same_parent(hand: Hand) -> None:
    found = hand.phone.find(
        chained(selector(text="Settings"), ("sibling", selector(className="android.widget.Button")))
    )

    assert ids(found) == ["save"]


def test_chain_goes_on_from_each_step(hand: Hand) -> None:
    steps = (("sibling", selector(resourceId=f"{APP}:id/scroller")), ("child", selector(text="Row 1")))

    assert [node.text for node in hand.phone.find(chained(selector(text="Save"), *steps))] == ["Row 1"]


def test_instance_of_the_last_step_counts_its_matches(hand: Hand) -> None:
    step = ("child", selector(className="android.widget.TextView", instance=3))
    found = hand.phone.find(chained(selector(resourceId=f"{APP}:id/scroller"), step))

    assert [node.text for node in found] == ["Row 3"]


def test_nodes_out_of_sight_never_match(hand: Hand) -> None:
    assert hand.phone.find(selector(text="Row 39")) == []


def test_exist_ignores_the_instance_as_the_server_does(hand: Hand) -> None:
    assert hand.phone.exists(selector(text="Save", instance=9))


def test_exist_with_a_child_honours_the_instance(hand: Hand) -> None:
    chain = chained(selector(resourceId=f"{APP}:id/scroller"), ("child", selector(text="Row 0", instance=9)))

    assert not hand.phone.exists(chain)


def test_active_window_comes_first() -> None:
    hand = shipped("login")
    hand.tap(resourceId="com.example.bank:id/username")
    found = hand.phone.find(selector(className="android.widget.ImageView"))

    assert found[0].package == "com.example.bank"


@pytest.mark.parametrize("extra", [{"index": 0}, {"instance": 0}])
def test_info_has_no_resource_name_on_the_older_path(hand: Hand, extra: dict[str, object]) -> None:
    query = selector(text="Save", **extra)
    (node,) = hand.phone.find(selector(text="Save"))

    assert hand.phone.info(node, query)["resourceName"] is None


def test_info_is_what_the_server_answers(hand: Hand) -> None:
    node = hand.node(text="Wi-Fi")
    bounds = node.visible_bounds
    rectangle = {"left": bounds.left, "top": bounds.top, "right": bounds.right, "bottom": bounds.bottom}

    assert hand.phone.info(node, selector(text="Wi-Fi")) == {
        "bounds": rectangle,
        "visibleBounds": rectangle,
        "childCount": 0,
        "className": "android.widget.Switch",
        "contentDescription": "",
        "packageName": APP,
        "text": "Wi-Fi",
        "resourceName": f"{APP}:id/wifi",
        "checkable": True,
        "checked": True,
        "clickable": True,
        "enabled": True,
        "focusable": True,
        "focused": False,
        "longClickable": False,
        "scrollable": False,
        "selected": False,
    }


def test_child_and_sibling_use_the_older_path() -> None:
    assert uses_ui_selector(chained(selector(text="A"), ("child", selector(text="B"))))


def test_plain_selector_uses_the_newer_path() -> None:
    assert not uses_ui_selector(selector(text="A"))


def test_node_without_id_has_no_resource_name() -> None:
    assert object_info(shipped("chat").node(text="Plover"), with_resource_name=True)["resourceName"] is None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("Save", "Save", True),
        ("Sav", "Save", False),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("(?i)save", "SAVE", True),
        (r"\QC++ (x)\E!", "C++ (x)!", True),
        (r"\Qa.b", "a.b", True),
        (r"\p{L}+", "äö中", True),
        (r"\p{IsHan}+", "中文", True),
        (r"\P{Digit}+", "abc", True),
        (r"\P{Digit}+", "a1c", False),
        (r"(?<year>\d+)-\d+", "2026-01", True),
        (r"\d{2}:\d{2}", "09:40", True),
        (r"a\.b", "axb", False),
        (r"[\w.]+", "a.b", True),
        (r"x++y", "xxy", True),
    ],
)
def test_pattern_matches_as_in_java(pattern: str, text: str, matches: bool) -> None:
    assert (java_pattern(pattern).fullmatch(text) is not None) is matches


@pytest.mark.parametrize("pattern", ["(", "[a", "*", r"\p{NoSuchClass}", "x" * 3000])
def test_broken_pattern_is_a_selector_error(hand: Hand, pattern: str) -> None:
    with pytest.raises(SelectorError):
        hand.phone.find(selector(textMatches=pattern))


@pytest.mark.parametrize(
    "broken",
    [
        {"mask": 1},
        {"mask": 1, "text": 5},
        {"mask": "1"},
        {"mask": True},
        {"mask": BITS["checked"], "checked": "true"},
        {"mask": BITS["index"], "index": "0"},
        {"mask": 0, "childOrSibling": ["child"]},
        {"mask": 0, "childOrSibling": ["parent"], "childOrSiblingSelector": [{"mask": 0}]},
        {"mask": 0, "childOrSibling": ["child"], "childOrSiblingSelector": ["x"]},
        {"mask": 0, "childOrSibling": ["child"] * 30, "childOrSiblingSelector": [{"mask": 0}] * 30},
    ],
)
def test_broken_selector_is_a_selector_error(hand: Hand, broken: dict[str, object]) -> None:
    with pytest.raises(SelectorError):
        hand.phone.find(broken)


@given(st.text(max_size=20))
def test_quoted_text_matches_itself(text: str) -> None:
    assert java_pattern("\\Q" + text.replace("\\E", "") + "\\E").fullmatch(text.replace("\\E", "")) is not None
