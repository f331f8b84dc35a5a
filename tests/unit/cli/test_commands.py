"""What each command asks of the controller and what it writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
import yaml

from droidfleet.v1 import execution_pb2, fleet_pb2, task_pb2
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal, execution

CANDIDATE = execution_pb2.Target(
    text="Add to cart",
    class_name="android.widget.Button",
    bounds=execution_pb2.Bounds(left=40, top=900, right=520, bottom=1000),
)


def device(
    name: str,
    state: fleet_pb2.DeviceState.ValueType = fleet_pb2.DEVICE_STATE_ONLINE,
    *,
    model: str = "",
    foreground: str = "",
    battery: int = 80,
) -> fleet_pb2.Device:
    return fleet_pb2.Device(name=name, state=state, model=model, foreground_package=foreground, battery_percent=battery)


def ambiguous() -> execution_pb2.Execution:
    step = execution_pb2.StepResult(
        id="add", action="CLICK", code="TARGET_AMBIGUOUS", message="2 nodes match.", candidates=[CANDIDATE, CANDIDATE]
    )
    result = execution_pb2.TaskResult(
        code="TARGET_AMBIGUOUS", message="2 nodes match.", failed_step_id="add", steps=[step]
    )
    return execution("phone-05", execution_pb2.EXECUTION_STATE_FAILED, version=2, steps_done=3, result=result)


def ordered(name: str = "phone-01") -> execution_pb2.Execution:
    result = execution_pb2.TaskResult(successful=True, code="OK", outputs_json='{"orderNumber": "A-1001"}')
    result.duration.FromMilliseconds(2100)
    return execution(name, version=3, steps_done=4, result=result)


def test_devices_come_page_by_page(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device(f"phone-{number:02}") for number in range(5)]
    fleet.page_size = 2
    names = [item["name"] for item in json.loads(droidfleet("devices", "-o", "json").out)["devices"]]
    assert names == [f"phone-{number:02}" for number in range(5)]


def test_devices_table_shows_who_can_work(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01", model="Pixel 8", foreground="com.example.shop")]
    fleet.devices[0].last_seen_at.FromDatetime(datetime.now(UTC) - timedelta(hours=5))
    line = droidfleet("devices").out.splitlines()[-1]
    assert line.split() == ["phone-01", "ONLINE", "Pixel", "8", "80", "%", "com.example.shop", "0", "5", "h", "ago"]


def test_devices_filter_by_state(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("a"), device("b", fleet_pb2.DEVICE_STATE_PHONE_OFFLINE)]
    found = json.loads(droidfleet("devices", "--state", "phone-offline", "-o", "json").out)["devices"]
    assert [item["name"] for item in found] == ["b"]


def test_empty_fleet_says_how_devices_get_known(droidfleet: Command) -> None:
    ran = droidfleet("devices")
    assert (ran.code, ran.out) == (0, "")
    assert "droidfleet-agent supervise" in ran.err


def test_device_document_keeps_its_shape(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01", battery=-1)]
    fleet.devices[0].last_seen_at.FromJsonString("2026-01-02T03:04:05.678Z")
    assert json.loads(droidfleet("devices", "show", "phone-01", "-o", "json").out) == {
        "name": "phone-01",
        "state": "ONLINE",
        "serial": "",
        "model": "",
        "androidVersion": "",
        "agentVersion": "",
        "host": "",
        "batteryPercent": None,
        "foregroundPackage": None,
        "runningExecutionId": None,
        "backlog": 0,
        "lastSeenAt": "2026-01-02T03:04:05.678Z",
        "clockOffsetMs": None,
        "capabilities": [],
        "labels": {},
    }


@pytest.mark.parametrize(
    ("offset_s", "milliseconds", "words"),
    [(86_400.04, 86_400_040, "86400.0 s ahead"), (-3.2, -3_200, "3.2 s behind"), (-0.02, -20, "right")],
)
def test_a_device_shows_how_far_its_hosts_clock_is_off(
    droidfleet: Command, fleet: FakeFleet, offset_s: float, milliseconds: int, words: str
) -> None:
    fleet.devices = [device("phone-01")]
    fleet.devices[0].clock_offset_seconds = offset_s
    shown = json.loads(droidfleet("devices", "show", "phone-01", "-o", "json").out)
    assert shown["clockOffsetMs"] == milliseconds
    [line] = [line for line in droidfleet("devices", "show", "phone-01").out.splitlines() if "Clock" in line]
    assert line.split("Clock")[1].strip(" │|") == words


def test_yaml_holds_the_same_document_as_json(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [ambiguous()]
    as_json = json.loads(droidfleet("execution", "show", "x", "-o", "json").out)
    assert yaml.safe_load(droidfleet("execution", "show", "x", "-o", "yaml").out) == as_json


def test_save_sends_the_text_as_it_stands(droidfleet: Command, fleet: FakeFleet, tmp_path: Path) -> None:
    fleet.tasks = [task_pb2.TaskTemplate(task_id="shop-order", revision=3)]
    text = '{ "taskId" :  "shop-order" }\n'
    (tmp_path / "task.json").write_text(text)
    assert droidfleet("task", "save", str(tmp_path / "task.json")).out == "shop-order revision 3: saved\n"
    assert fleet.requests == [task_pb2.SaveTaskRequest(document_json=text)]


def test_show_document_writes_exactly_what_was_saved(droidfleet: Command, fleet: FakeFleet) -> None:
    text = '{"a":\r\n "😀"}'
    fleet.tasks = [task_pb2.TaskTemplate(task_id="t", revision=1, document_json=text)]
    assert droidfleet("task", "show", "t", "--document").out == text


def test_tasks_are_listed(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.tasks = [task_pb2.TaskTemplate(task_id="shop-order", revision=2, step_count=9)]
    assert droidfleet("task", "list").out.splitlines()[-1].split() == ["shop-order", "2", "9"]


def test_run_names_task_devices_and_expiry(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution("a"), execution("b")]
    droidfleet("task", "run", "shop-order", "-d", "a", "-d", "b", "--revision", "2", "--expires-in", "90m")
    request = fleet.last(execution_pb2.RunTaskRequest)
    assert isinstance(request, execution_pb2.RunTaskRequest)
    assert request.ref == execution_pb2.TaskRef(task_id="shop-order", revision=2)
    assert (list(request.devices), request.expires_in.ToSeconds()) == (["a", "b"], 5400)


def test_each_run_has_a_request_id_of_its_own(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution()]
    for _ in range(2):
        droidfleet("task", "run", "shop-order", "-d", "phone-01")
    ids = {item.request_id for item in fleet.requests if isinstance(item, execution_pb2.RunTaskRequest)}
    assert len(ids - {""}) == 2


def test_run_of_a_file_sends_its_text(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution()]
    droidfleet("task", "run", "-", "-d", "phone-01", stdin=b'{"taskId": "x"}')
    request = fleet.last(execution_pb2.RunTaskRequest)
    assert isinstance(request, execution_pb2.RunTaskRequest)
    assert request.document_json == '{"taskId": "x"}'


def test_run_into_a_pipe_does_not_wait(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_QUEUED)]
    ran = droidfleet("task", "run", "shop-order", "-d", "phone-01")
    assert ran.code == 0
    assert "droidfleet execution watch --run run-1" in ran.err


def test_run_warns_about_devices_that_cannot_start_now(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [device("phone-01", fleet_pb2.DEVICE_STATE_OFFLINE)]
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_QUEUED)]
    ran = droidfleet("task", "run", "shop-order", "-d", "phone-01", "--no-watch", "--expires-in", "10m")
    assert "phone-01: agent offline; its execution waits, for 10m at most.\n" in ran.err


def test_watched_run_with_a_failure_exits_with_one_and_shows_candidates(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(name, execution_pb2.EXECUTION_STATE_QUEUED) for name in ("phone-01", "phone-05")]
    fleet.changes = [
        execution("phone-01", execution_pb2.EXECUTION_STATE_RUNNING, version=2, steps_done=1, step="search"),
        ordered(),
        ambiguous(),
    ]
    ran = droidfleet("task", "run", "shop-order", "-d", "phone-01", "-d", "phone-05", "--watch")
    assert ran.code == 1
    assert "phone-01 RUNNING\n" in ran.err
    assert "orderNumber = A-1001" in ran.out
    assert "TARGET_AMBIGUOUS at add: 2 nodes match." in ran.out
    assert ran.out.count('Button "Add to cart" [40,900][520,1000]') == 2


def test_watched_run_that_succeeds_exits_with_zero(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_QUEUED)]
    fleet.changes = [ordered()]
    ran = droidfleet("task", "run", "shop-order", "-d", "phone-01", "--watch", "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["runId"]) == (0, "run-1")
    assert document["executions"][0]["result"]["outputs"] == {"orderNumber": "A-1001"}


def test_watch_survives_a_controller_that_restarts(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.changes = [
        execution(state=execution_pb2.EXECUTION_STATE_RUNNING),
        Refusal(grpc.StatusCode.UNAVAILABLE),
        execution(state=execution_pb2.EXECUTION_STATE_RUNNING),
        ordered(),
    ]
    ran = droidfleet("execution", "watch", "x", "-o", "json")
    assert ran.code == 0
    assert [json.loads(line)["state"] for line in ran.out.splitlines()] == ["RUNNING", "SUCCEEDED"]


def test_watch_goes_on_when_its_stream_reaches_its_deadline(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.changes = [
        execution(state=execution_pb2.EXECUTION_STATE_RUNNING),
        Refusal(grpc.StatusCode.DEADLINE_EXCEEDED),
        ordered(),
    ]
    assert droidfleet("execution", "watch", "x").code == 0


def test_watch_of_something_unknown_fails_at_once(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.changes = [Refusal(grpc.StatusCode.NOT_FOUND, "EXECUTION_NOT_FOUND", "no execution 'x'.")]
    ran = droidfleet("execution", "watch", "x")
    assert (ran.code, ran.err) == (4, "EXECUTION_NOT_FOUND: no execution 'x'.\n")


def test_execution_list_asks_for_no_more_than_the_limit(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(f"phone-{number:02}") for number in range(9)]
    fleet.page_size = 4
    found = json.loads(droidfleet("execution", "list", "--limit", "6", "-o", "json").out)["executions"]
    assert len(found) == 6


def test_execution_list_filters_by_state(droidfleet: Command, fleet: FakeFleet) -> None:
    droidfleet("execution", "list", "--state", "timed-out", "--state", "failed")
    request = fleet.last(execution_pb2.ListExecutionsRequest)
    assert isinstance(request, execution_pb2.ListExecutionsRequest)
    assert list(request.states) == [execution_pb2.EXECUTION_STATE_TIMED_OUT, execution_pb2.EXECUTION_STATE_FAILED]


def test_execution_show_lists_steps_outputs_and_candidates(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [ambiguous()]
    out = droidfleet("execution", "show", "x").out
    assert "TARGET_AMBIGUOUS" in out
    assert out.count('Button "Add to cart"') == 2


def test_cancel_says_whether_it_has_ended_yet(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_RUNNING)]
    ran = droidfleet("execution", "cancel", "x", "--reason", "wrong price")
    assert "RUNNING, asked to end at its next step." in ran.err
    assert fleet.requests == [execution_pb2.CancelExecutionRequest(execution_id="x", reason="wrong price")]


def test_pause_and_resume_say_whether_the_agent_has_confirmed_yet(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_RUNNING)]
    assert "RUNNING, asked to pause at its next step." in droidfleet("execution", "pause", "x", "--reason", "look").err
    fleet.executions = [execution(state=execution_pb2.EXECUTION_STATE_PAUSED)]
    assert "PAUSED." in droidfleet("execution", "pause", "x").err
    assert "PAUSED, asked to go on." in droidfleet("execution", "resume", "x").err
    assert fleet.requests == [
        execution_pb2.PauseExecutionRequest(execution_id="x", reason="look"),
        execution_pb2.PauseExecutionRequest(execution_id="x"),
        execution_pb2.ResumeExecutionRequest(execution_id="x"),
    ]


def test_events_are_lines_of_json(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.events = [
        fleet_pb2.FleetEvent(event_id=7, kind="ExecutionFinished", device="a", payload_json='{"code": "OK"}')
    ]
    line = json.loads(droidfleet("events", "-o", "json").out)
    assert (line["eventId"], line["kind"], line["payload"]) == (7, "ExecutionFinished", {"code": "OK"})


def test_events_name_their_device_once(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.events = [fleet_pb2.FleetEvent(event_id=7, kind="X", device="手机-01", summary="手机-01: started")]
    line = droidfleet("events").out.rstrip()
    assert line.endswith("  手机-01       X                   started")


def test_no_events_are_said_to_be_none(droidfleet: Command) -> None:
    ran = droidfleet("events")
    assert (ran.code, ran.out, ran.err) == (0, "", "No events.\n")


@pytest.mark.parametrize("arguments", [("events",), ("execution", "list")])
def test_nothing_of_an_unknown_device_is_an_error(
    droidfleet: Command, fleet: FakeFleet, arguments: tuple[str, ...]
) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.NOT_FOUND, "DEVICE_NOT_FOUND", "unknown.", hint="phone-01?")
    ran = droidfleet(*arguments, "--device", "phone-O1")
    assert (ran.code, ran.err) == (4, "DEVICE_NOT_FOUND: unknown.\nhint: phone-01?\n")


def test_following_an_unknown_device_says_so_and_waits(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.NOT_FOUND, "DEVICE_NOT_FOUND", "unknown.", hint="phone-01?")
    fleet.events = [fleet_pb2.FleetEvent(event_id=7, kind="X", device="phone-O1", summary="phone-O1: online")]
    ran = droidfleet("events", "--follow", "--device", "phone-O1")
    assert "DEVICE_NOT_FOUND: unknown. phone-01? Waiting for what happens there." in ran.err
    assert "online" in ran.out


def test_task_that_is_only_a_file_is_pointed_out(
    droidfleet: Command, fleet: FakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hello.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    fleet.refusals["RunTask"] = Refusal(grpc.StatusCode.NOT_FOUND, "TASK_NOT_FOUND", "none.", hint="List them.")
    assert droidfleet("task", "run", "hello", "-d", "a").err.endswith("hint: Did you mean the file 'hello.json'?\n")


def test_device_that_was_not_read_yet_says_so(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [
        fleet_pb2.Device(name="new", state=fleet_pb2.DEVICE_STATE_ONLINE),
        fleet_pb2.Device(name="gone", state=fleet_pb2.DEVICE_STATE_OFFLINE),
    ]
    _head, _rule, new, gone = droidfleet("devices").out.splitlines()
    assert "reading ..." in new
    assert "reading ..." not in gone


def test_narrow_screen_shows_whole_names(
    droidfleet: Command, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.devices = [
        fleet_pb2.Device(
            name="192.168.0.7:5555",
            state=fleet_pb2.DEVICE_STATE_ONLINE,
            model="Pixel 7",
            foreground_package="com.example.a.long.name",
        )
    ]
    monkeypatch.setenv("COLUMNS", "80")
    head, _rule, *rows = droidfleet("devices").out.splitlines()
    assert head.split() == ["Device", "State", "Model", "Android", "Battery", "Backlog", "Last", "heard"]
    assert [row.split()[0] for row in rows] == ["192.168.0.7:5555"]


def test_tables_in_a_pipe_have_no_blanks_at_the_end(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.devices = [fleet_pb2.Device(name="a"), fleet_pb2.Device(name="b")]
    assert all(line == line.rstrip() for line in droidfleet("devices").out.splitlines())


def test_events_go_on_after_the_last_one_when_the_controller_restarts(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.events = [
        fleet_pb2.FleetEvent(event_id=1, kind="A"),
        Refusal(grpc.StatusCode.UNAVAILABLE),
        fleet_pb2.FleetEvent(event_id=1, kind="A"),
        fleet_pb2.FleetEvent(event_id=2, kind="B"),
    ]
    ran = droidfleet("events", "--follow", "--after", "0", "-o", "json")
    assert [json.loads(line)["eventId"] for line in ran.out.splitlines()] == [1, 2]


@pytest.mark.parametrize(("arguments", "cursor"), [([], 0), (["--follow"], -1), (["--follow", "--after", "9"], 9)])
def test_events_start_where_asked(droidfleet: Command, fleet: FakeFleet, arguments: list[str], cursor: int) -> None:
    droidfleet("events", *arguments)
    request = fleet.last(fleet_pb2.WatchEventsRequest)
    assert isinstance(request, fleet_pb2.WatchEventsRequest)
    assert request.after_event_id == cursor


def test_validate_prints_every_issue_and_needs_no_controller(offline: Command) -> None:
    steps = b'[{"id": "a", "action": "BAK"}, {"id": "a", "action": "BACK"}]'
    text = b'{"schemaVersion": 1, "taskId": "x", "steps": ' + steps + b"}"
    ran = offline("task", "validate", "-", stdin=text)
    assert ran.code == 2
    codes = [line.split()[:2] for line in ran.out.splitlines() if line.startswith("/")]
    assert codes == [["/steps/0/action", "UNKNOWN_ACTION:"], ["/steps/1/id", "DUPLICATE_ID:"]]
    assert "Did you mean `BACK`?" in ran.out


def test_validate_for_programs_gives_issues_as_documents(offline: Command) -> None:
    ran = offline("task", "validate", "-", "-o", "json", stdin=b'{"schemaVersion": 2}')
    document = json.loads(ran.out)
    assert (ran.code, document["valid"]) == (2, False)
    assert {"path", "code", "message", "hint"} == set(document["errors"][0])


def test_validate_lets_a_warning_pass(offline: Command) -> None:
    step = b'{"id": "pay", "action": "CLICK", "selector": {"text": "Pay now"}}'
    ran = offline("task", "validate", "-", stdin=b'{"schemaVersion": 1, "taskId": "x", "steps": [' + step + b"]}")
    assert ran.code == 0
    assert ran.out.startswith("warning: /steps/0/selector/text IRREVERSIBLE_EFFECT:")


@pytest.mark.parametrize("command", ["validate", "save", "run"])
@pytest.mark.parametrize(("document", "code"), [(b" " * 10_000_000, "TOO_LARGE"), (b'"\xff"', "BAD_JSON")])
def test_what_no_message_can_carry_is_refused_before_sending(
    droidfleet: Command, fleet: FakeFleet, command: str, document: bytes, code: str
) -> None:
    ran = droidfleet("task", command, "-", stdin=document)
    assert ran.code == 2
    assert code in ran.out + ran.err
    assert fleet.requests == []


def test_file_that_is_not_there_is_named(droidfleet: Command) -> None:
    ran = droidfleet("task", "run", "./missing.json", "-d", "a")
    assert ran.code == 2
    assert ran.err.startswith("FILE_UNREADABLE: the task file './missing.json' cannot be read: No such file")


def test_folder_is_no_document(droidfleet: Command, tmp_path: Path) -> None:
    assert droidfleet("task", "save", str(tmp_path)).err.startswith("FILE_UNREADABLE: ")
