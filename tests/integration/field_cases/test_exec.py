"""`droidfleet-agent exec` on a virtual phone, through its own `run`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from pathlib import Path

import pytest

from droidfleet_agent.cli.exec import add_parser, run
from droidfleet_agent.state import StateFolder, default_folder
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.exit_codes import ExitCode
from support.adb import AdbServer, ConnectedPhones, RunningPhone, wait_for
from support.runs import JsonStep, task_of

pytestmark = pytest.mark.integration

NEXT = {"action": "CLICK", "selector": {"text": "Next"}}


class Command:
    """The command line, for one phone."""

    def __init__(self, folder: Path, adb: AdbServer, phone: RunningPhone) -> None:
        self._file = folder / "task.json"
        self.phone = phone
        self.adb = f"127.0.0.1:{adb.port}"

    def __call__(self, *words: str, steps: list[JsonStep]) -> int:
        self._file.write_text(task_of(*steps).model_dump_json(by_alias=True, exclude_none=True))
        parser = argparse.ArgumentParser()
        add_parser(parser.add_subparsers())
        return run(parser.parse_args(["exec", str(self._file), "--adb", self.adb, *words]))


@pytest.fixture
def command(tmp_path: Path, phones: ConnectedPhones, adb_server: AdbServer, form: Scenario) -> Command:
    return Command(tmp_path, adb_server, phones(PhoneOptions(scenario=form)))


def test_a_task_runs_on_the_only_phone_and_its_result_is_printed(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("-o", "json", steps=[NEXT]) == ExitCode.OK
    printed = capsys.readouterr()
    assert json.loads(printed.out)["steps"][0]["code"] == "OK"
    assert "1/1" in printed.err
    assert len(command.phone.effects.of("next_pressed")) == 1


def test_a_failing_task_has_an_exit_code_of_its_own(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    missing = {"action": "CLICK", "selector": {"text": "Nxt"}, "timeoutMs": 3000}
    assert command("-s", command.phone.address, steps=[missing]) == ExitCode.FAILED
    assert 'TARGET_NOT_FOUND: Step \'s1\': After 3000 ms: Looked for {"text": "Nxt"}' in capsys.readouterr().out


def test_a_task_for_another_agent_touches_nothing(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--name", "somebody-else", steps=[NEXT]) == ExitCode.FAILED
    assert "AGENT_MISMATCH" in capsys.readouterr().out
    assert not command.phone.effects.all()


def test_a_timeout_bounds_the_whole_task(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    never = {"action": "WAIT", "selector": {"text": "Never"}, "timeoutMs": 30_000}
    assert command("--timeout", "1", steps=[never]) == ExitCode.FAILED
    assert "TASK_TIMEOUT" in capsys.readouterr().out


def test_a_phone_that_is_gone_is_unavailable(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--serial", "no-such-phone", steps=[NEXT]) == ExitCode.REFUSED
    assert "DEVICE_NOT_FOUND" in capsys.readouterr().err


def test_an_interrupt_cancels_in_order_and_prints_the_result(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    command.phone.faults.add(Fault(on="dumpWindowHierarchy", do=FaultKind.HANG, times=None))

    def interrupt() -> None:
        wait_for(lambda: command.phone.faults.fired, timeout_s=20, what="a look that hangs")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        assert command("-o", "json", steps=[{**NEXT, "timeoutMs": 30_000}]) == ExitCode.INTERRUPTED
    finally:
        interrupting.join()
    result = json.loads(capsys.readouterr().out)
    assert result["code"] == "CANCELLED"
    assert "SIGINT" in result["message"]
    assert result["durationMs"] < 20_000


def test_a_phone_that_an_agent_drives_is_left_to_it(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    address = command.phone.address
    with StateFolder(default_folder()).phone_lock(address, adb=command.adb):
        assert command("-s", address, steps=[NEXT]) == ExitCode.REFUSED
    assert "PHONE_TAKEN" in capsys.readouterr().err
    assert not command.phone.effects.all()
    assert command("-s", address, steps=[NEXT]) == ExitCode.OK


def test_a_screenshot_is_saved(command: Command, tmp_path: Path) -> None:
    shot = {"id": "look", "action": "SCREENSHOT", "name": "form"}
    assert command("--artifacts", str(tmp_path / "pictures"), steps=[shot]) == ExitCode.OK
    [file] = (tmp_path / "pictures").iterdir()
    assert file.name.startswith("001-look-form.")
    assert file.stat().st_size > 1_000
