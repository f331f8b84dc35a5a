"""One running fleet for the tests that leave it as they found it, and empty workplaces for the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from droidfleet_demo.fleet import Fleet, environment, start_fleet
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
        for process in left_running(tmp_path):  # the adb server that an agent started, which outlives it by design
            process.kill()


@pytest.fixture(scope="session")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, Workplace]]:
    """A controller and the devices phone-01 and phone-02, and where to talk to them from."""
    folder = tmp_path_factory.mktemp("fleet")
    parts = Parts(folder)
    try:
        fleet = start_fleet(folder, parts, plain=2, twins=0)
        yield fleet, Workplace(folder, fleet.env, parts)
    finally:
        parts.stop_all()


@pytest.fixture
def fleet(shared_fleet: tuple[Fleet, Workplace]) -> Fleet:
    """The shared fleet."""
    return shared_fleet[0]


@pytest.fixture
def at_fleet(shared_fleet: tuple[Fleet, Workplace]) -> Workplace:
    """Where to talk to the shared fleet from."""
    return shared_fleet[1]
