"""What each command of `droidfleet rollout` asks of the controller, what it writes, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import grpc
import pytest
import typer
import yaml

from droidfleet.v1 import rollout_pb2, schedule_pb2, task_pb2
from droidfleet_controller.cli.client import ControllerClient
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal
from support.fake_rollouts import FAILED, NOON, SUCCEEDED, failure, plan, rollout, schedule, wave

RUNNING = rollout_pb2.ROLLOUT_STATE_RUNNING
PAUSED = rollout_pb2.ROLLOUT_STATE_PAUSED
ENDED_WELL = rollout_pb2.ROLLOUT_STATE_SUCCEEDED
ENDED_BADLY = rollout_pb2.ROLLOUT_STATE_FAILED

TASK = task_pb2.TaskTemplate(
    task_id="shop-order",
    revision=2,
    document_json='{"inputs": {"item": {"type": "string"}, "count": {"type": "integer"}, "pin": {"type": "secret"}}}',
)


def issue(path: str = "/waves") -> task_pb2.ValidationIssue:
    return task_pb2.ValidationIssue(path=path, code="WAVES_DO_NOT_FIT", message="the waves do not fit.", hint="Fewer.")


@pytest.fixture
def ready(fleet: FakeFleet) -> FakeFleet:
    """A controller that plans and starts `ro-1`."""
    fleet.tasks = [TASK]
    fleet.answers["PlanRollout"] = [plan()]
    fleet.answers["StartRollout"] = [rollout_pb2.StartRolloutResponse(rollout=rollout(RUNNING, wave()))]
    return fleet


def watched(*items: rollout_pb2.Rollout) -> list[rollout_pb2.WatchRolloutResponse]:
    return [rollout_pb2.WatchRolloutResponse(rollout=item) for item in items]


def sent(fleet: FakeFleet) -> dict[str, object]:
    """The document that was started."""
    request = fleet.last(rollout_pb2.StartRolloutRequest)
    assert isinstance(request, rollout_pb2.StartRolloutRequest)
    document: dict[str, object] = json.loads(request.spec_json)
    return document


def started(fleet: FakeFleet) -> bool:
    return any(isinstance(request, rollout_pb2.StartRolloutRequest) for request in fleet.requests)


# Plan and start.


def test_plan_shows_the_gates_as_numbers(droidfleet: Command, ready: FakeFleet) -> None:
    ran = droidfleet("rollout", "plan", "shop-order", "--group", "shelf-a")
    assert ran.code == 0
    assert "advances at 3 of 3; pauses at the 1st failure" in ran.out
    assert "4, 1 offline, 1 busy; 2 executions wait on them already" in ran.out
    assert not started(ready)


def test_plan_that_cannot_be_carried_out_exits_with_two_and_lists_everything(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.answers["PlanRollout"] = [rollout_pb2.PlanRolloutResponse(errors=[issue(), issue("/target")])]
    ran = droidfleet("rollout", "plan", "shop-order", "--group", "shelf-a")
    assert ran.code == 2
    assert "/waves WAVES_DO_NOT_FIT: the waves do not fit.\n    Fewer.\n/target" in ran.out


def test_plan_as_json_has_its_shape(droidfleet: Command, ready: FakeFleet) -> None:
    answer = json.loads(droidfleet("rollout", "plan", "shop-order", "--device", "phone-01", "-o", "json").out)
    assert answer["valid"] is True
    assert answer["plan"]["boundMs"] == 95_000
    assert answer["plan"]["waves"][0] == {
        "number": 1,
        "devices": ["phone-03"],
        "gate": "advances at 1 of 1",
        "successesNeeded": 1,
        "stopsAtFailure": None,
    }


def test_a_plan_writes_the_document_that_options_make(droidfleet: Command, ready: FakeFleet) -> None:
    ran = droidfleet("rollout", "plan", "shop-order", "--device", "phone-01", "--wave", "1", "--document")
    assert json.loads(ran.out) == {
        "task": "shop-order",
        "target": {"devices": ["phone-01"]},
        "waves": [{"size": 1}, {}],
    }


def test_secrets_are_not_in_a_document_that_is_written(
    droidfleet: Command, ready: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROIDFLEET_SECRET_PIN", "4711")
    ran = droidfleet("rollout", "plan", "shop-order", "--secret", "pin", "--input", "count=2", "--document")
    assert json.loads(ran.out)["inputs"] == {"count": 2}


def test_start_sends_the_document_in_the_revision_that_the_plan_showed(droidfleet: Command, ready: FakeFleet) -> None:
    ran = droidfleet("rollout", "start", "shop-order", "--query", "site=berlin", "--max-failures", "2")
    assert ran.code == 0
    assert ran.out == "ro-1\n"
    assert sent(ready) == {
        "task": "shop-order",
        "revision": 2,
        "target": {"query": "site=berlin"},
        "waves": [{"gate": {"maxFailures": 2}}],
    }


def test_values_are_typed_as_the_task_declares_them(
    droidfleet: Command, ready: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROIDFLEET_SECRET_PIN", "4711")
    droidfleet("rollout", "start", "shop-order", "--group", "a", "--input", "count=2", "--secret", "pin")
    assert sent(ready)["inputs"] == {"count": 2, "pin": "4711"}


def test_values_of_single_phones_come_from_a_csv(droidfleet: Command, ready: FakeFleet, tmp_path: Path) -> None:
    file = tmp_path / "values.csv"
    file.write_text("device,item,count,pin\nphone-01,tea,2,4711\nphone-02,7,,\n")
    droidfleet("rollout", "start", "shop-order", "--group", "a", "--inputs-csv", str(file))
    assert sent(ready)["deviceInputs"] == {
        "phone-01": {"item": "tea", "count": 2, "pin": "4711"},
        "phone-02": {"item": "7"},
    }


def test_every_value_of_a_csv_that_is_of_another_type_is_listed(
    droidfleet: Command, ready: FakeFleet, tmp_path: Path
) -> None:
    file = tmp_path / "values.csv"
    file.write_text("device,count\nphone-01,two\nphone-02,2\nphone-03,2.5\n")
    ran = droidfleet("rollout", "start", "shop-order", "--group", "a", "--inputs-csv", str(file))
    assert ran.code == 2
    assert "row of phone-01 BAD_INPUT: the input 'count' needs a whole number, not 'two'." in ran.err
    assert "row of phone-03 BAD_INPUT" in ran.err
    assert not started(ready)


def test_options_go_over_a_document_in_yaml(droidfleet: Command, ready: FakeFleet, tmp_path: Path) -> None:
    file = tmp_path / "rollout.yaml"
    file.write_text(
        yaml.safe_dump({"task": "shop-order", "target": {"group": "a"}, "waves": [{"size": "10%"}, {}], "priority": 7})
    )
    droidfleet("rollout", "start", str(file), "--group", "b", "--soak", "10m")
    assert sent(ready) == {
        "task": "shop-order",
        "revision": 2,
        "target": {"group": "b"},
        "waves": [{"size": "10%", "gate": {"soak": "10m"}}, {"gate": {"soak": "10m"}}],
        "priority": 7,
    }


def test_a_task_file_is_no_rollout(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text('{"schemaVersion": 1, "taskId": "hello", "steps": []}')
    ran = droidfleet("rollout", "start", str(file), "--group", "a")
    assert (ran.code, ran.err.splitlines()[0].split(":")[0]) == (2, "NOT_A_ROLLOUT")
    assert f"droidfleet task save {file}" in ran.err


def test_nothing_starts_when_the_plan_finds_errors(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["PlanRollout"] = [rollout_pb2.PlanRolloutResponse(errors=[issue(), issue("/target")])]
    ran = droidfleet("rollout", "start", "shop-order", "--group", "a")
    assert ran.code == 2
    assert "INVALID_ROLLOUT: the rollout cannot be started: 2 errors." in ran.err
    assert ran.err.count("WAVES_DO_NOT_FIT") == 2
    assert not started(fleet)


@pytest.mark.parametrize(("answer", "code"), [(True, 0), (False, 4)])
def test_a_person_is_asked(
    droidfleet: Command, ready: FakeFleet, monkeypatch: pytest.MonkeyPatch, answer: bool, code: int
) -> None:
    monkeypatch.setattr("droidfleet_controller.cli.commands.rollout_start._person_is_there", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: answer)
    assert droidfleet("rollout", "start", "shop-order", "--group", "a", "--no-watch").code == code
    assert started(ready) is answer


def test_a_person_who_says_yes_at_once_is_not_asked(
    droidfleet: Command, ready: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_controller.cli.commands.rollout_start._person_is_there", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: pytest.fail("asked"))
    assert droidfleet("rollout", "start", "shop-order", "--group", "a", "--no-watch", "--yes").code == 0


def test_a_call_without_an_answer_says_how_to_repeat_it(droidfleet: Command, ready: FakeFleet) -> None:
    ready.refusals["StartRollout"] = Refusal(grpc.StatusCode.UNAVAILABLE, "DATABASE_UNAVAILABLE", "busy.")
    ran = droidfleet("rollout", "start", "shop-order", "--group", "a", "--request-id", "r-7")
    assert ran.code == 3
    assert "--request-id r-7" in ran.err


# Watching.


@pytest.mark.parametrize(("state", "code"), [(ENDED_WELL, 0), (ENDED_BADLY, 1), (rollout_pb2.ROLLOUT_STATE_ABORTED, 1)])
def test_a_watched_rollout_ends_the_command_by_how_it_ends(
    droidfleet: Command, ready: FakeFleet, state: rollout_pb2.RolloutState.ValueType, code: int
) -> None:
    ready.answers["WatchRollout"] = [*watched(rollout(RUNNING, wave()), rollout(state, wave()))]
    assert droidfleet("rollout", "start", "shop-order", "--group", "a", "--watch").code == code


def test_watching_without_a_terminal_writes_lines_of_progress(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout(RUNNING, wave()))]
    fleet.answers["WatchRollout"] = [
        *watched(
            rollout(RUNNING, wave(running=4, outcomes={SUCCEEDED: 2})),
            rollout(ENDED_WELL, wave(1, rollout_pb2.WAVE_STATE_PASSED, outcomes={SUCCEEDED: 9, FAILED: 1})),
        )
    ]
    ran = droidfleet("rollout", "watch", "ro-1")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "RUNNING",
        "wave 1 OPEN",
        "wave 1: 2 of 10 done: 2 succeeded; 4 going on",
        "SUCCEEDED",
        "wave 1 PASSED",
        "wave 1: 10 of 10 done: 1 failed, 9 succeeded",
    ]


def test_watching_can_end_when_a_person_has_to_decide(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout(RUNNING, wave()))]
    fleet.answers["WatchRollout"] = [*watched(rollout(RUNNING), rollout(PAUSED), rollout(ENDED_WELL))]
    assert droidfleet("rollout", "watch", "ro-1", "--until", "held").code == 1


def test_watch_as_json_writes_a_line_for_each_version(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout(RUNNING))]
    fleet.answers["WatchRollout"] = [*watched(rollout(RUNNING), rollout(ENDED_WELL))]
    lines = droidfleet("rollout", "watch", "ro-1", "-o", "json").out.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["RUNNING", "SUCCEEDED"]


def test_watching_goes_on_when_the_controller_was_away(
    droidfleet: Command, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_controller.cli.client.channel.RETRY_S", 0.0)
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout(RUNNING))]
    fleet.answers["WatchRollout"] = [
        *watched(rollout(RUNNING)),
        Refusal(grpc.StatusCode.UNAVAILABLE),
        *watched(rollout(ENDED_WELL)),
    ]
    assert droidfleet("rollout", "watch", "ro-1").code == 0


def test_ctrl_c_leaves_the_rollout_running_and_says_how_to_go_on(
    droidfleet: Command, ready: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ControllerClient, "watch_rollout", interrupted)
    ran = droidfleet("rollout", "start", "shop-order", "--group", "a", "--watch")
    assert ran.code == 130
    assert "The rollout goes on. Watch it: droidfleet rollout watch ro-1" in ran.err
    assert not any(isinstance(request, rollout_pb2.ControlRolloutRequest) for request in ready.requests)


# Reading.


def test_show_has_waves_failures_and_what_can_be_done(droidfleet: Command, fleet: FakeFleet) -> None:
    item = rollout(PAUSED, wave(outcomes={SUCCEEDED: 4, FAILED: 3}), reason="too many failures")
    item.failures.append(failure())
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=item)]
    out = droidfleet("rollout", "show", "ro-1").out
    assert "too many failures" in out
    assert "7/10" in out
    assert "TARGET_AMBIGUOUS at add-to-cart on com.example.shop/.Cart" in out
    assert "droidfleet rollout resume ro-1" in out


def test_show_as_json_has_its_shape(droidfleet: Command, fleet: FakeFleet) -> None:
    item = rollout(rollout_pb2.ROLLOUT_STATE_CANCELLING, wave(running=3, outcomes={SUCCEEDED: 2}))
    item.confirmation.asked, item.confirmation.confirmed, item.confirmation.offline = 40, 37, 3
    item.waits.add(why="CONFIRMATION", sentence="3 phones have not confirmed")
    item.failures.append(failure())
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=item)]
    answer = json.loads(droidfleet("rollout", "show", "ro-1", "-o", "json").out)
    assert answer["waves"][0]["live"] == {"queued": 0, "assigned": 0, "accepted": 0, "running": 3}
    assert answer["waves"][0]["outcomes"] == {"SUCCEEDED": 2}
    assert answer["confirmation"] == {"asked": 40, "confirmed": 37, "offline": 3}
    assert answer["waits"] == [{"why": "CONFIRMATION", "sentence": "3 phones have not confirmed", "until": None}]
    assert answer["failures"][0]["breakerOpen"] is True
    assert answer["createdAt"] == "2027-03-01T12:00:00.000Z"
    assert answer["endedAt"] is None
    assert answer["spec"] == {"task": "shop-order"}


def test_list_filters_by_state_and_by_the_schedule_of_a_name(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["GetSchedule"] = [schedule_pb2.GetScheduleResponse(schedule=schedule())]
    fleet.answers["ListRollouts"] = [
        rollout_pb2.ListRolloutsResponse(rollouts=[rollout()], next_page_token="2"),
        rollout_pb2.ListRolloutsResponse(rollouts=[rollout(ENDED_WELL)]),
    ]
    ran = droidfleet("rollout", "list", "--state", "running", "--schedule", "nightly", "-o", "json")
    request = fleet.last(rollout_pb2.ListRolloutsRequest)
    assert isinstance(request, rollout_pb2.ListRolloutsRequest)
    assert (list(request.states), request.schedule_id) == ([RUNNING], "sc-1")
    assert [item["state"] for item in json.loads(ran.out)["rollouts"]] == ["RUNNING", "SUCCEEDED"]


def test_members_are_filtered_by_wave_and_outcome(droidfleet: Command, fleet: FakeFleet) -> None:
    member = rollout_pb2.RolloutMember(
        device="phone-01",
        place=3,
        wave=2,
        state=rollout_pb2.MEMBER_STATE_ENDED,
        outcome=rollout_pb2.MEMBER_OUTCOME_TIMED_OUT,
        tries=2,
        execution_id="x-1",
        reason="TASK_TIMED_OUT: after 60 s",
    )
    member.ended_at.FromDatetime(NOON)
    fleet.answers["ListRolloutMembers"] = [rollout_pb2.ListRolloutMembersResponse(members=[member])]
    ran = droidfleet("rollout", "members", "ro-1", "--wave", "0", "--outcome", "timed-out", "-o", "json")
    request = fleet.last(rollout_pb2.ListRolloutMembersRequest)
    assert isinstance(request, rollout_pb2.ListRolloutMembersRequest)
    assert request.HasField("wave")
    assert list(request.outcomes) == [rollout_pb2.MEMBER_OUTCOME_TIMED_OUT]
    assert json.loads(ran.out)["members"] == [
        {
            "device": "phone-01",
            "place": 3,
            "wave": 2,
            "state": "ENDED",
            "outcome": "TIMED_OUT",
            "tries": 2,
            "executionId": "x-1",
            "executionState": None,
            "reason": "TASK_TIMED_OUT: after 60 s",
            "startedAt": None,
            "endedAt": "2027-03-01T12:00:00.000Z",
            "retryAt": None,
        }
    ]


def test_explain_has_decisions_and_the_membership_log(droidfleet: Command, fleet: FakeFleet) -> None:
    decision = rollout_pb2.RolloutDecision(
        rule="GATE_PASSED", wave=1, numbers_json='{"succeeded": 9}', sentence="9 of 10 succeeded; 9 were needed."
    )
    change = rollout_pb2.RolloutMembershipChange(device="phone-11", movement="JOINED", wave=2, reason="it matches")
    fleet.answers["ListRolloutDecisions"] = [rollout_pb2.ListRolloutDecisionsResponse(decisions=[decision])]
    fleet.answers["ListRolloutMembership"] = [rollout_pb2.ListRolloutMembershipResponse(changes=[change])]
    text = droidfleet("rollout", "explain", "ro-1").out
    assert "GATE_PASSED" in text
    assert "9 of 10 succeeded; 9 were needed." in text
    assert "JOINED" in text
    answer = json.loads(droidfleet("rollout", "explain", "ro-1", "-o", "json").out)
    assert answer["decisions"][0]["numbers"] == {"succeeded": 9}
    assert answer["membership"][0]["device"] == "phone-11"


# Control.


@pytest.mark.parametrize("command", ["pause", "resume", "promote", "cancel", "abort"])
def test_a_control_bears_the_version_that_was_read_just_before(
    droidfleet: Command, fleet: FakeFleet, command: str
) -> None:
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout(version=8))]
    fleet.answers["ControlRollout"] = [rollout_pb2.ControlRolloutResponse(rollout=rollout(PAUSED, version=9))]
    assert droidfleet("rollout", command, "ro-1", "--reason", "lunch").code == 0
    request = fleet.last(rollout_pb2.ControlRolloutRequest)
    assert isinstance(request, rollout_pb2.ControlRolloutRequest)
    assert request.version == 8
    assert request.reason == "lunch"
    assert rollout_pb2.RolloutControl.Name(request.control) == f"ROLLOUT_CONTROL_{command.upper()}"


def test_a_version_that_is_given_is_sent_and_a_stale_one_is_refused(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["ControlRollout"] = Refusal(grpc.StatusCode.ABORTED, "STALE_VERSION", "it is in version 9.")
    ran = droidfleet("rollout", "pause", "ro-1", "--version", "8")
    assert (ran.code, ran.err.split(":")[0]) == (4, "STALE_VERSION")
    assert not any(isinstance(request, rollout_pb2.GetRolloutRequest) for request in fleet.requests)


def test_cancel_says_how_far_it_is_confirmed(droidfleet: Command, fleet: FakeFleet) -> None:
    item = rollout(rollout_pb2.ROLLOUT_STATE_CANCELLING)
    item.confirmation.asked, item.confirmation.confirmed, item.confirmation.offline = 40, 37, 3
    fleet.answers["GetRollout"] = [rollout_pb2.GetRolloutResponse(rollout=rollout())]
    fleet.answers["ControlRollout"] = [rollout_pb2.ControlRolloutResponse(rollout=item)]
    assert "confirmed on 37 of 40, 3 offline" in droidfleet("rollout", "cancel", "ro-1").err


# Report.


def pieces(*parts: bytes) -> list[rollout_pb2.GetRolloutReportResponse]:
    return [rollout_pb2.GetRolloutReportResponse(data=part) for part in parts]


def test_a_report_is_written_as_a_file(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.answers["GetRolloutReport"] = [*pieces(b"<html>", b"</html>")]
    file = tmp_path / "report.html"
    assert droidfleet("rollout", "report", "ro-1", "-f", "html", "-o", str(file)).code == 0
    assert file.read_bytes() == b"<html></html>"


def test_a_report_that_breaks_off_leaves_no_file(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.answers["GetRolloutReport"] = [*pieces(b"<html>"), Refusal(grpc.StatusCode.UNAVAILABLE)]
    assert droidfleet("rollout", "report", "ro-1", "-o", str(tmp_path / "report.html")).code == 3
    assert list(tmp_path.iterdir()) == []


def test_a_report_replaces_no_file_by_accident(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text("mine")
    ran = droidfleet("rollout", "report", "ro-1", "-o", str(file))
    assert (ran.code, ran.err.split(":")[0], file.read_text()) == (4, "FILE_EXISTS", "mine")
    assert fleet.requests == []


def test_a_printed_report_is_whole_or_nothing(
    droidfleet: Command, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    fleet.answers["GetRolloutReport"] = [*pieces(b"device,"), Refusal(grpc.StatusCode.UNAVAILABLE)]
    assert droidfleet("rollout", "report", "ro-1", "-f", "csv").code == 3
    assert raw.getvalue() == b""
    fleet.answers["GetRolloutReport"] = [*pieces(b"device,", b"state\n")]
    assert droidfleet("rollout", "report", "ro-1", "-f", "csv").code == 0
    sys.stdout.flush()
    assert raw.getvalue() == b"device,state\n"
