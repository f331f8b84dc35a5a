"""Backups, restores, rebuilding and checks, over a real broker and SQLite, with agents that know more than a backup."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import grpc
import pytest

from droidfleet.v1 import admin_pb2, admin_pb2_grpc
from droidfleet_controller.admin import backup, restore
from droidfleet_controller.admin.restore import Restored
from droidfleet_controller.artifact_files import ArtifactFiles
from droidfleet_shared.bus.link import BusLink
from droidfleet_shared.bus.messages import ExecutionRef
from support.controller import Api, document, running_controller, scripted_agent, settings_for
from support.nats import NatsServer
from support.waiting import until

pytestmark = pytest.mark.integration

REBUILD_S = 60.0
HEARTBEAT_S = 1.0


def stub(api: Api) -> admin_pb2_grpc.AdminServiceAsyncStub:
    made: admin_pb2_grpc.AdminServiceAsyncStub = admin_pb2_grpc.AdminServiceStub(api.channel)
    return made


async def rebuild(api: Api) -> list[admin_pb2.RebuildBusResponse]:
    """RebuildBus, to its end."""
    call = stub(api).RebuildBus(admin_pb2.RebuildBusRequest(), timeout=REBUILD_S)
    return [progress async for progress in call]


async def found(api: Api) -> list[tuple[str, str]]:
    """What CheckFleet finds: code and where."""
    answer = await stub(api).CheckFleet(admin_pb2.CheckFleetRequest(), timeout=REBUILD_S)
    return [(each.code, each.where) for each in answer.findings]


async def delete_stream(link: BusLink, name: str) -> None:
    answer = json.loads((await link.request(f"$JS.API.STREAM.DELETE.{name}", b"", timeout_s=5)).data)
    assert answer["success"], answer


def back_up(data: Path, file: Path) -> None:
    backup.make(data / "droidfleet.db", file, artifacts=None, now=datetime.now(UTC), say=lambda _: None)


def put_back(data: Path, file: Path) -> Restored:
    return restore.restore(file, settings_for(data), now=datetime.now(UTC), say=lambda _: None)


async def begin(api: Api, *names: str) -> list[str]:
    return [each.execution_id for each in (await api.run(document(), *names)).executions]


# Rebuilding.


async def test_streams_that_somebody_deleted_come_back_with_every_document(tmp_path: Path) -> None:
    """Nothing breaks the connection, so nobody notices but whoever asks."""
    async with (
        running_controller(tmp_path / "data", heartbeat_s=HEARTBEAT_S) as api,
        scripted_agent(api.nats, "a") as first,
        scripted_agent(api.nats, "b") as second,
    ):
        ids = await begin(api, "a", "b")
        await first.assigned(ids[0])
        await second.assigned(ids[1])
        for name in ("DESIRED", "EVENTS"):
            await delete_stream(first.link, name)
        first.documents.clear()
        second.documents.clear()
        said = await rebuild(api)
        assert said[-1] == admin_pb2.RebuildBusResponse(stage=admin_pb2.REBUILD_STAGE_DONE, done=2, total=2)
        for agent, execution_id in ((first, ids[0]), (second, ids[1])):
            await agent.read()
            await agent.run(execution_id)
            await api.until_state(execution_id, "SUCCEEDED")


async def test_a_lost_jetstream_folder_costs_nothing_that_agents_have_written_down(tmp_path: Path) -> None:
    """The broker's disk goes while results are on their way; the embedded broker starts on an empty folder."""
    data = tmp_path / "data"
    async with running_controller(data, heartbeat_s=HEARTBEAT_S) as api, scripted_agent(api.nats, "a") as agent:
        ids = [(await begin(api, "a"))[0] for _ in range(3)]
        await agent.run(ids[0])
        await api.until_state(ids[0], "SUCCEEDED")
        await agent.assigned(ids[1])
        pid = int((data / "nats" / "nats-server.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        shutil.rmtree(data / "nats" / "jetstream")
        await until(lambda: not agent.link.connected)
        agent.documents.clear()
        await until(lambda: agent.link.connected, within_s=30)

        async with asyncio.timeout(REBUILD_S):
            while (await api.get("/readyz"))[0] != 200:
                pass
        await rebuild(api)
        await agent.read()
        # Sent to the broker that is gone, and again from the agent's journal.
        await agent.run(ids[1])
        await agent.run(ids[2])
        for each in ids:
            await api.until_state(each, "SUCCEEDED")
        assert await found(api) == []


async def test_rebuilding_a_healthy_bus_with_work_going_on_changes_nothing(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data", heartbeat_s=HEARTBEAT_S) as api,
        scripted_agent(api.nats, "a") as agent,
    ):
        [mine] = await begin(api, "a")
        await agent.assigned(mine)
        await agent.accept(mine)
        await agent.start(mine)
        await rebuild(api)
        await rebuild(api)
        assert [each.attempt for each in agent.document.executions] == [1]
        await agent.finish(mine)
        await api.until_state(mine, "SUCCEEDED")
        kinds = [event.kind for event in await api.events(execution_id=mine)]
        assert kinds == ["ExecutionCreated", "ExecutionAccepted", "ExecutionStarted", "ExecutionFinished"]


async def test_two_rebuilds_at_a_time_are_refused(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data") as api,
        scripted_agent(api.nats, "a") as agent,
    ):
        await agent.assigned((await begin(api, "a"))[0])
        agent.reported_generation = 0
        await agent.beat()
        first = stub(api).RebuildBus(admin_pb2.RebuildBusRequest(), timeout=REBUILD_S)
        await first.read()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rebuild(api)
        assert caught.value.code() is grpc.StatusCode.ALREADY_EXISTS
        first.cancel()


async def test_a_rebuild_without_a_broker_says_so(tmp_path: Path, nats_server: NatsServer) -> None:
    async with running_controller(tmp_path / "data", nats=nats_server.url) as api:
        nats_server.stop()
        async with asyncio.timeout(20):
            while (await api.get("/readyz"))[0] == 200:
                pass
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rebuild(api)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


# Restoring.


async def test_what_was_queued_in_the_backup_and_done_since_is_read_again_and_not_done_again(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    data, file = tmp_path / "data", tmp_path / "fleet.backup"
    async with scripted_agent(nats_server.url, "a", hello=False) as agent:
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            ids = [(await begin(api, "a"))[0] for _ in range(6)]
            await agent.assigned(ids[0])
            back_up(data, file)
            for each in ids:
                await agent.run(each)
            for each in ids:
                await api.until_state(each, "SUCCEEDED")
                await agent.until_recorded(each)
        assert put_back(data, file).settled.lost == len(ids)
        agent.documents.clear()
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            await agent.read()
            for each in ids:
                await api.until_state(each, "SUCCEEDED", within_s=30)
            assert not {execution for made in agent.documents for execution in made.executions}
            # New work goes its way.
            [fresh] = await begin(api, "a")
            await agent.run(fresh)
            await api.until_state(fresh, "SUCCEEDED")


async def test_with_the_broker_gone_too_nothing_is_done_again_and_agents_bring_what_they_have(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    """The worst case: the machine is lost, last night's backup is all there is."""
    data, file = tmp_path / "data", tmp_path / "fleet.backup"
    async with scripted_agent(nats_server.url, "a", hello=False) as agent:
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            ids = [(await begin(api, "a"))[0] for _ in range(6)]
            await agent.assigned(ids[0])
            back_up(data, file)
            for each in ids:
                await agent.run(each)
            await api.until_state(ids[-1], "SUCCEEDED")
        nats_server.kill()
        # Else the connection that is gone would be taken for the new one.
        await until(lambda: not agent.link.connected)
        nats_server.lose_store()
        shutil.rmtree(data)
        nats_server.start()
        put_back(data, file)
        agent.documents.clear()
        await until(lambda: agent.link.connected, within_s=30)
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            await agent.read()
            # One result it still has; the others it has forgotten, as they were recorded once.
            await agent.finish(ids[0])
            await api.until_state(ids[0], "SUCCEEDED")
            assert [await api.state(each) for each in ids[1:]] == ["LOST"] * 5
            [fresh] = await begin(api, "a")
            await agent.run(fresh)
            await api.until_state(fresh, "SUCCEEDED")
            told = {execution.execution_id for made in agent.documents for execution in made.executions}
            assert told == {fresh}


async def test_what_runs_over_a_restore_goes_on(tmp_path: Path, nats_server: NatsServer) -> None:
    data, file = tmp_path / "data", tmp_path / "fleet.backup"
    async with scripted_agent(nats_server.url, "a", hello=False) as agent:
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            [mine] = await begin(api, "a")
            await agent.assigned(mine)
            await agent.accept(mine)
            await agent.start(mine)
            await api.until_state(mine, "RUNNING")
            back_up(data, file)
            [later] = await begin(api, "a")
            await agent.assigned(later)
            before = agent.document
        assert put_back(data, file).settled.going_on == 1
        agent.documents.clear()
        async with running_controller(data, nats=nats_server.url) as api:
            await agent.hello()
            await agent.read()
            [assignment] = agent.document.executions
            assert (assignment.execution_id, assignment.attempt) == (mine, 1)
            # Whoever has not begun it must not: the time to start is over. And it is another database's order.
            assert assignment.start_within_s == 0
            assert agent.document.epoch != before.epoch
            await agent.finish(mine)
            await api.until_state(mine, "SUCCEEDED")
            # What was asked for after the backup is unknown now; what comes of it is kept.
            await agent.finish(later)
            await agent.until_recorded(later)


# Checks.


async def test_a_healthy_fleet_at_work_has_nothing_to_look_at(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data", heartbeat_s=HEARTBEAT_S) as api,
        scripted_agent(api.nats, "a") as agent,
    ):
        [mine] = await begin(api, "a")
        await agent.run(mine)
        await agent.until_recorded(mine)
        await agent.beat()
        answer = await stub(api).CheckFleet(admin_pb2.CheckFleetRequest(), timeout=REBUILD_S)
        assert (list(answer.findings), answer.documents, answer.agents) == ([], 1, 1)


async def test_what_the_broker_lost_is_found_and_a_rebuild_mends_it(tmp_path: Path) -> None:
    async with (
        running_controller(tmp_path / "data", heartbeat_s=HEARTBEAT_S) as api,
        scripted_agent(api.nats, "a") as agent,
    ):
        await agent.assigned((await begin(api, "a"))[0])
        # An agent that came gets its document anew; after that nothing is on its way.
        await until(lambda: agent.document.generation == 2)
        await agent.beat()
        assert await found(api) == []
        purged = await agent.link.request("$JS.API.STREAM.PURGE.DESIRED", b"", timeout_s=5)
        assert json.loads(purged.data)["success"]
        assert ("DOCUMENT_MISSING", "device a") in await found(api)
        await delete_stream(agent.link, "DESIRED")
        assert ("STREAM_MISSING", "stream DESIRED") in await found(api)
        await rebuild(api)
        await agent.beat()
        assert await found(api) == []


async def test_files_of_artifacts_that_are_gone_or_were_cut_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_controller.admin.checks.SETTLE_S", 0.1)
    data = tmp_path / "data"
    contents = {sha256(text).hexdigest(): text for text in (b"whole", b"cut", b"gone")}
    whole, cut, gone = contents
    async with running_controller(data) as api:
        files = ArtifactFiles(data / "artifacts")
        files.keep(contents)
        with closing(sqlite3.connect(data / "droidfleet.db")) as database, database:
            rows = [(digest, len(text), "2027-01-01 00:00:00") for digest, text in contents.items()]
            database.executemany("INSERT INTO artifact_files (sha256, size_bytes, used_at) VALUES (?, ?, ?)", rows)
        assert await found(api) == []
        files.remove([gone])
        (data / "artifacts" / cut[:2] / cut).write_bytes(b"cu")
        assert sorted(await found(api)) == [
            ("ARTIFACT_DAMAGED", f"artifact {cut}"),
            ("ARTIFACT_MISSING", f"artifact {gone}"),
        ]
    assert files.read(whole) == b"whole"


async def test_agents_that_say_otherwise_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("droidfleet_controller.admin.checks.SETTLE_S", 0.1)
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "a") as agent:
        [mine] = await begin(api, "a")
        await agent.assigned(mine)
        await agent.accept(mine)
        await agent.start(mine)
        await api.until_state(mine, "RUNNING")
        await agent.beat()
        assert await found(api) == [("NOT_RUNNING", f"execution {mine}")]
        beat = agent.heartbeat().model_copy(update={"running": ExecutionRef(execution_id="x-other", attempt=1)})
        await agent.link.publish("fleet.heartbeat.a", beat.encode())
        await until_heard(api, "x-other")
        assert ("RUNS_UNKNOWN", "device a") in await found(api)
        agent.reported_generation = 0
        await agent.finish(mine)
        await api.until_state(mine, "SUCCEEDED")
        beat = agent.heartbeat().model_copy(update={"running": ExecutionRef(execution_id=mine, attempt=1)})
        await agent.link.publish("fleet.heartbeat.a", beat.encode())
        await until_heard(api, mine)
        assert sorted(await found(api)) == [("AGENT_BEHIND", "device a"), ("RUNS_ENDED", "device a")]


async def until_heard(api: Api, running: str) -> None:
    """Until the controller has heard that the agent runs this."""
    async with asyncio.timeout(10):
        while (await api.device("a")).running_execution_id != running:
            pass


async def test_a_check_without_a_broker_says_what_it_could_not_see(tmp_path: Path, nats_server: NatsServer) -> None:
    async with running_controller(tmp_path / "data", nats=nats_server.url) as api:
        nats_server.stop()
        async with asyncio.timeout(20):
            while (await api.get("/readyz"))[0] == 200:
                pass
        assert await found(api) == [("BROKER_UNAVAILABLE", "broker")]
