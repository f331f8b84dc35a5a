"""`droidfleet-phone` as a person runs it: what it prints, how it ends, and that its page tells the truth."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from droidfleet_agent.virtual_phone.calls import GROUPS
from droidfleet_agent.virtual_phone.faults import FaultKind, load_faults, parse_faults
from droidfleet_agent.virtual_phone.latency import PROFILES
from droidfleet_agent.virtual_phone.program import main
from droidfleet_shared.errors import InvalidInputError
from support.adb import AdbServer, wait_for

pytestmark = pytest.mark.integration

COMMAND = Path(sys.executable).parent / "droidfleet-phone"
PAGE = Path(__file__).parents[3] / "docs" / "virtual-phone.md"
PORT_OF_PAGE = "7101"

Start: TypeAlias = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts `droidfleet-phone`; every one of them is gone at the end."""
    running: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(COMMAND), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def ready(process: subprocess.Popen[str], count: int = 1) -> list[dict[str, object]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def first_cells(header: str) -> list[str]:
    """The first column of the table that begins with ``header``."""
    rows = PAGE.read_text(encoding="utf-8").split(f"\n| {header} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [row.split("|")[1].strip() for row in rows]


# -- the command


def test_json_output_is_one_line_for_each_phone_once_it_listens(start: Start) -> None:
    lines = ready(start("--port", "0", "--count", "3", "--variant-for", "3=twin", "-o", "json"), 3)
    assert [line["serial"] for line in lines] == ["VP00000001", "VP00000002", "VP00000003"]
    assert [line["variant"] for line in lines] == [None, None, "twin"]
    for line in lines:
        assert isinstance(line["port"], int)
        socket.create_connection(("127.0.0.1", line["port"]), timeout=30).close()


def test_terminated_phone_ends_with_0(start: Start) -> None:
    process = start("--port", "0", "-o", "json")
    ready(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_interrupted_phone_ends_with_130(start: Start) -> None:
    process = start("--port", "0", "-o", "json")
    ready(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130


def test_phone_with_a_host_connected_ends_at_once(start: Start, adb_server: AdbServer) -> None:
    process = start("--port", "0", "-o", "json")
    address = str(ready(process)[0]["address"])
    adb_server.connect(address)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    adb_server.disconnect(address)


def test_taken_port_is_told_with_a_code(start: Start) -> None:
    (line,) = ready(start("--port", "0", "-o", "json"))
    second = start("--port", str(line["port"]))
    assert second.wait(timeout=30) == 4
    assert second.stderr is not None
    assert second.stderr.read().startswith("PORT_TAKEN: ")


def test_introduction_says_what_to_do_next(start: Start) -> None:
    process = start("--port", "0")
    assert process.stdout is not None
    text = "".join(iter(process.stdout.readline, "Ctrl-C stops it.\n"))
    assert "adb connect 127.0.0.1:" in text
    assert "uiautomator2.connect(" in text


def test_effects_are_appended_as_json_lines(start: Start, adb_server: AdbServer, tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    address = str(ready(start("--port", "0", "-o", "json", "--effects", str(path)))[0]["address"])
    adb_server.connect(address)
    adb_server.run("-s", address, "shell", "input tap 500 1000")
    wait_for(lambda: path.read_text(encoding="utf-8"), timeout_s=30, what="an effect in the file")
    effects = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert "tap" in [effect["kind"] for effect in effects]
    adb_server.disconnect(address)


# -- wrong usage


@pytest.mark.parametrize(
    ("arguments", "code", "status"),
    [
        (["--scenario", "nosuch"], "BAD_SCENARIO", 2),
        (["--variant", "nosuch"], "BAD_SCENARIO", 2),
        (["--variant-for", "2=twin"], "BAD_VARIANT_FOR", 2),
        (["--variant-for", "twin"], "BAD_VARIANT_FOR", 2),
        (["--count", "0"], "BAD_COUNT", 2),
        (["--count", "5", "--port", "65533"], "BAD_PORT", 2),
        (["--latency", "fast"], "LATENCY_INVALID", 2),
        (["--faults", "/nowhere.yaml"], "FAULTS_INVALID", 2),
        (["--effects", "/nowhere/at/all", "--port", "0"], "EFFECTS_FILE", 2),
        (["--listen", "0.0.0.0"], "UNSAFE_ADDRESS", 4),
        (["--listen", "203.0.113.7", "--allow-remote"], "ADDRESS_INVALID", 2),
        (["--check", "/nowhere.yaml"], "BAD_SCENARIO", 2),
    ],
)
def test_wrong_usage_has_a_code_and_an_exit_status(
    arguments: list[str], code: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    assert capsys.readouterr().err.startswith(f"{code}: ")


def test_check_prints_every_fault_of_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("format: 1\nname: x\ncolour: red\napps: []\n")
    assert main(["--check", str(path)]) == 2
    printed = capsys.readouterr().err
    assert "/colour" in printed
    assert "/apps" in printed


def test_check_of_a_good_scenario_names_what_it_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "shop"]) == 0
    assert "twin" in capsys.readouterr().out


def test_shipped_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-scenarios"]) == 0
    assert {"shop", "settings", "chat", "login"} <= set(capsys.readouterr().out.split())


# -- the page


def test_adb_commands_of_the_page_work(start: Start, adb_server: AdbServer, tmp_path: Path) -> None:
    port = str(ready(start(*blocks("sh")[0].split()[1:-1], "0", "-o", "json"))[0]["port"])
    script = blocks("sh")[1].replace(PORT_OF_PAGE, port)
    environment = {
        **adb_server.environment,
        "PATH": f"{Path(adb_server.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-ec", script], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "mCurrentFocus=Window{" in done.stdout
    assert "<hierarchy" in done.stdout
    assert (tmp_path / "screen.png").read_bytes()[:4] == b"\x89PNG"
    adb_server.disconnect(f"127.0.0.1:{port}")


def test_python_example_of_the_page_works(start: Start, adb_server: AdbServer, tmp_path: Path) -> None:
    port = str(ready(start(*blocks("sh")[0].split()[1:-1], "0", "-o", "json"))[0]["port"])
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[0].replace(PORT_OF_PAGE, port)],
        env=adb_server.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "com.example.shop\nThe camera is not available\n", done.stderr
    assert (tmp_path / "screen.jpg").read_bytes()[:2] == b"\xff\xd8"
    adb_server.disconnect(f"127.0.0.1:{port}")


def test_in_process_example_of_the_page_works(capsys: pytest.CaptureFixture[str]) -> None:
    imports, body = blocks("python")[1].split("\n\n", 1)
    names: dict[str, object] = {}
    exec(f"{imports}\nasync def example():\n{textwrap.indent(body, '    ')}", names)
    example = names["example"]
    assert callable(example)
    asyncio.run(example())
    assert capsys.readouterr().out.startswith("127.0.0.1:")


def test_page_lists_every_fault_and_no_other() -> None:
    assert first_cells("`do`") == [f"`{kind}`" for kind in FaultKind]


def test_page_lists_every_name_that_faults_can_be_about() -> None:
    assert first_cells("`on`") == [f"`{name}`" for name in GROUPS]


def test_faults_of_the_page_are_valid(tmp_path: Path) -> None:
    (tmp_path / "faults.yaml").write_text(blocks("yaml")[0])
    assert len(load_faults(tmp_path / "faults.yaml")) == 4


@pytest.mark.parametrize("kind", list(FaultKind))
def test_page_says_on_which_calls_a_fault_can_happen(kind: FaultKind) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \|[^|]*\| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    words = {"connect": "connect", "streams": "open", "shell": "shell", "requests": "http", "calls": "rpc"}
    for word, name in words.items():
        try:
            parse_faults([{"on": name, "do": str(kind), **({"seconds": 1} if kind in {"slow", "offline"} else {})}])
            possible = True
        except InvalidInputError:
            possible = False
        assert possible is (word in row or row.startswith("everything")), f"{kind} on {name}"


def test_page_states_the_latency_profiles() -> None:
    rows = PAGE.read_text(encoding="utf-8").split("| delay of |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    stated = {row.split("`")[1]: float(row.split("|")[3]) for row in rows}
    realistic = PROFILES["realistic"].model_dump(exclude={"real_gestures"})
    assert stated == realistic
