"""Texts from elsewhere cannot act on a terminal, and what programs read keeps its value."""

from __future__ import annotations

import json
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.cli.options import Output
from droidfleet_controller.cli.output import emit
from droidfleet_controller.cli.text import duration, escape

NASTY = "\x1b]0;owned\x07\r\n\x9b2J\u202egnp.exe\u2066[red]x[/red] 😀 👩‍👩‍👧"


@given(st.text())
def test_escaped_text_is_one_line_without_controls(text: str) -> None:
    shown = escape(text)
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp", "Cs"} for character in shown)
    assert not any(unicodedata.bidirectional(character) in {"RLO", "LRO", "RLI", "LRI"} for character in shown)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_of_any_script_is_left_alone(text: str) -> None:
    assert escape(text) == text


def test_emoji_joined_of_several_stay_whole() -> None:
    assert escape("👩‍👩‍👧") == "👩‍👩‍👧"


@pytest.mark.parametrize("output", [Output.JSON, Output.YAML])
def test_documents_keep_the_value_and_write_no_controls(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    emit({"text": NASTY}, output)
    written = capsys.readouterr().out
    assert all(escape(line) == line for line in written.splitlines())
    read = json.loads(written) if output is Output.JSON else yaml.safe_load(written)
    assert read == {"text": NASTY}


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.04, "0.0 s"), (59.94, "59.9 s"), (60, "1 min"), (5400, "2 h"), (200_000, "2 days")]
)
def test_durations_show_one_unit(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown
