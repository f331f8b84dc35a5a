"""`droidfleet task run` with values: typed as declared, secrets from the environment, nothing printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet.v1 import execution_pb2, task_pb2
from droidfleet_controller.cli.commands.run import MAX_PRIORITY, MAX_SEED
from droidfleet_controller.cli.execution_view import USUAL_PRIORITY
from droidfleet_controller.dispatch import execution as dispatch
from droidfleet_shared.protocol import task as protocol
from support.commandline import Command
from support.fake_controller import FakeFleet, execution

DOCUMENT = json.dumps({
    "schemaVersion": 1,
    "taskId": "order",
    "inputs": {"item": {"type": "string"}, "count": {"type": "integer"}, "pin": {"type": "secret"}},
    "steps": [{"id": "back", "action": "BACK"}],
})  # fmt: skip
VALUES = ["--input", "item=green tea", "--input", "count=2"]
SECRET = "hunter2-typed"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROIDFLEET_SECRET_PIN", SECRET)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "order.json"
    path.write_text(DOCUMENT)
    return str(path)


def sent(fleet: FakeFleet) -> execution_pb2.RunTaskRequest:
    request = fleet.last(execution_pb2.RunTaskRequest)
    assert isinstance(request, execution_pb2.RunTaskRequest)
    return request


def test_values_are_sent_with_their_declared_types_and_the_document_as_it_stands(
    droidfleet: Command, fleet: FakeFleet, file: str
) -> None:
    fleet.executions = [execution()]
    ran = droidfleet("task", "run", file, "-d", "phone-01", *VALUES, "--secret", "pin", "--seed", "7", "--no-watch")
    request = sent(fleet)
    assert json.loads(request.input_values_json) == {"item": "green tea", "count": 2, "pin": SECRET}
    assert (request.document_json, request.random_seed) == (DOCUMENT, 7)
    assert SECRET not in ran.out + ran.err


def test_without_values_and_seed_none_are_sent(droidfleet: Command, fleet: FakeFleet, file: str) -> None:
    fleet.executions = [execution()]
    droidfleet("task", "run", file, "-d", "phone-01", "--no-watch")
    assert (sent(fleet).input_values_json, sent(fleet).HasField("random_seed")) == ("", False)


def test_a_priority_is_sent_where_it_is_given(droidfleet: Command, fleet: FakeFleet, file: str) -> None:
    fleet.executions = [execution()]
    droidfleet("task", "run", file, "-d", "phone-01", "--priority", "0", "--no-watch")
    assert (sent(fleet).priority, sent(fleet).HasField("priority")) == (0, True)


def test_a_task_of_the_library_is_run_in_the_revision_that_declared_the_values(
    droidfleet: Command, fleet: FakeFleet
) -> None:
    fleet.executions = [execution()]
    fleet.tasks = [task_pb2.TaskTemplate(task_id="order", revision=4, document_json=DOCUMENT)]
    droidfleet("task", "run", "order", "-d", "phone-01", *VALUES, "--no-watch")
    assert (sent(fleet).ref.task_id, sent(fleet).ref.revision) == ("order", 4)
    assert json.loads(sent(fleet).input_values_json) == {"item": "green tea", "count": 2}


def test_a_file_holds_values(droidfleet: Command, fleet: FakeFleet, file: str, tmp_path: Path) -> None:
    fleet.executions = [execution()]
    (tmp_path / "values.yaml").write_text("item: coffee\ncount: 1\n")
    droidfleet("task", "run", file, "-d", "phone-01", "--inputs-file", str(tmp_path / "values.yaml"), "--no-watch")
    assert json.loads(sent(fleet).input_values_json) == {"item": "coffee", "count": 1}


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--input", "count=two"], (2, "BAD_INPUT")),
        (["--input", f"pin={SECRET}"], (4, "SECRET_ON_COMMAND_LINE")),
        (["--secret", "item"], (2, "BAD_INPUT")),
        (["--inputs-file", "no-such-file.json"], (2, "FILE_UNREADABLE")),
    ],
)
def test_what_cannot_be_a_value_is_refused_before_anything_is_sent(
    droidfleet: Command, fleet: FakeFleet, file: str, words: list[str], refusal: tuple[int, str]
) -> None:
    ran = droidfleet("task", "run", file, "-d", "phone-01", *words)
    assert (ran.code, ran.err.split(":")[0]) == refusal
    assert SECRET not in ran.err
    assert fleet.requests == []


def test_a_secret_that_is_nowhere_is_missing(droidfleet: Command, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    monkeypatch.delenv("DROIDFLEET_SECRET_PIN")
    ran = droidfleet("task", "run", file, "-d", "phone-01", "--secret", "pin")
    assert (ran.code, ran.err.split(":")[0]) == (2, "SECRET_MISSING")


def test_the_largest_seed_is_the_protocols() -> None:
    assert MAX_SEED == protocol.MAX_SEED


def test_priorities_are_the_controllers() -> None:
    assert (MAX_PRIORITY, USUAL_PRIORITY) == (dispatch.MAX_PRIORITY, dispatch.NORMAL_PRIORITY)
