"""What a user may hand over by mistake: each gets a stable code, and nothing is stored or run."""

from __future__ import annotations

import json

import pytest

from support.workplace import Workplace

pytestmark = pytest.mark.e2e

STEP = {"id": "a", "action": "BACK"}


def task(**fields: object) -> bytes:
    return json.dumps({"schemaVersion": 1, "taskId": "bad", "steps": [STEP], **fields}).encode()


BAD = {
    "broken JSON": (b'{"schemaVersion": 1,', "BAD_JSON"),
    "repeated key": (b'{"schemaVersion": 1, "taskId": "a", "taskId": "b", "steps": []}', "BAD_JSON"),
    "NaN": (task()[:-1] + b', "maxDurationMs": NaN}', "BAD_JSON"),
    "10 MB": (b" " * 10_000_000 + task(), "TOO_LARGE"),
    "deep nesting": (b"[" * 5_000 + b"]" * 5_000, "BAD_JSON"),
    "wrong type": (task(maxDurationMs="long"), "WRONG_TYPE"),
    "201 steps": (task(steps=[{**STEP, "id": str(number)} for number in range(201)]), "TOO_MANY_STEPS"),
    "unknown field": (task(stepz=[]), "UNKNOWN_FIELD"),
    "not UTF-8": (b'{"taskId": "\xff"}', "BAD_JSON"),
    "nothing": (b"", "BAD_JSON"),
}


@pytest.mark.parametrize(("document", "code"), BAD.values(), ids=BAD.keys())
def test_bad_document_is_refused_by_validator_and_controller_alike(
    at_fleet: Workplace, document: bytes, code: str
) -> None:
    checked = at_fleet.droidfleet("task", "validate", "-", stdin=document)
    assert (checked.code, code in checked.out) == (2, True), checked
    saved = at_fleet.droidfleet("task", "save", "-", stdin=document)
    assert (saved.code, code in saved.err) == (2, True), saved
    started = at_fleet.droidfleet("task", "run", "-", "--device", "phone-01", stdin=document)
    assert (started.code, code in started.err) == (2, True), started


def test_bad_documents_leave_nothing_behind(at_fleet: Workplace) -> None:
    at_fleet.droidfleet("task", "save", "-", stdin=task(stepz=[]))
    assert '"bad"' not in at_fleet.droidfleet("task", "list", "-o", "json").out
    assert '"bad"' not in at_fleet.droidfleet("execution", "list", "-o", "json").out


def test_unknown_device_gets_a_suggestion(at_fleet: Workplace) -> None:
    ran = at_fleet.droidfleet("task", "run", "-", "--device", "phone-1", stdin=task())
    assert (ran.code, ran.err.partition(":")[0]) == (4, "DEVICE_NOT_FOUND")
    assert "phone-01" in ran.err


def test_one_unknown_device_starts_nothing_on_the_others(at_fleet: Workplace) -> None:
    ran = at_fleet.droidfleet("task", "run", "-", "-d", "phone-01", "-d", "nobody", stdin=task(taskId="all-or-none"))
    assert ran.code == 4
    listed = at_fleet.droidfleet("execution", "list", "--task", "all-or-none", "-o", "json")
    assert json.loads(listed.out) == {"executions": []}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("task", "run", "no-such-task", "-d", "phone-01"), "TASK_NOT_FOUND"),
        (("task", "show", "no-such-task"), "TASK_NOT_FOUND"),
        (("execution", "show", "no-such-execution"), "EXECUTION_NOT_FOUND"),
        (("execution", "watch", "no-such-execution"), "EXECUTION_NOT_FOUND"),
        (("execution", "cancel", "no-such-execution"), "EXECUTION_NOT_FOUND"),
        (("devices", "show", "no-such-device"), "DEVICE_NOT_FOUND"),
    ],
)
def test_what_does_not_exist_is_said_to_be_missing(at_fleet: Workplace, arguments: tuple[str, ...], code: str) -> None:
    ran = at_fleet.droidfleet(*arguments)
    assert (ran.code, ran.out, ran.err.partition(":")[0]) == (4, "", code)


def test_second_agent_of_one_name_is_told_who_holds_it(at_fleet: Workplace) -> None:
    nats = json.loads((at_fleet.folder / "controller" / "serve.json").read_text())["nats"]
    ran = at_fleet.run("droidfleet-agent", "run", "--name", "phone-01", "--serial", "127.0.0.1:9", "--nats", nats)
    assert (ran.code, "NAME_TAKEN" in ran.err) == (4, True), ran
    assert at_fleet.devices()["phone-01"].state == "ONLINE"
