"""`droidfleet task explain`, and the page that shows it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from droidfleet_shared.protocol.bounds import OPEN_EFFECTS, SELECT_EFFECTS, WAKE_EFFECTS
from droidfleet_shared.protocol.codes import WarningCode
from support.commandline import Command

PAGE = (Path(__file__).parents[3] / "docs" / "explain.md").read_text(encoding="utf-8")
CLICK = {"id": "send", "action": "CLICK", "selector": {"text": "Send"}}


def document(*steps: object, **fields: object) -> bytes:
    return json.dumps({"schemaVersion": 1, "taskId": "t", "steps": list(steps) or [CLICK]} | fields).encode()


def test_the_example_of_the_page_prints_what_the_page_shows(
    offline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = re.findall(r"```json\n(.*?)```", PAGE, re.S)
    ((command, expected),) = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.S)
    (tmp_path / "tea.json").write_text(task)
    monkeypatch.chdir(tmp_path)
    ran = offline(*shlex.split(command)[1:])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == expected


def test_the_page_lists_every_warning() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.M)
    assert listed == [code.value for code in WarningCode]


def test_the_page_gives_the_numbers_of_the_code() -> None:
    assert f"`maxScrolls` + {SELECT_EFFECTS} |" in PAGE
    assert f"| {OPEN_EFFECTS}; {OPEN_EFFECTS + 1} with `stopFirst` |" in PAGE
    assert f"| WAKE | {WAKE_EFFECTS}:" in PAGE


def test_explaining_needs_no_controller(offline: Command) -> None:
    ran = offline("task", "explain", "-", stdin=document())
    assert ran.code == 0
    assert 'tap text "Send"' in ran.out
    assert "Takes: at most 8 s, 1 effect" in ran.out
    assert "IRREVERSIBLE_EFFECT" in ran.out


def test_explaining_in_chinese(offline: Command) -> None:
    ran = offline("task", "explain", "-", "--lang", "zh", stdin=document())
    assert '点击 文字为 "Send"' in ran.out
    assert "上限：最多 8 秒，操作 1 次" in ran.out  # noqa: RUF001 - Chinese


def test_explaining_for_programs(offline: Command) -> None:
    repeat = {"id": "r", "action": "REPEAT", "maxIterations": 2, "steps": [CLICK]}
    read = json.loads(offline("task", "explain", "-", "-o", "json", stdin=document(repeat)).out)
    assert read["bound"]["timeMs"] == 13_000
    assert read["bound"]["text"] == "at most 13 s, 2 effects, hides the keyboard twice"
    assert (read["steps"][0]["steps"][0]["path"], read["steps"][0]["steps"][0]["runs"]) == ("/steps/0/steps/0", 2)


def test_an_invalid_document_is_answered_as_by_validate(offline: Command) -> None:
    bad = document({"id": "a", "action": "CLIK"})
    explained, validated = (offline("task", word, "-", stdin=bad) for word in ("explain", "validate"))
    assert (explained.code, explained.out) == (validated.code, validated.out)
    assert explained.code == 2
    explained, validated = (offline("task", word, "-", "-o", "json", stdin=bad) for word in ("explain", "validate"))
    assert explained.out == validated.out


def test_values_are_taken_as_their_inputs_are_declared(offline: Command) -> None:
    step = {"id": "a", "action": "INPUT", "selector": {"text": "x"}, "value": "${inputs.item}${inputs.n}${inputs.b}"}
    inputs = {"item": {"type": "string"}, "n": {"type": "integer"}, "b": {"type": "boolean"}}
    given = [word for value in ("item=7", "n=7", "b=true") for word in ("--input", value)]
    ran = offline("task", "explain", "-", *given, stdin=document(step, inputs=inputs))
    assert re.findall(r"\$\{inputs\.\w+\}: (.*)", ran.out) == ['"7" (given)', "7 (given)", "true (given)"]


def test_a_value_that_nobody_declared_is_an_error_of_the_document(offline: Command) -> None:
    text = document(inputs={"n": {"type": "integer", "default": 1}})
    ran = offline("task", "explain", "-", "--input", "m=7", stdin=text)
    assert ran.code == 2
    assert ran.out.startswith("/inputValues/m ")


@pytest.mark.parametrize(("given", "code"), [("n=seven", "BAD_INPUT"), ("seven", "BAD_INPUT")])
def test_a_value_that_does_not_fit_is_refused(offline: Command, given: str, code: str) -> None:
    text = document(inputs={"n": {"type": "integer", "default": 1}})
    ran = offline("task", "explain", "-", "--input", given, stdin=text)
    assert (ran.code, ran.err.split(":")[0]) == (2, code)


def test_a_secret_needs_no_value_to_be_explained(offline: Command) -> None:
    step = {"id": "a", "action": "INPUT", "selector": {"text": "x"}, "value": "${inputs.pin}"}
    ran = offline("task", "explain", "-", stdin=document(step, inputs={"pin": {"type": "secret"}}))
    assert ran.code == 0
    assert "${inputs.pin}: to be given with the run (secret)" in ran.out


@pytest.mark.parametrize("command", ["explain", "validate"])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_words_of_ones_own_are_looked_for(
    offline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, by: str
) -> None:
    words = tmp_path / "words.txt"
    words.write_text("# German\nabsenden\n")
    text = document({"id": "a", "action": "CLICK", "selector": {"text": "Absenden"}})
    if by == "environment":
        monkeypatch.setenv("DROIDFLEET_EFFECT_WORDS", str(words))
        assert "IRREVERSIBLE_EFFECT" in offline("task", command, "-", stdin=text).out
    else:
        assert "IRREVERSIBLE_EFFECT" in offline("task", command, "-", "--words", str(words), stdin=text).out
        assert "IRREVERSIBLE_EFFECT" not in offline("task", command, "-", stdin=text).out


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a" * 2_000_000])
def test_words_that_cannot_be_read_are_an_error(offline: Command, tmp_path: Path, content: bytes | None) -> None:
    words = tmp_path / "words.txt"
    if content is not None:
        words.write_bytes(content)
    ran = offline("task", "explain", "-", "--words", str(words), stdin=document())
    assert (ran.code, ran.err.split(":")[0]) == (2, "FILE_UNREADABLE")
