"""`droidfleet task import`: what it prints, saves and refuses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from droidfleet_shared.protocol.validate import validate_template
from support.commandline import Command

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "importing"
PAGE = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")

FLOW = b"appId: com.example.shop\n---\n- launchApp\n- back\n"
CLICK = {"id": "a", "type": "click", "params": {"selector_type": "text", "selector_value": "OK"}}


def document(*steps: object) -> bytes:
    return json.dumps({"name": "t", "task_type": "generic_steps", "params": {"steps": list(steps) or [CLICK]}}).encode()


def test_the_examples_of_the_page_print_what_the_page_shows(
    offline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "110")
    good, made, bad, _ = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    (tmp_path / "daily-check.json").write_text(good)
    (tmp_path / "bad.json").write_text(bad)
    shown = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.S)
    codes = []
    for command, expected in shown:
        ran = offline(*shlex.split(command)[1:])
        assert ran.out == expected
        codes.append(ran.code)
    assert codes == [0, 2]
    assert json.loads((tmp_path / "task.json").read_text()) == json.loads(made)


def test_without_a_file_to_save_it_the_task_alone_is_on_standard_output(offline: Command) -> None:
    ran = offline("task", "import", "-", stdin=document())
    assert ran.code == 0
    assert validate_template(ran.out).valid
    assert "1 mapped, 0 normalised, 0 refused" in ran.err


def test_the_form_is_seen_from_the_file(offline: Command) -> None:
    for data, form in ((document(), "generic"), (FLOW, "maestro")):
        said = json.loads(offline("task", "import", "-", "-o", "json", stdin=data).out)
        assert (said["form"], said["imported"]) == (form, True)


def test_the_form_may_be_said(offline: Command) -> None:
    ran = offline("task", "import", "-", "--from", "maestro", stdin=b'{"appId": "a.b"}\n---\n["back"]\n')
    assert json.loads(ran.out)["steps"] == [{"id": "back", "action": "BACK"}]


def test_a_program_reads_the_report_and_the_task(offline: Command) -> None:
    said = json.loads(offline("task", "import", "-", "-o", "json", stdin=document({**CLICK, "type": "CLICK"})).out)
    assert said["counts"] == {"mapped": 1, "normalised": 1, "refused": 0}
    assert said["report"][0] == {
        "place": "/params/steps/0/type",
        "what": "normalised",
        "code": "SPELLING",
        "message": '`type`: `"CLICK"` is read as `"click"`',
        "hint": None,
    }
    assert said["document"]["steps"][0]["action"] == "CLICK"
    assert said["aside"] == {}


def test_nothing_is_saved_when_something_is_refused(offline: Command, tmp_path: Path) -> None:
    out, report = tmp_path / "task.json", tmp_path / "report.json"
    files = ("--out", str(out), "--report", str(report))
    ran = offline("task", "import", "-", *files, stdin=document(CLICK, {"type": "clik"}))
    assert ran.code == 2
    assert not out.exists()
    said = json.loads(report.read_text())
    assert (said["imported"], said["counts"]["refused"]) == (False, 1)
    assert "document" not in said


def test_a_refusal_leaves_standard_output_empty(offline: Command) -> None:
    ran = offline("task", "import", "-", stdin=document({"type": "clik"}))
    assert (ran.code, ran.out) == (2, "")
    assert "Did you mean `click`?" in ran.err


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_file_is_replaced_only_when_that_is_asked_for(offline: Command, tmp_path: Path, option: str) -> None:
    there = tmp_path / "there.json"
    there.write_text("mine")
    refused = offline("task", "import", "-", option, str(there), stdin=document())
    assert (refused.code, refused.err.split(":")[0], there.read_text()) == (4, "FILE_EXISTS", "mine")
    assert offline("task", "import", "-", option, str(there), "--force", stdin=document()).code == 0
    assert json.loads(there.read_text())
    assert [each.name for each in tmp_path.iterdir()] == ["there.json"]


def test_a_folder_that_is_not_there_is_said_before_anything_is_read(offline: Command, tmp_path: Path) -> None:
    ran = offline("task", "import", "missing.json", "--out", str(tmp_path / "no" / "a.json"))
    assert (ran.code, ran.err.split(":")[0]) == (2, "FILE_UNWRITABLE")


def test_a_file_that_is_not_there_is_said(offline: Command) -> None:
    ran = offline("task", "import", "missing.json")
    assert (ran.code, ran.err.split(":")[0]) == (2, "FILE_UNREADABLE")


def test_the_task_is_named_by_the_option_else_the_file_says_else_after_the_file(
    offline: Command, tmp_path: Path
) -> None:
    flow = tmp_path / "buy-tea.yaml"
    flow.write_bytes(FLOW)
    assert json.loads(offline("task", "import", str(flow)).out)["taskId"] == "buy-tea"
    assert json.loads(offline("task", "import", str(flow), "--id", "mine").out)["taskId"] == "mine"
    assert json.loads(offline("task", "import", "-", stdin=document()).out)["taskId"] == "t"


def test_points_are_taken_when_they_are_allowed(offline: Command) -> None:
    point = document({"id": "a", "type": "click_xy", "params": {"x": 50, "y": 50}})
    assert offline("task", "import", "-", stdin=point).code == 2
    assert offline("task", "import", "-", "--allow-points", stdin=point).code == 0


def test_flows_beside_the_flow_are_read(offline: Command) -> None:
    ran = offline("task", "import", str(DATA / "flows" / "buy-tea.yaml"))
    assert json.loads(ran.out) == json.loads((DATA / "buy-tea.expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "called", ['"a\\0b"', '"a\\ud800"', "circle", "a" * 300], ids=["NUL", "half", "circle", "long"]
)
def test_a_flow_whose_name_no_file_can_have_is_refused_in_the_report(
    offline: Command, tmp_path: Path, called: str
) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / "a.yaml").write_text(f"- runFlow: {called}\n")
    ran = offline("task", "import", str(tmp_path / "a.yaml"))
    assert ran.code == 2
    assert "FILE_NOT_FOLLOWED" in ran.err


def test_a_link_does_not_lead_out_of_the_folder(offline: Command, tmp_path: Path) -> None:
    inside = tmp_path / "flows"
    inside.mkdir()
    (tmp_path / "outside.yaml").write_text("- back\n")
    (inside / "linked.yaml").symlink_to(tmp_path / "outside.yaml")
    (inside / "a.yaml").write_text("- runFlow: linked.yaml\n")
    ran = offline("task", "import", str(inside / "a.yaml"))
    assert ran.code == 2
    assert "FILE_NOT_FOLLOWED" in ran.err


def test_a_flow_that_is_not_there_is_said(offline: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("- runFlow: b.yaml\n")
    ran = offline("task", "import", str(tmp_path / "a.yaml"))
    assert ran.code == 2
    assert "FILE_NOT_FOLLOWED" in ran.err


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b'{"a": 1, "a": 2}', "BAD_JSON"),
        (b"{", "BAD_JSON"),
        (b'{"schemaVersion": 1}', "UNKNOWN_FORM"),
        (b"[{}, {}]", "UNKNOWN_FORM"),
        (b"\xff\xfe", "BAD_YAML"),
        (b"{" + b" " * 300_000, "TOO_LARGE"),
        (b"", "UNKNOWN_FORM"),
    ],
)
def test_what_is_no_file_of_either_form_is_refused(offline: Command, data: bytes, code: str) -> None:
    ran = offline("task", "import", "-", "-o", "json", stdin=data)
    assert ran.code == 2
    assert [entry["code"] for entry in json.loads(ran.out)["report"]] == [code]


def test_texts_of_a_file_cannot_act_on_a_terminal(offline: Command) -> None:
    ran = offline("task", "import", "-", stdin=document({"type": "\x1b[2J\u202e"}))
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err
