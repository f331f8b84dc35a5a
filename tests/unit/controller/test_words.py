"""Words of one's own in the controller's warnings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from droidfleet_controller.tasks.documents import check_template
from droidfleet_controller.tasks.words import load_words
from droidfleet_shared.errors import InvalidInputError

BODY = json.dumps(
    {"schemaVersion": 1, "taskId": "t", "steps": [{"id": "a", "action": "CLICK", "selector": {"text": "Absenden"}}]}
)


def test_words_in_a_file_are_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("absenden\n")
    assert [warning.code for warning in check_template(BODY, words=load_words(file)).warnings] == [
        "IRREVERSIBLE_EFFECT"
    ]
    assert check_template(BODY, words=load_words(None)).warnings == ()


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="FILE_UNREADABLE"):
        load_words(tmp_path / "words.txt")
