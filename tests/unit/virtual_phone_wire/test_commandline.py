"""Command lines as clients write them."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.virtual_phone.wire.commandline import (
    LAST_STATUS,
    CommandLineError,
    Joint,
    parse,
    with_status,
)

WORDS = st.lists(
    st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), min_size=1
)


@given(WORDS.filter(lambda words: words[0] != "" and "=" not in words[0]))
def test_words_quoted_by_a_client_come_out_as_they_went_in(words: list[str]) -> None:
    (command,) = parse(shlex.join(words))
    assert list(command.words) == words


@given(st.text(max_size=200))
def test_no_line_crashes_the_parser(line: str) -> None:
    try:
        commands = parse(line)
    except CommandLineError:
        return
    assert all(command.words for command in commands)


def test_uiautomator2s_shell_suffix_gets_the_status() -> None:
    first, second = parse("ls /x; echo X4EXIT:$?")
    assert first.words == ("ls", "/x")
    assert [with_status(word, 3) for word in second.words] == ["echo", "X4EXIT:3"]


def test_a_quoted_status_is_taken_literally_in_single_quotes_only() -> None:
    (command,) = parse("""echo '$?' "$?" """)
    assert command.words == ("echo", "$?", LAST_STATUS)


def test_joints_tell_how_commands_depend() -> None:
    assert [command.joint for command in parse("a; b && c || d | e\nf")] == [
        Joint.ALWAYS,
        Joint.ALWAYS,
        Joint.AND,
        Joint.OR,
        Joint.PIPE,
        Joint.ALWAYS,
    ]


def test_environment_stands_before_the_command() -> None:
    (command,) = parse("CLASSPATH=/data/local/tmp/u2.jar app_process / com.wetest.uia2.Main -p 9008")
    assert command.environment == {"CLASSPATH": "/data/local/tmp/u2.jar"}
    assert command.words[0] == "app_process"


@pytest.mark.parametrize("line", ["rm '/a' </dev/null", "rm /a 2>&1", "rm /a >/dev/null 2>&1", "rm /a 2>/dev/null"])
def test_redirections_are_no_words(line: str) -> None:
    (command,) = parse(line)
    assert command.words == ("rm", "/a")
    assert command.write_to == ""


def test_output_to_a_file_is_kept() -> None:
    (command,) = parse("echo hi > /sdcard/x")
    assert command.write_to == "/sdcard/x"


def test_ampersand_leaves_the_command_running() -> None:
    first, second = parse("sleep 100 & echo started")
    assert (first.background, second.background) == (True, False)


def test_an_open_quote_is_an_error() -> None:
    with pytest.raises(CommandLineError, match="quote"):
        parse("echo 'oops")
