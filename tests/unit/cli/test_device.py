"""`droidfleet device`: the tree, a picture, and picking a node."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import device_pb2
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal
from support.looks import look
from support.screens import field, node

LINE = (0, 0, 1080, 100)
BUTTON = "android.widget.Button"


@pytest.fixture(autouse=True)
def shop(fleet: FakeFleet) -> None:
    """A list with a row that has no label of its own, two nodes of one text, and a field."""
    fleet.screens = [
        look(
            node(
                "",
                (0, 0, 1080, 500),
                node("Green tea", (0, 0, 400, 100)),
                node("$3.00", (0, 100, 400, 200), resource_id="a:id/price"),
                resource_id="a:id/row",
                class_name="android.view.ViewGroup",
                clickable=True,
            ),
            node("Delete", (0, 600, 400, 700), class_name=BUTTON, clickable=True),
            node("Delete", (0, 800, 400, 900), class_name=BUTTON, clickable=True, enabled=False),
            field((0, 1000, 1080, 1100), hint="Search"),
            node("\x1b[31mred", (0, 1200, 1080, 1300)),
            xml="<hierarchy/>",
        )
    ]


def test_tree_shows_useful_nodes_with_their_best_selector(droidfleet: Command) -> None:
    lines = droidfleet("device", "tree", "phone-01").out.splitlines()
    assert lines[0] == "com.example.shop"
    assert any(line.endswith('TextView "Green tea"  {"text": "Green tea"}') for line in lines)
    assert any('ViewGroup  {"resourceId": "row"}' in line for line in lines)
    assert not any("FrameLayout" in line for line in lines)


def test_tree_says_why_a_selector_may_not_last(droidfleet: Command) -> None:
    (line,) = [each for each in droidfleet("device", "tree", "phone-01").out.splitlines() if "[disabled]" in each]
    assert '"index": 1' in line
    assert "(it counts in reading order" in line


def test_tree_of_all_shows_frames_too(droidfleet: Command) -> None:
    assert "FrameLayout" in droidfleet("device", "tree", "phone-01", "--all").out


def test_tree_can_be_searched(droidfleet: Command) -> None:
    found = json.loads(droidfleet("device", "tree", "phone-01", "--find", "TEA", "-o", "json").out)
    assert [each["text"] for each in found["nodes"]] == ["Green tea"]


def test_tree_of_a_screen_that_is_only_drawn_says_how_to_name_what_is_on_it(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.screens = [look(node("", (0, 0, 1080, 500)))]
    assert "ocrText" in droidfleet("device", "tree", "phone-01").out


def test_tree_without_what_is_looked_for_names_what_there_is(droidfleet: Command) -> None:
    ran = droidfleet("device", "tree", "phone-01", "--find", "coffee")
    assert ran.code == 4
    assert "NODE_NOT_FOUND" in ran.err
    assert "Green tea" in ran.err


def test_tree_as_xml_is_the_phones_own(droidfleet: Command) -> None:
    assert droidfleet("device", "tree", "phone-01", "--xml").out == "<hierarchy/>\n"


def test_node_document_keeps_its_shape(droidfleet: Command) -> None:
    found = json.loads(droidfleet("device", "tree", "phone-01", "-o", "json").out)
    assert {key: value for key, value in found.items() if key != "nodes"} == {
        "device": "phone-01",
        "packageName": "com.example.shop",
        "activityName": None,
        "display": {"left": 0, "top": 0, "right": 1080, "bottom": 2400},
        "rotation": 0,
        "keyboard": None,
        "omitted": 0,
    }
    (price,) = [each for each in found["nodes"] if each["text"] == "$3.00"]
    assert price == {
        "number": 3,
        "parent": 1,
        "text": "$3.00",
        "description": "",
        "hint": "",
        "resourceId": "a:id/price",
        "className": "android.widget.TextView",
        "packageName": "com.example.shop",
        "bounds": {"left": 0, "top": 100, "right": 400, "bottom": 200},
        "flags": ["enabled", "visible"],
        "selectors": [
            {"selector": {"resourceId": "price"}, "note": None},
            {"selector": {"text": "$3.00"}, "note": "it holds an amount of money"},
        ],
        "rejected": [],
    }


def test_texts_of_a_screen_cannot_act_on_the_terminal(droidfleet: Command) -> None:
    out = droidfleet("device", "tree", "phone-01").out
    assert "\x1b" not in out
    assert "[31mred" in out


def test_screenshot_is_saved(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.picture = device_pb2.GetScreenshotResponse(
        media_type="image/jpeg", data=b"picture", width=540, height=1200, scale_percent=50
    )
    ran = droidfleet("device", "screenshot", "phone-01", "--out", str(tmp_path / "a.jpg"))
    assert (tmp_path / "a.jpg").read_bytes() == b"picture"
    assert "540 x 1200, at 50 % of its size" in ran.err


def test_pick_by_text_shows_all_selectors_and_why_others_would_not_do(droidfleet: Command) -> None:
    out = droidfleet("device", "pick", "phone-01", "--text", "$3.00").out
    assert [line.strip() for line in out.splitlines()[1:]] == [
        "at [0,100][400,200]",
        '{"resourceId": "price"}',
        '{"text": "$3.00"}  but it holds an amount of money',
    ]


def test_pick_of_a_text_that_several_have_says_so(droidfleet: Command) -> None:
    ran = droidfleet("device", "pick", "phone-01", "--text", "delete")
    assert (ran.code, ran.err.partition(":")[0]) == (4, "NODE_AMBIGUOUS")


def test_pick_by_place_takes_the_smallest_node_there(droidfleet: Command) -> None:
    found = json.loads(droidfleet("device", "pick", "phone-01", "--at", "10%,2%", "-o", "json").out)
    assert found["text"] == "Green tea"


@pytest.mark.parametrize("point", ["10", "101%,5%", "a,b", "-1,5", ""])
def test_pick_at_what_is_no_point_is_refused(droidfleet: Command, point: str) -> None:
    assert droidfleet("device", "pick", "phone-01", f"--at={point} ").code == 2


def test_pick_asks_until_the_input_ends(droidfleet: Command) -> None:
    ran = droidfleet("device", "pick", "phone-01", stdin=b"1\n\nSearch\nq\nnever read\n")
    assert [line for line in ran.out.splitlines() if not line.startswith(" ")] == [
        'TextView "Green tea"',
        'EditText "Search"',
    ]


def test_a_number_that_is_not_in_the_list_is_refused(droidfleet: Command) -> None:
    assert "BAD_NUMBER" in droidfleet("device", "pick", "phone-01", stdin=b"99\n").err


def test_a_busy_device_says_who_has_it(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["OpenSession"] = Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, code="DEVICE_BUSY", message="DEVICE_BUSY: in use by anna."
    )
    ran = droidfleet("record", "--device", "phone-01")
    assert (ran.code, ran.err) == (4, "DEVICE_BUSY: in use by anna.\n")
