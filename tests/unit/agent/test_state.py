"""The state folder: private, one id for a host, one process for a name."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from droidfleet_agent.link.heartbeat import NameTakenError
from droidfleet_agent.state import PhoneTakenError, StateError, StateFolder, default_folder


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_follows_the_environment() -> None:
    assert default_folder({"DROIDFLEET_STATE": "/a", "XDG_STATE_HOME": "/b"}) == Path("/a")
    assert default_folder({"XDG_STATE_HOME": "/b"}) == Path("/b/droidfleet")
    assert default_folder({}) == Path.home() / ".local/state/droidfleet"


def test_everything_in_it_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    state = StateFolder(folder)
    state.host_id()
    with state.name_lock("phone-01"):
        for path in (folder, *folder.rglob("*")):
            assert _mode(path) & 0o077 == 0, path


def test_the_hosts_id_is_drawn_once(tmp_path: Path) -> None:
    first = StateFolder(tmp_path).host_id()
    assert len(first) == 32
    assert StateFolder(tmp_path).host_id() == first
    assert StateFolder(tmp_path / "other").host_id() != first
    assert [path.name for path in tmp_path.glob("host-id*")] == ["host-id"]


def test_a_name_is_held_once_and_given_back(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    with state.name_lock("phone-01"):
        with pytest.raises(NameTakenError, match=f"pid {os.getpid()} on this host"), state.name_lock("phone-01"):
            pass
        with state.name_lock("phone-02"):
            pass
    with state.name_lock("phone-01"):
        pass


def test_a_phone_is_held_once_whatever_the_names_are(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    with state.phone_lock("R58M", adb="127.0.0.1:5037"):
        with (
            pytest.raises(PhoneTakenError, match=f"R58M is driven by another agent: pid {os.getpid()} on this host"),
            state.phone_lock("R58M", adb="127.0.0.1:5037"),
        ):
            pass
        with state.phone_lock("R58N", adb="127.0.0.1:5037"), state.phone_lock("R58M", adb="127.0.0.1:5038"):
            pass


def test_names_of_any_length_and_script_have_locks(tmp_path: Path) -> None:
    with StateFolder(tmp_path).name_lock("телефон/" * 16):
        pass


def test_a_killed_process_gives_its_name_back(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from droidfleet_agent.state import StateFolder\n"
        "with StateFolder(Path(sys.argv[1])).name_lock('phone-01'):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        state = StateFolder(tmp_path)
        with pytest.raises(NameTakenError, match=f"pid {process.pid}"), state.name_lock("phone-01"):
            pass
        process.kill()
        process.wait(10)
        with state.name_lock("phone-01"):
            pass


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="DROIDFLEET_STATE") as refused:
        StateFolder(tmp_path / "file" / "state")
    assert refused.value.code == "STATE_FOLDER_UNUSABLE"
