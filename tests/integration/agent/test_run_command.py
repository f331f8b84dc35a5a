"""`droidfleet-agent run` as a user starts it, with a virtual phone behind the real adb server."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from droidfleet_shared.bus.messages import PhoneState, Wanted
from support.adb import ConnectedPhones
from support.agent_process import agent_process
from support.assignments import AGENT, WAIT_FOR_NOTHING, assignment, task_text
from support.nats import NatsServer
from support.stub_controller import StubController, stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration

BACK: dict[str, object] = {"id": "back", "action": "BACK"}


async def _run_on(controller: StubController, execution_id: str) -> str:
    await controller.assign(assignment(execution_id, task=task_text(BACK)))
    return await controller.ended(execution_id, within_s=30)


async def test_a_task_runs_on_a_virtual_phone(nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path) -> None:
    phone = await asyncio.to_thread(phones)
    async with (
        stub_controller(nats_server) as controller,
        agent_process(
            *("run", "--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "--output", "json"),
            folder=tmp_path,
        ) as agent,
    ):
        await agent.online(AGENT)
        assert await _run_on(controller, "a") == "OK"
        assert [effect.kind for effect in phone.effects.all() if effect.kind == "key"] == ["key"]
        await until(lambda: controller.beats[-1].model, what="facts about the phone")
        agent.signal(signal.SIGTERM)
        assert await agent.ended() == 0
        await until(lambda: controller.beats[-1].leaving, what="the last heartbeat")


async def test_a_phone_that_is_not_connected_yet_is_connected(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones, connect=False)
    async with (
        stub_controller(nats_server) as controller,
        agent_process(
            *("run", "--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "-o", "json"),
            folder=tmp_path,
        ) as agent,
    ):
        await agent.online(AGENT)
        assert await _run_on(controller, "a") == "OK"


async def test_options_come_from_the_environment_as_well(nats_server: NatsServer, tmp_path: Path) -> None:
    environment = {
        "DROIDFLEET_NATS": nats_server.url,
        "DROIDFLEET_NAME": AGENT,
        "DROIDFLEET_SERIAL": "nowhere",
        "DROIDFLEET_OUTPUT": "json",
        "DROIDFLEET_HEARTBEAT": "0.5",
    }
    async with (
        stub_controller(nats_server) as controller,
        agent_process("run", folder=tmp_path, environment=environment) as agent,
    ):
        await agent.online(AGENT)
        beat = await controller.heard(AGENT)
        assert (beat.phone, beat.serial) == (PhoneState.OFFLINE, "nowhere")


async def test_without_a_broker_the_agent_waits_and_ends_in_order(tmp_path: Path, kept_port: int) -> None:
    url = f"nats://127.0.0.1:{kept_port}"
    async with agent_process("run", "--serial", "nowhere", "--nats", url, folder=tmp_path) as agent:
        await until(lambda: "bus_disconnected" in agent.log, within_s=30)
        agent.signal(signal.SIGTERM)
        assert await agent.ended() == 0


async def test_what_sigterm_leaves_in_mid_task_is_gone_on_with_by_the_next_process(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    arguments = ("run", "--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "-o", "json")
    wait: dict[str, object] = {"id": "rest", "action": "DELAY", "minMs": 4_000}
    async with stub_controller(nats_server) as controller:
        async with agent_process(*arguments, folder=tmp_path) as agent:
            await controller.assign(assignment("a", task=task_text(BACK, wait, BACK | {"id": "again"})))
            await until(lambda: controller.kinds("a").count("StepStarted") == 2, within_s=30)
            agent.signal(signal.SIGTERM)
            assert await agent.ended() == 0
            await until(lambda: controller.beats[-1].leaving, what="the last heartbeat")
            running = controller.beats[-1].running
            assert running is not None
            assert running.execution_id == "a"
        async with agent_process(*arguments, folder=tmp_path):
            assert await controller.ended("a", within_s=30) == "OK"
    assert len([effect for effect in phone.effects.all() if effect.kind == "key"]) == 2
    assert "ExecutionResumed" in controller.kinds("a")


async def test_a_cancel_stops_a_wait_on_a_real_phone(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    waiting = task_text(WAIT_FOR_NOTHING)
    async with (
        stub_controller(nats_server) as controller,
        agent_process(
            *("run", "--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "-o", "json"),
            folder=tmp_path,
        ),
    ):
        await controller.assign(assignment("a", task=waiting))
        await until(lambda: "StepStarted" in controller.kinds("a"), within_s=30)
        await controller.assign(assignment("a", task=waiting, wanted=Wanted.CANCEL))
        assert await controller.ended("a", within_s=20) == "CANCELLED"


async def test_the_second_agent_of_a_name_on_one_host_is_refused_and_told_who_holds_it(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    arguments = ("run", "--name", AGENT, "--serial", "nowhere", "--nats", nats_server.url, "--output", "json")
    async with (
        stub_controller(nats_server),
        agent_process(*arguments, folder=tmp_path) as first,
    ):
        await first.online(AGENT)
        async with agent_process(*arguments, folder=tmp_path) as second:
            assert await second.ended() == 4
            assert "NAME_TAKEN" in second.log
            assert str(first.pid) in second.log
            assert "Traceback" not in second.log


async def test_a_second_agent_of_one_phone_is_refused_whatever_its_name(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    arguments = ("run", "--serial", "nowhere", "--nats", nats_server.url, "--output", "json")
    async with (
        stub_controller(nats_server),
        agent_process(*arguments, "--name", AGENT, folder=tmp_path) as first,
    ):
        await first.online(AGENT)
        async with agent_process(*arguments, "--name", "another", folder=tmp_path) as second:
            assert await second.ended() == 4
            assert "PHONE_TAKEN" in second.log
            assert str(first.pid) in second.log


async def test_an_agent_of_another_host_is_refused_by_the_controller(nats_server: NatsServer, tmp_path: Path) -> None:
    async with stub_controller(nats_server) as controller:
        controller.holder = "pid 7 on host-b"
        arguments = ("run", "--name", AGENT, "--serial", "nowhere", "--nats", nats_server.url)
        async with agent_process(*arguments, folder=tmp_path) as agent:
            assert await agent.ended() == 4
            assert "NAME_TAKEN" in agent.log
            assert "pid 7 on host-b" in agent.log


async def test_a_killed_agent_gives_its_name_back(nats_server: NatsServer, tmp_path: Path) -> None:
    arguments = ("run", "--name", AGENT, "--serial", "nowhere", "--nats", nats_server.url, "--output", "json")
    async with stub_controller(nats_server):
        async with agent_process(*arguments, folder=tmp_path) as first:
            await first.online(AGENT)
            first.signal(signal.SIGKILL)
            await first.ended()
        async with agent_process(*arguments, folder=tmp_path) as second:
            await second.online(AGENT)
