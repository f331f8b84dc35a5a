"""What errors become at the door."""

from __future__ import annotations

import json

from droidfleet_controller.api.errors import MAX_ISSUES_BYTES, _ascii, issues_json
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


def test_a_hint_becomes_printable_ascii() -> None:
    assert _ascii("Did you mean 'möbel'?\nTry\tagain 🙂") == "Did you mean 'm\\xf6bel'? Try again \\U0001f642"
