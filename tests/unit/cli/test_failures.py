"""Every failure has a stable code, says what to do next, and leaves with the documented exit code."""

from __future__ import annotations

import grpc
import pytest

from droidfleet.v1 import task_pb2
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal


def test_no_controller_says_how_to_start_one(offline: Command, kept_port: int) -> None:
    ran = offline("devices", "--api", f"127.0.0.1:{kept_port}")
    assert ran.code == 3
    assert ran.out == ""
    assert ran.err == (
        f"CONTROLLER_UNAVAILABLE: no controller answers at 127.0.0.1:{kept_port}.\n"
        "hint: Start it with `droidfleet serve`, or name another with --api HOST:PORT (or DROIDFLEET_API).\n"
    )


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, 2),
        (grpc.StatusCode.UNAVAILABLE, 3),
        (grpc.StatusCode.NOT_FOUND, 4),
        (grpc.StatusCode.ALREADY_EXISTS, 4),
        (grpc.StatusCode.ABORTED, 4),
        (grpc.StatusCode.FAILED_PRECONDITION, 4),
        (grpc.StatusCode.PERMISSION_DENIED, 4),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 4),
        (grpc.StatusCode.INTERNAL, 5),
    ],
)
def test_status_of_the_controller_gives_the_exit_code(
    droidfleet: Command, fleet: FakeFleet, status: grpc.StatusCode, exit_code: int
) -> None:
    fleet.refusals["GetDevice"] = Refusal(status, "SOME_CODE", "this is what happened.", hint="Do that.")
    ran = droidfleet("devices", "show", "phone-09")
    assert ran.code == exit_code
    assert ran.err == "SOME_CODE: this is what happened.\nhint: Do that.\n"


def test_names_in_other_scripts_are_shown_in_their_letters(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(
        grpc.StatusCode.NOT_FOUND, "DEVICE_NOT_FOUND", "unknown device: '手机-2'.", hint="Did you mean '手机-02'?"
    )
    ran = droidfleet("devices", "show", "手机-2")
    assert ran.err == "DEVICE_NOT_FOUND: unknown device: '手机-2'.\nhint: Did you mean '手机-02'?\n"


def test_code_is_not_written_twice_when_the_status_text_bears_it(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.NOT_FOUND, "DEVICE_NOT_FOUND", "DEVICE_NOT_FOUND: nobody.")
    assert droidfleet("devices", "show", "x").err == "DEVICE_NOT_FOUND: nobody.\n"


def test_invalid_task_lists_every_issue(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["SaveTask"] = Refusal(
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_TASK",
        "the document is not valid.",
        issues=[
            {"path": "/steps/0", "code": "UNKNOWN_FIELD", "message": "no field 'tmeoutMs'.", "hint": "timeoutMs?"},
            {"path": "", "code": "MISSING_FIELD", "message": "'taskId' is missing.", "hint": ""},
        ],
    )
    ran = droidfleet("task", "save", "-", stdin=b"{}")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "INVALID_TASK: the document is not valid: 2 errors.",
        "/steps/0 UNKNOWN_FIELD: no field 'tmeoutMs'.",
        "    timeoutMs?",
        "(document) MISSING_FIELD: 'taskId' is missing.",
    ]


def test_hint_of_an_issue_is_not_repeated_as_the_errors_own(droidfleet: Command, fleet: FakeFleet) -> None:
    issue = {"path": "/steps/0", "code": "UNKNOWN_FIELD", "message": "no such field", "hint": "Did you mean `text`?"}
    fleet.refusals["SaveTask"] = Refusal(
        grpc.StatusCode.INVALID_ARGUMENT, "INVALID_TASK", "not valid.", hint="Did you mean `text`?", issues=[issue]
    )
    assert droidfleet("task", "save", "-", stdin=b"{}").err.count("Did you mean") == 1


def test_call_that_gets_no_answer_in_time_says_so(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.DEADLINE_EXCEEDED)
    ran = droidfleet("devices", "show", "phone-01")
    assert (ran.code, ran.err.partition(":")[0]) == (3, "DEADLINE_EXCEEDED")


def test_run_without_a_clear_answer_gives_the_id_that_makes_a_repeat_harmless(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.refusals["RunTask"] = Refusal(grpc.StatusCode.DEADLINE_EXCEEDED)
    ran = droidfleet("task", "run", "shop-order", "-d", "phone-01", "--request-id", "order-66")
    assert ran.code == 3
    assert "--request-id order-66" in ran.err


def test_controller_of_another_version_is_named_as_such(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.UNIMPLEMENTED)
    ran = droidfleet("devices", "show", "phone-01")
    assert (ran.code, ran.err.partition(":")[0]) == (4, "NOT_SUPPORTED")


def test_message_of_the_controller_cannot_act_on_the_terminal(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["GetDevice"] = Refusal(grpc.StatusCode.NOT_FOUND, "DEVICE_NOT_FOUND", "no \x1b[2J[red]x[/red]")
    assert droidfleet("devices", "show", "x").err == "DEVICE_NOT_FOUND: no \\e[2J[red]x[/red]\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["devise"],
        ["devices", "--state", "sleeping"],
        ["execution", "list", "--limit", "0"],
        ["execution", "watch"],
        ["execution", "watch", "x", "--run", "y"],
        ["task", "run", "shop-order", "--expires-in", "soon"],
        ["task", "run"],
        ["devices", "--output", "xml"],
        ["devices", "--api", "somewhere"],
    ],
)
def test_wrong_arguments_exit_with_two(droidfleet: Command, arguments: list[str]) -> None:
    assert droidfleet(*arguments).code == 2


def test_defect_of_ours_exits_with_five(droidfleet: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("droidfleet_controller.cli.documents.device_document", broken)
    monkeypatch.setattr("droidfleet_controller.cli.client.ControllerClient.device", broken)
    ran = droidfleet("devices", "show", "phone-01")
    assert ran.code == 5
    assert ran.err.endswith("INTERNAL: droidfleet made a mistake.\nhint: report it with the lines above.\n")


def test_interrupt_exits_with_130(droidfleet: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("droidfleet_controller.cli.client.ControllerClient.device", interrupted)
    assert droidfleet("devices", "show", "phone-01").code == 130


def test_issues_that_an_error_cannot_hold_are_asked_for(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.refusals["SaveTask"] = Refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_TASK", "the document is not valid.")
    fleet.issues = [
        task_pb2.ValidationIssue(path=f"/steps/{number}", code="BAD_VALUE", message="no.") for number in range(150)
    ]
    assert droidfleet("task", "save", "-", stdin=b"{}").err.count("BAD_VALUE") == 150
