"""Whatever dies in between: nothing that was accepted is lost, nothing is done twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from support.controller import document, running_controller, scripted_agent
from support.nats import NatsServer, server_binary
from support.waiting import until

pytestmark = pytest.mark.integration


async def test_a_controller_that_starts_again_goes_on_where_it_was(tmp_path: Path, nats_server: NatsServer) -> None:
    data = tmp_path / "data"
    async with scripted_agent(nats_server.url, "phone-01", hello=False) as agent:
        async with running_controller(data, nats=nats_server.url) as api:
            assert (await agent.hello()).granted
            execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
            await agent.assigned(execution_id)
            await agent.accept(execution_id)
            await agent.start(execution_id)
            await api.until_state(execution_id, "RUNNING")
        await agent.step(execution_id, "back-0")
        await agent.finish(execution_id)
        async with running_controller(data, nats=nats_server.url) as api:
            assert (await api.device("phone-01")).serial == "serial-phone-01"
            await api.until_state(execution_id, "SUCCEEDED")
            await agent.until_recorded(execution_id)


async def test_a_holder_is_remembered_over_a_restart_of_the_controller(tmp_path: Path, nats_server: NatsServer) -> None:
    data = tmp_path / "data"
    async with (
        scripted_agent(nats_server.url, "phone-01", hello=False) as holder,
        scripted_agent(nats_server.url, "phone-01", instance="i-2", host_id="h-2", hello=False) as other,
    ):
        async with running_controller(data, nats=nats_server.url):
            assert (await holder.hello()).granted
        async with running_controller(data, nats=nats_server.url):
            reply = await other.hello()
            assert not reply.granted
            assert "pid 4711 on testhost" in reply.holder
            assert (await holder.hello()).granted


async def test_a_broker_that_is_killed_in_mid_run_comes_back_and_the_run_ends_well(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_controller(data) as api, scripted_agent(api.nats, "phone-01") as agent:
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.assigned(execution_id)
        await agent.accept(execution_id)
        await agent.start(execution_id)
        await api.until_state(execution_id, "RUNNING")
        first = int((data / "nats" / "nats-server.pid").read_text())
        os.kill(first, signal.SIGKILL)
        await until(lambda: not agent.link.connected, what="the agent notices")
        await until(lambda: agent.link.connected, within_s=30, what="the agent is back")
        assert int((data / "nats" / "nats-server.pid").read_text()) != first
        await agent.finish(execution_id)
        await api.until_state(execution_id, "SUCCEEDED", within_s=30)
        await agent.until_recorded(execution_id, within_s=30)


async def test_what_is_accepted_while_the_broker_is_away_goes_out_when_it_is_back(
    tmp_path: Path, nats_server: NatsServer
) -> None:
    async with (
        running_controller(tmp_path / "data", nats=nats_server.url) as api,
        scripted_agent(nats_server.url, "phone-01") as agent,
    ):
        nats_server.kill()
        await until(lambda: not agent.link.connected)
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        waiting = await api.execution(execution_id)
        assert waiting.reason.startswith("BROKER_UNAVAILABLE: ")
        nats_server.start()
        await until(lambda: agent.link.connected, within_s=30)
        await agent.run_when_assigned(execution_id)
        await api.until_state(execution_id, "SUCCEEDED", within_s=30)


async def test_a_controller_starts_without_its_broker_and_says_what_is_missing(
    tmp_path: Path, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("droidfleet_controller.broker.admission.CONNECT_S", 0.5)
    data = tmp_path / "data"
    async with running_controller(data, nats=nats_server.url) as api, scripted_agent(nats_server.url, "phone-01"):
        pass
    nats_server.stop()
    async with running_controller(data, nats=nats_server.url) as api:
        status, body = await api.get("/readyz")
        assert (status, json.loads(body)["missing"]) == (503, {"broker": "not connected: nobody listens there"})
        assert await api.get("/healthz") == (200, "ok\n")
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        nats_server.start()
        async with scripted_agent(nats_server.url, "phone-01", hello=False) as agent:
            await agent.run_when_assigned(execution_id)
            await api.until_state(execution_id, "SUCCEEDED", within_s=60)
        assert await api.get("/readyz") == (200, '{"ready":true,"missing":{}}')


async def test_a_broker_that_lost_everything_gets_the_documents_again(tmp_path: Path, nats_server: NatsServer) -> None:
    async with (
        running_controller(tmp_path / "data", nats=nats_server.url) as api,
        scripted_agent(nats_server.url, "a") as first,
        scripted_agent(nats_server.url, "b") as second,
    ):
        begun = await api.run(document(), "a", "b")
        ids = [each.execution_id for each in begun.executions]
        await first.assigned(ids[0])
        await second.assigned(ids[1])
        nats_server.kill()
        shutil.rmtree(nats_server.store)
        await until(lambda: not first.link.connected and not second.link.connected)
        first.documents.clear()
        second.documents.clear()
        nats_server.start()
        await first.run_when_assigned(ids[0])
        await second.run_when_assigned(ids[1])
        for execution_id in ids:
            await api.until_state(execution_id, "SUCCEEDED", within_s=30)


async def test_a_broker_that_lost_its_newest_messages_gets_them_again(tmp_path: Path, nats_server: NatsServer) -> None:
    """What a power cut does to messages that were confirmed and not yet on disk."""
    async with (
        running_controller(tmp_path / "data", nats=nats_server.url) as api,
        scripted_agent(nats_server.url, "a") as first,
        scripted_agent(nats_server.url, "b") as second,
    ):
        earlier = (await api.run(document(), "a")).executions[0].execution_id
        await first.assigned(earlier)
        nats_server.stop()
        shutil.copytree(nats_server.store, tmp_path / "on disk")
        nats_server.start()
        await until(lambda: first.link.connected and second.link.connected, within_s=30)
        later = (await api.run(document(), "b")).executions[0].execution_id
        await second.run_when_assigned(later)
        await api.until_state(later, "SUCCEEDED", within_s=30)
        last = (await api.run(document(), "b")).executions[0].execution_id
        await second.assigned(last)
        nats_server.kill()
        shutil.rmtree(nats_server.store)
        shutil.copytree(tmp_path / "on disk", nats_server.store)
        await until(lambda: not second.link.connected)
        second.documents.clear()
        nats_server.start()
        await second.run_when_assigned(last)
        await first.run_when_assigned(earlier)
        for execution_id in (last, earlier):
            await api.until_state(execution_id, "SUCCEEDED", within_s=30)


async def test_events_that_come_twice_and_in_disorder_count_once(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.assigned(execution_id)
        ended = await agent.finish(execution_id, sequence=3)
        accepted = await agent.accept(execution_id, sequence=1)
        for event in (accepted, ended, ended, accepted):
            await agent.send(event)
        await api.until_state(execution_id, "SUCCEEDED")
        await agent.send(accepted)
        later = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.run(later)
        await api.until_state(later, "SUCCEEDED")
        kinds = [event.kind for event in await api.events(execution_id=execution_id)]
        assert sorted(kinds) == ["ExecutionAccepted", "ExecutionCreated", "ExecutionFinished"]


async def test_garbage_among_events_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    async with running_controller(tmp_path / "data") as api, scripted_agent(api.nats, "phone-01") as agent:
        for garbage in (b"", b"{", b'{"v": 2, "kind": "ExecutionAccepted"}', b"\x00" * 1_000):
            await agent.link.js_publish("fleet.event.phone-01.x-1", garbage, stream="EVENTS", timeout_s=5)
        execution_id = (await api.run(document(), "phone-01")).executions[0].execution_id
        await agent.run(execution_id)
        await api.until_state(execution_id, "SUCCEEDED")
        kinds = [event.kind for event in await api.events(device="phone-01")]
        assert kinds.count("BadMessage") == 4


async def test_a_killed_controllers_broker_is_ended_by_the_next_one(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running_controller(data) as api:
        pid_file = data / "nats" / "nats-server.pid"
        orphan = int(pid_file.read_text())
        store = data / "nats"
        kept = {"pid": pid_file.read_text(), "conf": (store / "nats-server.conf").read_text()}
        os.kill(orphan, 0)
        port = int(api.nats.rpartition(":")[2])
    # As after a kill -9: the broker still runs with our configuration, and its pid stands in the file.
    (store / "nats-server.conf").write_text(kept["conf"].replace("port: -1", f"port: {port}"))
    left = subprocess.Popen(  # noqa: ASYNC220  # waited for below
        [server_binary(), "-c", str(store / "nats-server.conf"), "-P", str(pid_file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await until(lambda: pid_file.exists() and pid_file.read_text().strip() == str(left.pid))
        async with running_controller(data, broker_listen=f"127.0.0.1:{port}") as api:
            assert left.wait(5) is not None
            assert api.nats.endswith(f":{port}")
    finally:
        left.kill()
        left.wait()
