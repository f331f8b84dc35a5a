"""Importing takes a second or two at most, whatever stands in the file."""

from __future__ import annotations

import time

import pytest

from droidfleet_controller.importing.report import MAX_REFUSED
from droidfleet_controller.importing.sources import Form, import_file

LIMIT_S = 10.0
"""Of computing; five times what the costliest takes on a slow machine."""

MANY = 19_000
"""Commands: nearly as many as a file may hold values."""


@pytest.mark.parametrize("command", ["back", "bakc", "tapOn: ''"])
def test_a_file_that_says_one_thing_many_times_is_read_in_time(command: str) -> None:
    times = MANY if ":" not in command else MANY // 3
    data = ("appId: a.b\n---\n" + f"- {command}\n" * times).encode()
    began = time.thread_time()
    imported = import_file(data, form=Form.MAESTRO, file="flow.yaml")
    assert imported.document is None
    assert time.thread_time() - began < LIMIT_S


def test_no_more_refusals_are_looked_for_than_are_listed() -> None:
    data = ("appId: a.b\n---\n" + "- bakc\n" * MANY + "- back\n").encode()
    report = import_file(data, form=Form.MAESTRO, file="flow.yaml").report
    assert len(report) == MAX_REFUSED + 1
