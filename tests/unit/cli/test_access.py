"""Tokens come from files and travel in the clear on loopback only."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commandline import Command
from support.fake_controller import FakeFleet


def test_token_of_the_named_file_goes_with_every_call(
    droidfleet: Command, fleet: FakeFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    monkeypatch.setenv("DROIDFLEET_API_TOKEN_FILE", str(tmp_path / "token"))
    droidfleet("devices")
    droidfleet("events")
    assert fleet.authorizations == ["Bearer s3cret"] * 2


def test_token_never_crosses_a_network_in_the_clear(
    offline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("s3cret")
    monkeypatch.setenv("DROIDFLEET_API_TOKEN_FILE", str(tmp_path / "token"))
    ran = offline("devices", "--api", "192.0.2.7:7400")
    assert (ran.code, ran.err.partition(":")[0]) == (4, "UNSAFE_ADDRESS")
    assert "s3cret" not in ran.err


def test_file_that_cannot_be_read_is_named(offline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DROIDFLEET_TLS_CA", "/nowhere/ca.pem")
    ran = offline("devices")
    assert ran.code == 2
    assert ran.err == "FILE_UNREADABLE: DROIDFLEET_TLS_CA: cannot read '/nowhere/ca.pem': No such file or directory.\n"
