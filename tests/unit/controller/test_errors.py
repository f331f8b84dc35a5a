"""What errors become at the door."""

from __future__ import annotations

import json

import grpc
import pytest

from droidfleet_controller.api.errors import (
    MAX_ISSUES_BYTES,
    MAX_TEXT_BYTES,
    _fitting,
    _percent_encoded,
    hint_metadata,
    issues_json,
    status_of,
)
from droidfleet_shared.errors import ConflictError
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Issue


def test_issues_travel_as_they_are() -> None:
    issue = Issue("/steps/0", ValidationCode.UNKNOWN_FIELD, "häßlich", "hint")
    assert json.loads(issues_json([issue])) == [
        {"path": "/steps/0", "code": "UNKNOWN_FIELD", "message": "häßlich", "hint": "hint"}
    ]


def test_issues_that_do_not_fit_are_counted() -> None:
    issues = [Issue(f"/steps/{number}", ValidationCode.WRONG_TYPE, "x" * 100, "") for number in range(200)]
    sent = json.loads(issues_json(issues))
    assert len(json.dumps(sent[:-1])) <= MAX_ISSUES_BYTES
    assert sent[-1]["message"] == f"and {200 - len(sent) + 1} more issue(s)"


def test_a_hint_in_ascii_is_plain_metadata() -> None:
    assert hint_metadata("Try\tagain.\nThen wait.") == ("droidfleet-hint", "Try again. Then wait.")


def test_a_hint_in_another_script_keeps_its_letters() -> None:
    assert hint_metadata("Did you mean '手机-02'?") == ("droidfleet-hint-bin", "Did you mean '手机-02'?".encode())


@pytest.mark.parametrize("letter", ["a", "é", "手", "🙂", "%", "\ud800"])
def test_a_message_fits_however_its_letters_are_encoded(letter: str) -> None:
    fitting = _fitting(letter * 5_000, _percent_encoded)
    assert fitting
    assert _percent_encoded(fitting) <= MAX_TEXT_BYTES


@pytest.mark.parametrize("letter", ["a", "é", "手", "🙂"])
def test_a_hint_fits_however_its_letters_are_encoded(letter: str) -> None:
    _key, value = hint_metadata(letter * 5_000)
    assert 0 < len(value) * 4 // 3 <= MAX_TEXT_BYTES * 4 // 3


def test_what_changed_meanwhile_is_told_apart_from_what_exists_already() -> None:
    assert status_of(ConflictError("STALE_VERSION", "version 3, not 2.")) is grpc.StatusCode.ABORTED
    assert status_of(ConflictError("GROUP_EXISTS", "there is one.")) is grpc.StatusCode.ALREADY_EXISTS
