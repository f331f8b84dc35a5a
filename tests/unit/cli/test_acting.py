"""`droidfleet device tap`, `type` and the like, against a controller whose answers are given."""

from __future__ import annotations

import json

import grpc
import pytest

from droidfleet.v1 import device_pb2, execution_pb2
from droidfleet_controller.cli.commands import acting
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal
from support.looks import look
from support.screens import field, node

BUTTON = "android.widget.Button"


@pytest.fixture(autouse=True)
def shop(fleet: FakeFleet) -> None:
    fleet.screens = [
        look(
            node("Add to cart", (0, 0, 400, 100), class_name=BUTTON, clickable=True),
            node("Delete", (0, 600, 400, 700), class_name=BUTTON, clickable=True),
            node("Delete", (0, 800, 400, 900), class_name=BUTTON, clickable=True),
            node("${price}", (0, 1000, 400, 1100), class_name=BUTTON, clickable=True),
            field((0, 1200, 1080, 1300), hint="Search"),
        )
    ]


def step_of(fleet: FakeFleet) -> dict[str, object]:
    request = fleet.last(device_pb2.RunStepRequest)
    assert isinstance(request, device_pb2.RunStepRequest)
    step: dict[str, object] = json.loads(request.step_json)
    assert step.pop("id") == acting.STEP_ID
    return step


def failed(code: str, *candidates: str) -> execution_pb2.TaskResult:
    targets = [execution_pb2.Target(text=text, class_name=BUTTON) for text in candidates]
    step = execution_pb2.StepResult(id=acting.STEP_ID, code=code, candidates=targets)
    return execution_pb2.TaskResult(successful=False, code=code, message="It did not work.", steps=[step])


COMMANDS: dict[tuple[str, ...], dict[str, object]] = {
    ("tap", "Add to cart"): {"action": "CLICK", "selector": {"text": "Add to cart"}},
    ("tap", "${price}"): {"action": "CLICK", "selector": {"text": "$${price}"}},
    ("tap", "--selector", '{"resourceId": "buy"}'): {"action": "CLICK", "selector": {"resourceId": "buy"}},
    ("long-press", "Add to cart"): {"action": "LONG_CLICK", "selector": {"text": "Add to cart"}},
    ("type", "a ${b}", "Search", "--submit"): {
        "action": "INPUT",
        "selector": {"hint": "Search"},
        "value": "a $${b}",
        "clear": True,
        "submit": True,
    },
    ("press", "home"): {"action": "KEY", "key": "HOME"},
    ("back",): {"action": "BACK"},
    ("scroll",): {"action": "SCROLL", "direction": "DOWN", "maxScrolls": 1},
    ("scroll", "up", "--until", '{"text": "Tea"}', "--most", "20"): {
        "action": "SCROLL",
        "direction": "UP",
        "maxScrolls": 20,
        "until": {"text": "Tea"},
    },
    ("swipe", "left", "--selector", '{"text": "x"}'): {
        "action": "SWIPE",
        "direction": "LEFT",
        "distancePercent": 60,
        "selector": {"text": "x"},
    },
    ("open", "com.example", "--afresh"): {"action": "OPEN", "packageName": "com.example", "stopFirst": True},
    ("stop", "com.example"): {"action": "STOP_APP", "packageName": "com.example"},
    ("step", '{"action": "WAKE"}'): {"action": "WAKE"},
    ("back", "--timeout", "1.5"): {"action": "BACK", "timeoutMs": 1500},
}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_is_one_step_of_the_protocol(droidfleet: Command, fleet: FakeFleet, words: tuple[str, ...]) -> None:
    command, *rest = words
    ran = droidfleet("device", command, "phone-01", *rest)
    assert ran.code == 0, ran
    assert step_of(fleet) == COMMANDS[words]


def test_a_step_has_a_lease_of_its_own_which_is_given_back(droidfleet: Command, fleet: FakeFleet) -> None:
    droidfleet("device", "back", "phone-01")
    kinds = [type(request).__name__ for request in fleet.requests]
    assert kinds == ["OpenSessionRequest", "RunStepRequest", "CloseSessionRequest"]


def test_a_lease_of_yours_is_used_and_stays(
    droidfleet: Command, fleet: FakeFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(acting.SESSION_ENV, "mine")
    droidfleet("device", "back", "phone-01")
    [request] = fleet.requests
    assert isinstance(request, device_pb2.RunStepRequest)
    assert request.session_id == "mine"


def test_a_lease_is_printed_alone_and_released_by_its_id(droidfleet: Command, fleet: FakeFleet) -> None:
    leased = droidfleet("device", "lease", "phone-01", "--ttl", "120")
    assert leased.out == "session-1\n"
    asked = fleet.last(device_pb2.OpenSessionRequest)
    assert isinstance(asked, device_pb2.OpenSessionRequest)
    assert asked.ttl.ToTimedelta().total_seconds() == 120
    assert droidfleet("device", "release", "phone-01", "--session", "session-1").code == 0
    closed = fleet.last(device_pb2.CloseSessionRequest)
    assert isinstance(closed, device_pb2.CloseSessionRequest)
    assert closed.session_id == "session-1"


def test_a_step_that_failed_says_why_and_what_there_was_and_ends_with_1(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.step_results = [failed("TARGET_AMBIGUOUS", "Delete", "Delete")]
    ran = droidfleet("device", "tap", "phone-01", "--selector", '{"text": "Delete"}')
    assert ran.code == 1
    assert "TARGET_AMBIGUOUS: It did not work." in ran.err
    assert ran.err.count('Button "Delete"') == 2


def test_the_result_is_a_document_for_programs(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.step_results = [failed("TARGET_NOT_FOUND")]
    ran = droidfleet("device", "tap", "phone-01", "--selector", '{"text": "x"}', "-o", "json")
    assert (ran.code, json.loads(ran.out)["code"]) == (1, "TARGET_NOT_FOUND")


def test_a_name_that_may_be_several_nodes_is_refused_before_anything_is_done(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    ran = droidfleet("device", "tap", "phone-01", "Delete")
    assert ran.code == 4
    assert "NODE_AMBIGUOUS" in ran.err
    assert not any(isinstance(request, device_pb2.RunStepRequest) for request in fleet.requests)
    assert isinstance(fleet.requests[-1], device_pb2.CloseSessionRequest)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tap",), "BAD_ARGUMENTS"),
        (("tap", "a", "--selector", '{"text": "a"}'), "BAD_ARGUMENTS"),
        (("tap", "--selector", "nonsense"), "BAD_JSON"),
        (("tap", "--selector", '["list"]'), "BAD_JSON"),
        (("step", '{"action": '), "BAD_JSON"),
        (("step", "no-such-file.json"), "FILE_UNREADABLE"),
        (("release",), "BAD_ARGUMENTS"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    droidfleet: Command, fleet: FakeFleet, words: tuple[str, ...], code: str
) -> None:
    command, *rest = words
    ran = droidfleet("device", command, "phone-01", *rest)
    assert ran.code == 2
    assert code in ran.err
    assert not any(isinstance(request, device_pb2.RunStepRequest) for request in fleet.requests)


def test_a_step_of_which_nobody_knows_is_not_repeated(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["RunStep"] = Refusal(grpc.StatusCode.UNAVAILABLE, "OUTCOME_UNKNOWN", "no answer came.")
    ran = droidfleet("device", "back", "phone-01")
    assert ran.code == 3
    assert "OUTCOME_UNKNOWN" in ran.err
    assert sum(isinstance(request, device_pb2.RunStepRequest) for request in fleet.requests) == 1
