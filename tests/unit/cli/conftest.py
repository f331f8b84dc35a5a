"""The command line in process, against a fake controller."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator

import pytest

from droidfleet_controller.cli.app import main
from support.commandline import Command, Ran
from support.fake_controller import FakeFleet, running


@pytest.fixture
def fleet() -> FakeFleet:
    return FakeFleet()


@pytest.fixture
def address(fleet: FakeFleet) -> Iterator[str]:
    with running(fleet) as served:
        yield served


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `droidfleet ARGS...` with no controller named."""
    monkeypatch.delenv("DROIDFLEET_API", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "argv", ["droidfleet", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return Ran(int(left.value.code or 0), out, err)

    return run


@pytest.fixture
def droidfleet(offline: Command, address: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs `droidfleet ARGS...` against the fake controller."""
    monkeypatch.setenv("DROIDFLEET_API", address)
    return offline
