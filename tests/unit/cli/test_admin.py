"""`droidfleet admin`: what people and programs read of it, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import grpc

from droidfleet.v1 import admin_pb2
from droidfleet_controller.store.database import Database, sqlite_url
from droidfleet_controller.store.migrate import migrate
from support.commandline import Command
from support.fake_controller import FakeFleet, Refusal

FINDING = admin_pb2.Finding(code="DOCUMENT_MISSING", where="device phone-01", message="none.", hint="Make it anew.")


def a_data_folder(folder: Path) -> Path:
    folder.mkdir()
    engine = Database(sqlite_url(folder / "droidfleet.db")).engine
    migrate(engine)
    engine.dispose()
    return folder


def progress(stage: admin_pb2.RebuildStage.ValueType, done: int, total: int) -> admin_pb2.RebuildBusResponse:
    return admin_pb2.RebuildBusResponse(stage=stage, done=done, total=total)


def test_a_rebuild_says_how_far_it_is(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["RebuildBus"] = [
        progress(admin_pb2.REBUILD_STAGE_STREAMS, 3, 3),
        progress(admin_pb2.REBUILD_STAGE_DOCUMENTS, 1, 2),
        progress(admin_pb2.REBUILD_STAGE_DOCUMENTS, 2, 2),
        progress(admin_pb2.REBUILD_STAGE_AGENTS, 1, 2),
        progress(admin_pb2.REBUILD_STAGE_DONE, 2, 2),
    ]
    ran = droidfleet("admin", "rebuild-bus")
    assert ran.code == 0
    assert "documents that the broker has: 1 of 2" in ran.err
    assert ran.out == "The broker has all 2 documents; 1 of 2 agents that are heard follow theirs.\n"


def test_a_rebuild_that_is_refused_says_why(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["RebuildBus"] = [Refusal(grpc.StatusCode.ALREADY_EXISTS, "REBUILD_RUNNING", "already", "Wait.")]
    ran = droidfleet("admin", "rebuild-bus")
    assert (ran.code, ran.err) == (4, "REBUILD_RUNNING: already\nhint: Wait.\n")


def test_a_check_that_finds_something_exits_with_1(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["CheckFleet"] = [admin_pb2.CheckFleetResponse(findings=[FINDING], documents=2, agents=1)]
    ran = droidfleet("admin", "check")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "device phone-01 DOCUMENT_MISSING: none.",
        "    Make it anew.",
        "the database, 2 documents of the broker, 1 agents: 1 to look at",
    ]


def test_a_check_that_finds_nothing_exits_with_0(droidfleet: Command, fleet: FakeFleet) -> None:
    fleet.answers["CheckFleet"] = [admin_pb2.CheckFleetResponse(documents=2, agents=1)]
    ran = droidfleet("admin", "check", "-o", "json")
    assert (ran.code, json.loads(ran.out)) == (0, {"findings": []})


def test_a_backup_is_made_checked_and_put_back_without_a_controller(offline: Command, tmp_path: Path) -> None:
    data = str(a_data_folder(tmp_path / "data"))
    file = tmp_path / "fleet.backup"
    made = offline("admin", "backup", str(file), "--data", data, "-o", "json")
    assert (made.code, json.loads(made.out)["bytes"]) == (0, file.stat().st_size)
    checked = offline("admin", "check", str(file))
    assert (checked.code, checked.out) == (0, f"{file}: all is well\n")
    back = offline("admin", "restore", str(file), "--data", data, "-o", "json")
    said = json.loads(back.out)
    assert (back.code, said["lost"], said["pausedRollouts"]) == (0, 0, [])
    assert (Path(said["keptAside"]) / "droidfleet.db").exists()


def test_a_backup_over_a_file_is_refused(offline: Command, tmp_path: Path) -> None:
    data = str(a_data_folder(tmp_path / "data"))
    file = tmp_path / "fleet.backup"
    file.write_text("mine")
    ran = offline("admin", "backup", str(file), "--data", data)
    assert (ran.code, ran.err.partition(":")[0], file.read_text()) == (4, "FILE_EXISTS", "mine")


def test_a_restore_needs_a_file_or_settle_and_not_both(offline: Command, tmp_path: Path) -> None:
    for words in ([], [str(tmp_path / "fleet.backup"), "--settle"]):
        ran = offline("admin", "restore", *words, "--data", str(tmp_path))
        assert (ran.code, ran.err.partition(":")[0]) == (2, "BAD_ARGUMENTS")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_its_own_tools_restored_is_settled(offline: Command, tmp_path: Path) -> None:
    data = str(a_data_folder(tmp_path / "data"))
    ran = offline("admin", "restore", "--settle", "--data", data)
    assert (ran.code, ran.out.splitlines()[0].partition(" ")[0]) == (0, "0")
