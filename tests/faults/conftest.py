"""The workplace of the end-to-end tests: a folder, an environment of its own, programs that end with the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from droidfleet_demo.fleet import environment
from droidfleet_demo.processes import Parts
from support.workplace import Workplace, left_running


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    """A folder with nothing running."""
    parts = Parts(tmp_path)
    try:
        yield Workplace(tmp_path, environment(tmp_path, adb_port=parts.keep_ports(1)[0]), parts)
    finally:
        parts.stop_all()
        for process in left_running(tmp_path):
            process.kill()
