"""A real agent whose way to its phone breaks in mid-task: the task goes on, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.agent_process import agent_process
from support.assignments import AGENT, assignment, task_text
from support.nats import NatsServer
from support.stub_controller import stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration

BACK: dict[str, object] = {"id": "back", "action": "BACK", "timeoutMs": 30_000}
REST: dict[str, object] = {"id": "rest", "action": "DELAY", "minMs": 2_000}


def _kill_adb(adb: AdbServer, _phone: RunningPhone) -> None:
    adb.kill()


def _unplug(adb: AdbServer, phone: RunningPhone) -> None:
    """The agent connects phones with an address again, as if they were plugged in."""
    adb.disconnect(phone.address)


@pytest.fixture
def adb(adb_server: AdbServer) -> Iterator[AdbServer]:
    """The session's server, as it was afterwards: an agent may have started one of its own."""
    yield adb_server
    adb_server.stop()
    adb_server.start()


@pytest.mark.parametrize("broken", [_kill_adb, _unplug])
async def test_a_task_goes_on_over_a_way_to_its_phone_that_breaks(
    broken: Callable[[AdbServer, RunningPhone], None],
    adb: AdbServer,
    phones: ConnectedPhones,
    nats_server: NatsServer,
    tmp_path: Path,
) -> None:
    phone = await asyncio.to_thread(phones)
    options = ("--name", AGENT, "--serial", phone.address, "--nats", nats_server.url, "--output", "json")
    async with (
        stub_controller(nats_server) as controller,
        agent_process("run", *options, folder=tmp_path) as agent,
    ):
        await agent.online(AGENT)
        await controller.assign(assignment("a", task=task_text(BACK, REST, BACK | {"id": "again"})))
        await until(lambda: controller.kinds("a").count("StepStarted") == 2, within_s=30, what="the rest")
        await asyncio.to_thread(broken, adb, phone)
        assert await controller.ended("a", within_s=60) == "OK"
    assert len([effect for effect in phone.effects.all() if effect.kind == "key"]) == 2
