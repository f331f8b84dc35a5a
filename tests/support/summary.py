"""Shows at the end of a run what the history checker counted in it: a pass alone says too little."""

from __future__ import annotations

import time
from itertools import dropwhile, takewhile
from pathlib import Path

import pytest

CHECKED = Path(__file__).resolve().parents[2] / "build" / "chaos" / "tests"
"""Where the checker's test leaves its report."""

_STARTED = time.time()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The report's first table, if this run wrote one."""
    report = CHECKED / "report.md"
    if not report.exists() or report.stat().st_mtime < _STARTED:
        return
    terminalreporter.section("lost, twice, unknown")
    table = dropwhile(lambda line: not line.startswith("|"), report.read_text().splitlines())
    for line in takewhile(lambda line: line.startswith("|"), table):
        terminalreporter.write_line(line)
    terminalreporter.write_line(f"all of it: {report}")
