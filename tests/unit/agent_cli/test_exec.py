"""`droidfleet-agent exec`: what it accepts, which phone it takes, and what it prints."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from droidfleet_agent.cli.exec import add_parser, choose_phone, run
from droidfleet_agent.cli.exec_output import Progress, print_result, tell
from droidfleet_agent.cli.exec_task import Given, load_task
from droidfleet_agent.cli.failures import error_text, printable
from droidfleet_agent.driver.adb import AdbServer
from droidfleet_agent.driver.adb_errors import AdbError
from droidfleet_shared.clock import Deadline, SystemClock, VirtualClock
from droidfleet_shared.errors import DroidfleetError, InvalidInputError, NotFoundError
from droidfleet_shared.exit_codes import ExitCode
from droidfleet_shared.protocol.result import ArtifactModel
from droidfleet_shared.protocol.task import MAX_DOCUMENT_BYTES
from support.runs import JsonStep, run_steps, task_of
from support.shop import shop


class ListedPhones(AdbServer):
    """An adb server that lists these phones."""

    def __init__(self, devices: Mapping[str, str], connect: str) -> None:
        super().__init__("127.0.0.1", 1)
        self._listed = devices
        self._connect = connect

    async def start(self, *, deadline: Deadline) -> None:
        pass

    async def devices(self, *, deadline: Deadline) -> Mapping[str, str]:
        return self._listed

    async def connect(self, address: str, *, deadline: Deadline) -> str:
        return self._connect


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    return parser.parse_args(["exec", *words])


async def chosen(devices: Mapping[str, str], serial: str | None = None, *, connect: str = "") -> str:
    return await choose_phone(ListedPhones(devices, connect), serial, clock=SystemClock())


async def test_the_only_phone_is_taken() -> None:
    assert await chosen({"A": "device"}) == "A"
    assert await chosen({"A": "offline", "B": "device"}) == "B"


async def test_the_named_phone_is_taken() -> None:
    assert await chosen({"A": "device", "B": "device"}, "B") == "B"


NETWORK_PHONE = "127.0.0.1:7101"


@pytest.mark.parametrize("answer", ["connected to", "already connected to"])
async def test_a_network_phone_that_is_not_listed_is_connected(answer: str) -> None:
    assert await chosen({}, NETWORK_PHONE, connect=f"{answer} {NETWORK_PHONE}") == NETWORK_PHONE


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (f"failed to connect to '{NETWORK_PHONE}': Connection refused", "DEVICE_NOT_FOUND"),
        (f"failed to authenticate to {NETWORK_PHONE}", "DEVICE_UNAUTHORIZED"),
        ("", "DEVICE_NOT_FOUND"),
    ],
)
async def test_a_network_phone_that_cannot_be_connected_is_told_at_once(answer: str, code: str) -> None:
    with pytest.raises(AdbError) as refused:
        await chosen({}, NETWORK_PHONE, connect=answer)
    assert refused.value.code == code
    assert answer in refused.value.message


@pytest.mark.parametrize(
    ("devices", "serial", "code", "kind"),
    [
        ({}, None, "NO_DEVICE", NotFoundError),
        ({"A": "device", "B": "device"}, None, "SEVERAL_DEVICES", InvalidInputError),
        ({"A": "unauthorized"}, None, "DEVICE_UNAUTHORIZED", AdbError),
        ({"A": "unauthorized"}, "A", "DEVICE_UNAUTHORIZED", AdbError),
        ({"A": "offline"}, None, "DEVICE_OFFLINE", AdbError),
        ({"A": "device"}, "C", "DEVICE_NOT_FOUND", NotFoundError),
        ({}, "C", "DEVICE_NOT_FOUND", NotFoundError),
    ],
)
async def test_without_a_phone_to_use_the_error_says_what_to_do(
    devices: dict[str, str], serial: str | None, code: str, kind: type[DroidfleetError]
) -> None:
    with pytest.raises(kind) as refused:
        await chosen(devices, serial)
    assert refused.value.code == code
    assert refused.value.hint


def test_a_missing_file_is_an_invalid_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(arguments(str(tmp_path / "no.json"), "--serial", "A")) == ExitCode.INVALID
    assert "FILE_UNREADABLE" in capsys.readouterr().err


def test_an_invalid_task_lists_every_issue_and_runs_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text(json.dumps({"schemaVersion": 1, "taskId": "t", "assignedAgentName": "a", "steps": [], "x": 1}))
    assert run(arguments(str(file))) == ExitCode.INVALID
    printed = capsys.readouterr().err
    for word in ("INVALID_TASK", "UNKNOWN_FIELD", "EMPTY_STEPS"):
        assert word in printed


def test_a_huge_file_is_refused_and_not_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_bytes(b" " * (MAX_DOCUMENT_BYTES * 4))
    with pytest.raises(InvalidInputError) as refused:
        load_task(str(file))
    assert "TOO_LARGE" in error_text(refused.value)


def test_a_task_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = task_of({"action": "BACK"}).model_dump_json(by_alias=True, exclude_none=True)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert load_task("-").steps[0].action == "BACK"


@pytest.mark.parametrize(
    "words",
    [["--adb", "x"], ["--adb", "h:0"], ["--adb", ":5037"], ["--timeout", "0"], ["--timeout", "x"], ["-o", "xml"]],
)
def test_wrong_arguments_end_with_the_code_for_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        arguments("task.json", *words)
    assert left.value.code == ExitCode.INVALID


def test_an_adb_server_that_is_not_there_is_unavailable(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text(task_of({"action": "BACK"}).model_dump_json(by_alias=True, exclude_none=True))
    # No name below .invalid ever resolves (RFC 2606), and a server elsewhere is not started by us.
    assert run(arguments(str(file), "--adb", "nowhere.invalid:5037")) == ExitCode.UNAVAILABLE
    assert "ADB_UNREACHABLE" in capsys.readouterr().err


async def printed(capsys: pytest.CaptureFixture[str], output: str, *steps: JsonStep) -> str:
    clock = VirtualClock()
    progress = Progress(task_of(*steps), serial="memory", out=io.StringIO())
    result = await run_steps(shop(clock), clock, *steps, observer=progress)
    print_result(result, output)  # type: ignore[arg-type]  # one of the choices
    return capsys.readouterr().out


async def test_a_result_for_programs_is_the_protocols_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(await printed(capsys, "json", {"action": "BACK"}))
    assert document["successful"] is True
    assert document["steps"][0]["detail"] == "DISPATCHED_UNVERIFIED"
    assert "successful: true" in await printed(capsys, "yaml", {"action": "BACK"})


async def test_a_result_for_people_names_outputs_and_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    extract = {"action": "EXTRACT_TEXT", "selector": {"text": "Tea"}, "outputField": "drink"}
    twin = {"action": "CLICK", "selector": {"text": "Delete"}}
    text = await printed(capsys, "text", extract, twin)
    assert 'output drink = "Tea"' in text
    assert "TARGET_AMBIGUOUS: Step 's2'" in text
    assert "OK: all 1 step in" in await printed(capsys, "text", extract)


async def test_a_failure_that_the_task_went_on_after_is_told_below_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missing = {"action": "CLICK", "selector": {"text": "Nowhere"}, "timeoutMs": 100, "onFailure": "CONTINUE"}
    text = await printed(capsys, "text", missing, {"action": "BACK"})
    assert "went on after s1: TARGET_NOT_FOUND: " in text
    assert re.search(r"^OK: 2 steps in [\d.]+ s, 1 failed$", text, re.MULTILINE)


async def test_the_failure_that_ends_a_task_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"action": "CLICK", "selector": {"text": "Nowhere"}, "timeoutMs": 100}
    group = {"action": "GROUP", "steps": [{"id": "inner", **missing}]}
    text = await printed(capsys, "text", {**missing, "onFailure": "CONTINUE"}, group)
    assert re.findall(r"went on after (\w+)", text) == ["s1"]
    assert text.count("TARGET_NOT_FOUND: ") == 2


async def test_a_task_goes_on_when_nobody_reads_its_progress() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    clock = VirtualClock()
    phone = shop(clock)
    step = {"action": "CLICK", "selector": {"text": "Tea"}}
    with os.fdopen(writer, "w") as unread:
        progress = Progress(task_of(step), serial="memory", out=unread)
        assert (await run_steps(phone, clock, step, observer=progress)).successful
    assert phone.page == "detail"


def test_what_the_terminal_has_no_letters_for_is_escaped() -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    tell("5 €", out=terminal)
    terminal.seek(0)
    assert terminal.read() == "5 \\u20ac\n"


def test_a_defect_has_an_exit_code_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("droidfleet_agent.cli.exec.choose_phone", broken)
    file = tmp_path / "task.json"
    file.write_text(task_of({"action": "BACK"}).model_dump_json(by_alias=True, exclude_none=True))
    assert run(arguments(str(file))) == ExitCode.INTERNAL
    assert "INTERNAL" in capsys.readouterr().err


async def test_progress_has_a_line_for_each_step_and_one_for_each_candidate() -> None:
    out = io.StringIO()
    clock = VirtualClock()
    steps = ({"action": "WAIT", "selector": {"text": "Tea"}}, {"action": "CLICK", "selector": {"text": "Delete"}})
    await run_steps(shop(clock), clock, *steps, observer=Progress(task_of(*steps), serial="memory", out=out))
    lines = out.getvalue().splitlines()
    assert [line.split()[:4] for line in lines[2:4]] == [
        ["1/2", "s1", "WAIT", "OK"],
        ["2/2", "s2", "CLICK", "TARGET_AMBIGUOUS"],
    ]
    assert lines[4:] == [
        '          candidate "Delete" at [40,900][440,1000]',
        '          candidate "Delete" at [40,1100][440,1200]',
    ]


def test_text_from_a_screen_cannot_act_on_the_terminal() -> None:
    assert printable("a\x1b[31m\u202eb\nc") == "a\\x1b[31m\\u202eb\\nc"


def test_a_template_is_assigned_to_whoever_runs_it(tmp_path: Path) -> None:
    file = tmp_path / "template.json"
    file.write_text('{"schemaVersion": 1, "taskId": "x", "steps": [{"id": "a", "action": "BACK"}]}')
    assert load_task(str(file), name="phone-01").assigned_agent_name == "phone-01"
    assert load_task(str(file)).assigned_agent_name


DECLARED = {"item": {"type": "string"}, "count": {"type": "integer"}, "pin": {"type": "secret"}}
SECRET = "hunter2-typed"


def with_inputs(folder: Path, **fields: object) -> str:
    """A file with a template that needs values."""
    body = {"schemaVersion": 1, "taskId": "x", "inputs": DECLARED, "steps": [{"id": "a", "action": "BACK"}]}
    file = folder / "order.json"
    file.write_text(json.dumps(body | fields))
    return str(file)


def test_a_task_gets_values_typed_as_declared_secrets_and_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROIDFLEET_SECRET_PIN", SECRET)
    file = with_inputs(tmp_path, inputValues={"item": "coffee", "count": 1})
    task = load_task(file, given=Given(pairs=["item=green tea"], secrets=["pin"], seed=7))
    assert task.input_values == {"item": "green tea", "count": 1, "pin": SECRET}
    assert task.random_seed == 7


@pytest.mark.parametrize("given", [Given(), Given(pairs=["item=x"]), Given(pairs=["itme=x", "count=1"])])
def test_values_that_do_not_fit_are_issues_that_show_no_secret(tmp_path: Path, given: Given) -> None:
    file = with_inputs(tmp_path, inputValues={"pin": SECRET})
    with pytest.raises(InvalidInputError) as refused:
        load_task(file, given=given)
    assert refused.value.code == "INVALID_TASK"
    assert SECRET not in error_text(refused.value)


def test_a_name_twice_is_found_also_when_values_are_given(tmp_path: Path) -> None:
    file = tmp_path / "task.json"
    file.write_text('{"taskId": "x", "taskId": "y", "schemaVersion": 1, "steps": [{"id": "a", "action": "BACK"}]}')
    with pytest.raises(InvalidInputError) as refused:
        load_task(str(file), given=Given(seed=1))
    assert "BAD_JSON" in error_text(refused.value)


@pytest.mark.parametrize("seed", ["-1", "x", str(2**53), "1.5", ""])
def test_a_seed_that_cannot_be_is_wrong_usage(seed: str) -> None:
    with pytest.raises(SystemExit) as left:
        arguments("task.json", "--seed", seed)
    assert left.value.code == ExitCode.INVALID


PICTURE = ArtifactModel(name="../page", media_type="image/png", sha256="0" * 64, size_bytes=4)


async def _kept(progress: Progress, count: int) -> None:
    await progress.step_started("look", "/steps/0")
    for number in range(count):
        await progress.artifact(PICTURE, b"PNG%d" % number)


async def test_artifacts_are_saved_under_names_of_ours(tmp_path: Path) -> None:
    out = io.StringIO()
    await _kept(Progress(task_of({"action": "BACK"}), serial="memory", out=out, artifacts=tmp_path / "pictures"), 2)
    names = sorted(file.name for file in (tmp_path / "pictures").iterdir())
    assert names == ["001-look-page.png", "002-look-page.png"]
    assert f"saved {tmp_path / 'pictures' / names[0]}" in out.getvalue()


async def test_artifacts_that_are_not_saved_are_counted(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    clock = VirtualClock()
    result = await run_steps(shop(clock), clock, {"action": "BACK"})
    progress = Progress(task_of({"action": "BACK"}), serial="memory", out=io.StringIO())
    await _kept(progress, 3)
    progress.end(result)
    assert "3 artifact(s) not saved: --artifacts FOLDER saves them" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    progress = Progress(task_of({"action": "BACK"}), serial="memory", out=io.StringIO(), artifacts=tmp_path / "file")
    await _kept(progress, 1)
    progress.end(result)
    assert "FILE_UNWRITABLE" in capsys.readouterr().err


async def test_what_was_left_to_chance_can_be_had_again() -> None:
    out = io.StringIO()
    clock = VirtualClock()
    steps = {"action": "BACK", "probability": 50}
    progress = Progress(task_of(steps), serial="memory", out=out)
    result = await run_steps(shop(clock), clock, steps, observer=progress)
    progress.end(result)
    assert f"--seed {result.random_seed} chooses the same again" in out.getvalue()


async def test_steps_in_a_loop_are_printed_with_their_rounds_and_without_a_total() -> None:
    out = io.StringIO()
    clock = VirtualClock()
    loop = {"id": "loop", "action": "REPEAT", "maxIterations": 2, "steps": [{"id": "back", "action": "BACK"}]}
    await run_steps(shop(clock), clock, loop, observer=Progress(task_of(loop), serial="memory", out=out))
    rows = [line.split()[:3] for line in out.getvalue().splitlines()[2:]]
    assert rows == [["1", "back", "BACK"], ["2", "back", "(2)"], ["3", "loop", "REPEAT"]]
