"""What each command of `droidfleet schedule` asks of the controller, what it writes, and how it ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import schedule_pb2, task_pb2
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal
from support.fake_rollouts import NOON, occurrence, planned, schedule

STORED = [schedule_pb2.GetScheduleResponse(schedule=schedule())]


def preview(*errors: str, note: str = "") -> schedule_pb2.PreviewScheduleResponse:
    """An answer with one occurrence, and errors at these places."""
    return schedule_pb2.PreviewScheduleResponse(
        valid=not errors,
        errors=[task_pb2.ValidationIssue(path=path, code="BAD_VALUE", message="no.") for path in errors],
        occurrences=[planned(NOON, note=note)],
    )


def asked(fleet: FakeFleet) -> schedule_pb2.PreviewScheduleRequest:
    request = fleet.last(schedule_pb2.PreviewScheduleRequest)
    assert isinstance(request, schedule_pb2.PreviewScheduleRequest)
    return request


# Preview.


def test_preview_of_a_stored_schedule_flags_clock_changes(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["PreviewSchedule"] = [preview(note="clocks go forward")]
    ran = droidfleet("schedule", "preview", "nightly", "--count", "3", "--after", "2027-03-25")
    assert (asked(fleet).schedule, asked(fleet).count) == ("nightly", 3)
    assert asked(fleet).after.ToDatetime(UTC) == datetime(2027, 3, 25, tzinfo=UTC)
    assert "2027-03-01 12:00:00+01:00 CET" in ran.out
    assert "clocks go forward" in ran.out


def test_preview_of_times_alone_needs_no_rollout(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["PreviewSchedule"] = [preview("/rollout/task", "/rollout/target")]
    ran = droidfleet("schedule", "preview", "--cron", "30 2 * * *", "--time-zone", "Europe/Berlin", "-o", "json")
    document = json.loads(asked(fleet).spec_json)
    assert (document["when"], document["timeZone"]) == ({"cron": "30 2 * * *"}, "Europe/Berlin")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "valid": True,
        "errors": [],
        "warnings": [],
        "occurrences": [
            {
                "at": "2027-03-01T12:00:00.000Z",
                "local": "2027-03-01 12:00:00+01:00 CET",
                "stopAt": None,
                "note": None,
            }
        ],
    }


def test_preview_of_times_that_are_wrong_exits_with_two(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["PreviewSchedule"] = [preview("/when/cron")]
    ran = droidfleet("schedule", "preview", "--cron", "61 * * * *")
    assert ran.code == 2
    assert "/when/cron BAD_VALUE: no." in ran.out


def test_options_go_over_what_is_previewed(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["PreviewSchedule"] = [preview()]
    fleet.answers["GetSchedule"] = [*STORED]
    droidfleet("schedule", "preview", "nightly", "--cron", "0 3 * * *")
    assert json.loads(asked(fleet).spec_json)["when"] == {"cron": "0 3 * * *"}


# Keeping.


def test_create_makes_a_document_of_a_name_and_options(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["CreateSchedule"] = [schedule_pb2.CreateScheduleResponse(schedule=schedule())]
    ran = droidfleet(
        *("schedule", "create", "nightly", "--cron", "30 2 * * *", "--rollout", "shop-order"),
        *("--group", "shelf-a", "--wave", "1", "--disabled"),
    )
    request = fleet.last(schedule_pb2.CreateScheduleRequest)
    assert isinstance(request, schedule_pb2.CreateScheduleRequest)
    assert json.loads(request.spec_json) == {
        "name": "nightly",
        "when": {"cron": "30 2 * * *"},
        "rollout": {"task": "shop-order", "target": {"group": "shelf-a"}, "waves": [{"size": 1}, {}]},
        "enabled": False,
    }
    assert ran.out == "nightly: created\n"
    assert "Next: 2027-03-01 12:00:00+01:00 CET" in ran.err


def test_create_sends_a_document_as_it_is(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.answers["CreateSchedule"] = [schedule_pb2.CreateScheduleResponse(schedule=schedule())]
    file = tmp_path / "nightly.yaml"
    file.write_text("name: nightly\nwhen: {cron: '@daily'}\nrollout: {task: shop-order, target: {group: a}}\n")
    assert droidfleet("schedule", "create", str(file)).code == 0
    request = fleet.last(schedule_pb2.CreateScheduleRequest)
    assert isinstance(request, schedule_pb2.CreateScheduleRequest)
    assert json.loads(request.spec_json) == {
        "name": "nightly",
        "when": {"cron": "@daily"},
        "rollout": {"task": "shop-order", "target": {"group": "a"}},
    }


def test_everything_wrong_with_a_schedule_is_listed(droidfleet: Command, fleet: FakeFleet) -> None:
    issues = [{"path": path, "code": "BAD_VALUE", "message": "no.", "hint": ""} for path in ("/when", "/timeZone")]
    fleet.refusals["CreateSchedule"] = Refusal(
        grpc.StatusCode.INVALID_ARGUMENT, "INVALID_SCHEDULE", "two.", issues=issues
    )
    ran = droidfleet("schedule", "create", "nightly", "--cron", "x")
    assert ran.code == 2
    assert "/when BAD_VALUE" in ran.err
    assert "/timeZone BAD_VALUE" in ran.err


def test_update_lays_options_over_the_stored_document_in_the_version_that_was_read(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.answers["GetSchedule"] = [*STORED]
    fleet.answers["UpdateSchedule"] = [schedule_pb2.UpdateScheduleResponse(schedule=schedule(version=6))]
    assert droidfleet("schedule", "update", "nightly", "--cron", "0 3 * * *", "--group", "b").code == 0
    request = fleet.last(schedule_pb2.UpdateScheduleRequest)
    assert isinstance(request, schedule_pb2.UpdateScheduleRequest)
    assert (request.schedule, request.version) == ("nightly", 5)
    assert json.loads(request.spec_json) == {
        "name": "nightly",
        "rollout": {"task": "shop-order", "target": {"group": "b"}},
        "when": {"cron": "0 3 * * *"},
    }


@pytest.mark.parametrize(("command", "enabled"), [("enable", True), ("disable", False)])
def test_a_schedule_is_switched_in_the_version_that_was_read(
    droidfleet: Command, fleet: FakeFleet, command: str, enabled: bool
) -> None:
    fleet.answers["GetSchedule"] = [*STORED]
    fleet.answers["SetScheduleEnabled"] = [
        schedule_pb2.SetScheduleEnabledResponse(schedule=schedule(enabled=enabled, version=6))
    ]
    answer = json.loads(droidfleet("schedule", command, "nightly", "-o", "json").out)
    request = fleet.last(schedule_pb2.SetScheduleEnabledRequest)
    assert isinstance(request, schedule_pb2.SetScheduleEnabledRequest)
    assert (request.version, request.enabled) == (5, enabled)
    assert answer["enabled"] is enabled


def test_a_strict_version_is_sent_as_it_is(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["DeleteSchedule"] = Refusal(grpc.StatusCode.ABORTED, "STALE_VERSION", "it is in version 6.")
    ran = droidfleet("schedule", "delete", "nightly", "--version", "5")
    assert (ran.code, ran.err.split(":")[0]) == (4, "STALE_VERSION")
    assert not any(isinstance(request, schedule_pb2.GetScheduleRequest) for request in fleet.requests)


def test_run_prints_the_rollout_that_it_began(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["RunSchedule"] = [schedule_pb2.RunScheduleResponse(rollout_id="ro-9")]
    ran = droidfleet("schedule", "run", "nightly", "--request-id", "r-1")
    request = fleet.last(schedule_pb2.RunScheduleRequest)
    assert isinstance(request, schedule_pb2.RunScheduleRequest)
    assert (request.schedule, request.request_id, ran.out) == ("nightly", "r-1", "ro-9\n")


# Reading.


def test_list_shows_when_and_what_is_next(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["ListSchedules"] = [
        schedule_pb2.ListSchedulesResponse(schedules=[schedule()], next_page_token="2"),
        schedule_pb2.ListSchedulesResponse(schedules=[schedule(enabled=False)]),
    ]
    out = droidfleet("schedule", "list").out
    assert "30 2 * * * in Europe/Berlin" in out
    assert "2027-03-01 12:00:00+01:00 CET" in out
    assert "disabled" in out


def test_show_has_the_next_occurrences_and_as_json_its_shape(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetSchedule"] = [*STORED]
    fleet.answers["PreviewSchedule"] = [preview(note="clocks go back")]
    assert "clocks go back" in droidfleet("schedule", "show", "nightly").out
    answer = json.loads(droidfleet("schedule", "show", "nightly", "-o", "json").out)
    assert answer["next"]["local"] == "2027-03-01 12:00:00+01:00 CET"
    assert answer["last"]["rolloutId"] == "ro-1"
    assert answer["spec"]["rollout"] == {"task": "shop-order"}


def test_show_can_write_the_document_alone(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetSchedule"] = [*STORED]
    assert json.loads(droidfleet("schedule", "show", "nightly", "--document").out)["name"] == "nightly"


def test_occurrences_say_what_became_of_them_and_why(droidfleet: Command, fleet: FakeFleet) -> None:
    missed = occurrence(schedule_pb2.OCCURRENCE_STATE_MISSED, reason="CONTROLLER_DOWN: only the newest is made up for")
    fleet.answers["ListOccurrences"] = [schedule_pb2.ListOccurrencesResponse(occurrences=[occurrence(), missed])]
    out = droidfleet("schedule", "occurrences", "nightly").out
    assert "STARTED" in out
    assert "CONTROLLER_DOWN: only the newest is made up for" in out
    answer = json.loads(droidfleet("schedule", "occurrences", "nightly", "-o", "json").out)
    assert [item["state"] for item in answer["occurrences"]] == ["STARTED", "MISSED"]
