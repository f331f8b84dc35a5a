"""What the user of `droidfleet-agent` and `droidfleet-phone` reads of an error."""

from __future__ import annotations

import pytest

from droidfleet_agent.cli.failures import error_text
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_shared.errors import InvalidInputError, NotFoundError
from droidfleet_shared.protocol.validate import validate_document


def test_each_issue_of_a_task_is_said_once() -> None:
    document = b'{"schemaVersion": 1, "taskId": "t", "steps": [{"id": "a", "action": "BACK", "selektor": 1, "x": 2}]}'
    with pytest.raises(InvalidInputError) as caught:
        validate_document(document).require()
    lines = error_text(caught.value).splitlines()
    assert lines[0] == "INVALID_TASK: the document is not valid: 2 errors."
    assert sum("`selektor` is not a field" in line for line in lines) == 1
    assert not any(line.startswith("hint:") for line in lines)


def test_an_unknown_scenario_is_said_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_scenario("shp")
    assert error_text(caught.value).splitlines() == [
        "BAD_SCENARIO: shp cannot be used: 1 error.",
        "  (document) BAD_FILE: No such file or directory.",
        "      Did you mean 'shop'?",
        "hint: See docs/scenarios.md.",
    ]


def test_an_error_without_issues_keeps_its_message_and_hint() -> None:
    error = NotFoundError("DEVICE_NOT_FOUND", "adb: nobody: at home.", hint="Look.")
    assert error_text(error) == "DEVICE_NOT_FOUND: adb: nobody: at home.\nhint: Look."
