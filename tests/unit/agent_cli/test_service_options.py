"""`droidfleet-agent run` and `supervise`: options, their errors, and what they print."""

from __future__ import annotations

import json

import pytest

from droidfleet_agent.cli import main
from droidfleet_agent.cli.options import tell


def _main(*arguments: str) -> int:
    try:
        return main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("run", "--serial", "s", "--nats", "http://x"), 2, "BAD_NATS_URL"),
        (("run", "--serial", "s", "--nats", "nats://user:hush@x:1"), 2, "SECRET_IN_URL"),
        (("run", "--serial", "s", "--nats-credentials", "/nonexistent"), 2, "BAD_CREDENTIALS"),
        (("run", "--serial", "s", "--name", " "), 2, "BAD_NAME"),
        (("run", "--serial", "s", "--name", "x" * 129), 2, "BAD_NAME"),
        (("run", "--serial", "s", "--state", "/dev/null/state"), 4, "STATE_FOLDER_UNUSABLE"),
        (("run", "--serial", "s", "--heartbeat", "0"), 2, "--heartbeat"),
        (("run", "--serial", "s", "--adb", "nowhere"), 2, "--adb"),
        (("run", "--serial", "s", "--log-level", "loud"), 2, "--log-level"),
        (("supervise", "--name", "no-equals-sign"), 2, "SERIAL=NAME"),
        (("supervise", "--name", "a=x", "--name", "b=x"), 2, "BAD_NAME"),
        (("supervise", "--name", "a=x", "--name", "a=y"), 2, "BAD_NAME"),
        (("supervise", "--phones-per-process", "0"), 2, "--phones-per-process"),
        (("supervise", "--state", "/dev/null/state"), 4, "STATE_FOLDER_UNUSABLE"),
        ((), 2, "COMMAND"),
        (("no-such-command",), 2, "no-such-command"),
    ],
)
def test_wrong_use_is_answered_with_a_code_and_a_reason(
    arguments: tuple[str, ...], code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(*arguments) == code
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert "hush" not in said


def test_an_agent_without_a_phone_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    assert _main("run") == 2
    assert "--serial" in capsys.readouterr().err


def test_a_wrong_word_in_the_environment_is_refused_like_one_on_the_command_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROIDFLEET_OUTPUT", "xml")
    assert _main("run", "--serial", "s") == 2
    assert "'xml' is not one of text, json" in capsys.readouterr().err


@pytest.mark.parametrize("command", [(), ("exec",), ("run",), ("supervise",)])
def test_every_command_explains_itself_with_examples(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(*command, "--help") == 0
    assert "usage: droidfleet-agent" in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert _main("--version") == 0
    assert capsys.readouterr().out.startswith("droidfleet-agent ")


def test_news_are_one_json_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell("json", "agent_online", "x is online.", name="x\ny")
    assert json.loads(capsys.readouterr().out) == {"event": "agent_online", "name": "x\ny"}


def test_sentences_cannot_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tell("text", "agent_online", "x\x1b[2J is online.")
    assert capsys.readouterr().out == "x\\x1b[2J is online.\n"
