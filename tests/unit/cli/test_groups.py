"""Groups and labels on the command line: what is asked of the controller, and what is written."""

from __future__ import annotations

import json

import grpc
import pytest

from droidfleet.v1 import fleet_pb2
from droidfleet_controller.cli.commands.label import sorted_words
from droidfleet_shared.errors import InvalidInputError
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal

QUERY = "site=berlin, android>=13, !retired"


def device(
    name: str, state: fleet_pb2.DeviceState.ValueType = fleet_pb2.DEVICE_STATE_ONLINE, *, backlog: int = 0
) -> fleet_pb2.Device:
    return fleet_pb2.Device(name=name, state=state, backlog=backlog, battery_percent=80, labels={"site": "berlin"})


@pytest.fixture
def groups(fleet: FakeFleet) -> FakeFleet:
    fleet.groups = [
        fleet_pb2.Group(name="berlin", query=QUERY, version=7, description="all that are there"),
        fleet_pb2.Group(name="shelf", devices=["phone-01", "phone-02"], version=1),
    ]
    return fleet


def test_a_group_is_made_with_devices(droidfleet: Command, groups: FakeFleet) -> None:
    ran = droidfleet("group", "create", "shelf", "phone-01", "phone-02", "--description", "by the window")
    assert ran.code == 0
    assert groups.last(fleet_pb2.CreateGroupRequest) == fleet_pb2.CreateGroupRequest(
        name="shelf", devices=["phone-01", "phone-02"], description="by the window"
    )


def test_a_group_is_made_with_a_query(droidfleet: Command, groups: FakeFleet) -> None:
    assert droidfleet("group", "create", "berlin", "--query", QUERY).out == "berlin: created, version 7\n"
    assert groups.last(fleet_pb2.CreateGroupRequest) == fleet_pb2.CreateGroupRequest(name="berlin", query=QUERY)


def test_the_list_says_who_is_in_a_group(droidfleet: Command, groups: FakeFleet) -> None:
    out = droidfleet("group", "list").out
    assert QUERY in out
    assert "2 devices" in out


def test_groups_come_page_by_page(droidfleet: Command, groups: FakeFleet) -> None:
    groups.page_size = 1
    found = json.loads(droidfleet("group", "list", "-o", "json").out)["groups"]
    assert [item["name"] for item in found] == ["berlin", "shelf"]


def test_the_document_of_a_group_keeps_its_shape(droidfleet: Command, groups: FakeFleet) -> None:
    groups.groups[1].created_at.FromJsonString("2026-01-02T03:04:05.678Z")
    groups.groups[1].updated_at.FromJsonString("2026-01-02T03:04:06.789Z")
    assert json.loads(droidfleet("group", "show", "shelf", "-o", "json").out) == {
        "name": "shelf",
        "query": None,
        "devices": ["phone-01", "phone-02"],
        "description": "",
        "version": 1,
        "createdAt": "2026-01-02T03:04:05.678Z",
        "updatedAt": "2026-01-02T03:04:06.789Z",
    }


def test_without_groups_the_list_says_how_to_make_one(droidfleet: Command) -> None:
    assert "droidfleet group create" in droidfleet("group", "list").err


@pytest.mark.parametrize("verb", ["add", "remove"])
def test_devices_are_changed_in_the_version_that_is_there(droidfleet: Command, groups: FakeFleet, verb: str) -> None:
    assert droidfleet("group", verb, "berlin", "phone-03").code == 0
    request = groups.last(fleet_pb2.UpdateGroupRequest)
    assert request == fleet_pb2.UpdateGroupRequest(name="berlin", version=7, **{verb: ["phone-03"]})  # type: ignore[arg-type]  # a name of a field


def test_a_version_that_was_seen_is_sent(droidfleet: Command, groups: FakeFleet) -> None:
    assert droidfleet("group", "set", "berlin", "--query", "site", "--version", "3").code == 0
    assert groups.last(fleet_pb2.UpdateGroupRequest) == fleet_pb2.UpdateGroupRequest(
        name="berlin", version=3, query="site"
    )


def test_setting_nothing_is_refused_here(droidfleet: Command, groups: FakeFleet) -> None:
    ran = droidfleet("group", "set", "berlin")
    assert (ran.code, groups.requests) == (2, [])


def test_a_stale_version_is_shown_with_what_to_do(droidfleet: Command, groups: FakeFleet) -> None:
    groups.refusals["DeleteGroup"] = Refusal(grpc.StatusCode.ABORTED, "STALE_VERSION", "it changed.", "Look again.")
    ran = droidfleet("group", "delete", "berlin")
    assert (ran.code, ran.err) == (4, "STALE_VERSION: it changed.\nhint: Look again.\n")


def test_a_deleted_group_is_said_to_be(droidfleet: Command, groups: FakeFleet) -> None:
    assert droidfleet("group", "delete", "shelf").out == "shelf: deleted\n"
    assert groups.last(fleet_pb2.DeleteGroupRequest) == fleet_pb2.DeleteGroupRequest(name="shelf", version=1)


def test_a_preview_shows_who_is_offline_who_is_busy_and_what_waits(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [
        device("phone-01", backlog=2),
        device("phone-02", fleet_pb2.DEVICE_STATE_BUSY, backlog=1),
        device("phone-03", fleet_pb2.DEVICE_STATE_OFFLINE),
    ]
    ran = droidfleet("group", "preview", "berlin")
    assert [line.split()[:3] for line in ran.out.splitlines()[-3:]] == [
        ["phone-01", "ONLINE", "2"],
        ["phone-02", "BUSY", "1"],
        ["phone-03", "OFFLINE", "0"],
    ]
    assert ran.err == "3 devices: 1 online, 1 busy, 1 offline; 3 executions waiting\n"


def test_a_preview_of_nobody_says_why(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.notes = ["No phone has stie. Did you mean site?"]
    ran = droidfleet("group", "preview", "--query", "stie=berlin")
    assert (ran.out, ran.err) == ("", "note: No phone has stie. Did you mean site?\nNo device matches now.\n")
    assert fleet.last(fleet_pb2.PreviewTargetRequest) == fleet_pb2.PreviewTargetRequest(query="stie=berlin")


def test_the_document_of_a_preview_counts(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01", backlog=2), device("phone-02", backlog=1)]
    found = json.loads(droidfleet("group", "preview", "berlin", "-o", "json").out)
    assert [item["labels"] for item in found.pop("devices")] == [{"site": "berlin"}] * 2
    assert found == {"group": "berlin", "query": None, "states": {"ONLINE": 2}, "backlog": 3, "notes": []}


@pytest.mark.parametrize("arguments", [(), ("berlin", "--query", "site")])
def test_a_preview_is_of_one_thing(droidfleet: Command, fleet: FakeFleet, arguments: tuple[str, ...]) -> None:
    assert droidfleet("group", "preview", *arguments).code == 2
    assert fleet.requests == []


def test_devices_are_asked_by_query_and_show_their_labels(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01")]
    assert "site=berlin" in droidfleet("devices", "--query", "site=berlin").out
    assert fleet.last(fleet_pb2.ListDevicesRequest) == fleet_pb2.ListDevicesRequest(page_size=1000, query="site=berlin")


# Labels.


def test_labels_are_set_and_removed_of_named_devices(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01")]
    ran = droidfleet("device", "label", "phone-01", "phone-02", "site=berlin", "note=", "retired-")
    assert ran.out == "phone-01: site=berlin\n"
    assert fleet.last(fleet_pb2.SetLabelsRequest) == fleet_pb2.SetLabelsRequest(
        devices=["phone-01", "phone-02"], set={"site": "berlin", "note": ""}, remove=["retired"]
    )


def test_labels_are_set_by_query(droidfleet: Command, fleet: FakeFleet) -> None:
    ran = droidfleet("device", "label", "--query", "model=Pixel", "camera=good")
    assert "Nothing changed" in ran.err
    assert fleet.last(fleet_pb2.SetLabelsRequest) == fleet_pb2.SetLabelsRequest(
        query="model=Pixel", set={"camera": "good"}
    )


@pytest.mark.parametrize("arguments", [("site=berlin",), ("phone-01", "--query", "x", "site=berlin")])
def test_devices_are_named_in_one_way(droidfleet: Command, fleet: FakeFleet, arguments: tuple[str, ...]) -> None:
    assert droidfleet("device", "label", *arguments).code == 2
    assert fleet.requests == []


@pytest.mark.parametrize(
    "words",
    [["phone-01"], ["phone-01", "a=1", "phone-02"], ["phone-01", "a=1", "a=2"], ["phone-01", "a=1", "a-"]],
    ids=["no label", "a name behind a label", "twice", "set and removed"],
)
def test_words_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="BAD_ARGUMENTS"):
        sorted_words(words)


def test_a_value_may_hold_signs() -> None:
    assert sorted_words(["phone-01", "url=a=b-", "old-"]).labels == {"url": "a=b-"}
