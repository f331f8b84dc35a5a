"""`droidfleet-agent supervise` with virtual phones behind the real adb server: plug, unplug, crashes, ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from droidfleet_shared.bus.messages import ExecutionFinished, PhoneState, StepStarted
from support.adb import AdbServer, ConnectedPhones
from support.agent_process import AgentProcess, agent_process, alive
from support.assignments import WAIT_FOR_NOTHING, assignment, task_text
from support.nats import NatsServer
from support.stub_controller import StubController, stub_controller
from support.waiting import until

pytestmark = pytest.mark.integration

BACK: dict[str, object] = {"id": "back", "action": "BACK"}


@asynccontextmanager
async def supervising(server: NatsServer, folder: Path, *options: str) -> AsyncIterator[AgentProcess]:
    async with agent_process(
        *("supervise", "--nats", server.url, "--output", "json", "--heartbeat", "0.5", *options), folder=folder
    ) as supervisor:
        yield supervisor


@pytest.fixture(autouse=True)
def _only_our_phones(adb_server: AdbServer) -> Iterator[None]:
    """No phone that another test left behind."""
    adb_server.run("disconnect", check=False)
    yield
    adb_server.run("disconnect", check=False)


async def _run_on(controller: StubController, agent: str, execution_id: str) -> str:
    await controller.assign(assignment(execution_id, task=task_text(BACK, agent=agent)), agent=agent)
    return await controller.ended(execution_id, within_s=30)


async def _at_rest(controller: StubController) -> None:
    """Facts about the phone are read: no call is under way, in which the driver would connect the phone again."""
    await until(lambda: controller.beats and controller.beats[-1].model, within_s=20)


async def test_each_attached_phone_has_an_agent_in_a_process_of_its_own(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    first, second = await asyncio.to_thread(lambda: (phones(), phones()))
    async with (
        stub_controller(nats_server) as controller,
        supervising(nats_server, tmp_path, "--name", f"{first.address}=phone-01") as supervisor,
    ):
        one = await supervisor.online("phone-01")
        # Without a name given the phone's serial is the name.
        two = await supervisor.online(second.address)
        assert one != two
        assert await _run_on(controller, "phone-01", "a") == "OK"
        assert await _run_on(controller, second.address, "b") == "OK"
        assert [len(phone.effects.of("key")) for phone in (first, second)] == [1, 1]
        supervisor.signal(signal.SIGTERM)
        assert await supervisor.ended() == 0
        assert not alive(one)
        assert not alive(two)


async def test_phones_can_share_a_process(nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path) -> None:
    attached = await asyncio.to_thread(lambda: [phones() for _ in range(3)])
    async with (
        stub_controller(nats_server) as controller,
        supervising(nats_server, tmp_path, "--phones-per-process", "2") as supervisor,
    ):
        pids = [await supervisor.online(phone.address) for phone in attached]
        assert len(set(pids)) == 2
        for number, phone in enumerate(attached):
            assert await _run_on(controller, phone.address, f"x{number}") == "OK"


async def test_a_killed_process_is_started_again_and_the_others_do_not_notice(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    first, second = await asyncio.to_thread(lambda: (phones(), phones()))
    async with stub_controller(nats_server) as controller, supervising(nats_server, tmp_path) as supervisor:
        killed, other = await supervisor.online(first.address), await supervisor.online(second.address)
        os.kill(killed, signal.SIGKILL)
        again = await supervisor.online(first.address, times=2)
        assert again != killed
        assert [news["code"] for news in supervisor.of("agent_ended", first.address)] == ["PROCESS_ENDED"]
        assert supervisor.of("agent_ended", second.address) == []
        assert alive(other)
        assert await _run_on(controller, first.address, "a") == "OK"


async def test_a_task_whose_agent_is_killed_is_gone_on_with_by_the_next_one_and_nothing_is_done_again(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with stub_controller(nats_server) as controller, supervising(nats_server, tmp_path) as supervisor:
        pid = await supervisor.online(phone.address)
        await controller.assign(
            assignment("a", task=task_text(BACK, WAIT_FOR_NOTHING | {"timeoutMs": 5_000}, agent=phone.address)),
            agent=phone.address,
        )
        await until(lambda: any(isinstance(e, StepStarted) and e.step_id == "wait" for e in controller.of("a")))
        os.kill(pid, signal.SIGKILL)
        assert await controller.ended("a", within_s=30) == "TARGET_NOT_FOUND"
        [last] = [event for event in controller.of("a") if isinstance(event, ExecutionFinished)]
        assert ([step.id for step in last.result.steps], last.result.agent_restarts) == (["back", "wait"], 1)
        assert "ExecutionResumed" in controller.kinds("a")
        assert await _run_on(controller, phone.address, "b") == "OK"
        assert len(phone.effects.of("key")) == 2


async def test_an_unplugged_phone_is_shown_as_offline_and_its_agent_goes_after_the_grace_period(
    nats_server: NatsServer, phones: ConnectedPhones, adb_server: AdbServer, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with (
        stub_controller(nats_server) as controller,
        supervising(nats_server, tmp_path, "--grace", "2") as supervisor,
    ):
        await supervisor.online(phone.address)
        await _at_rest(controller)
        await asyncio.to_thread(adb_server.disconnect, phone.address)
        await until(lambda: controller.beats[-1].phone is PhoneState.OFFLINE)
        await until(lambda: supervisor.of("agent_ended", phone.address), within_s=20)
        assert supervisor.of("agent_ended", phone.address)[0]["code"] == ""
        await asyncio.to_thread(adb_server.connect, phone.address)
        await supervisor.online(phone.address, times=2)
        assert await _run_on(controller, phone.address, "a") == "OK"


async def test_a_phone_that_is_back_in_time_keeps_its_agent(
    nats_server: NatsServer, phones: ConnectedPhones, adb_server: AdbServer, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with (
        stub_controller(nats_server) as controller,
        supervising(nats_server, tmp_path, "--grace", "60") as supervisor,
    ):
        pid = await supervisor.online(phone.address)
        await _at_rest(controller)
        await asyncio.to_thread(adb_server.disconnect, phone.address)
        await until(lambda: controller.beats[-1].phone is PhoneState.OFFLINE)
        await asyncio.to_thread(adb_server.connect, phone.address)
        await until(lambda: controller.beats[-1].phone is PhoneState.ONLINE)
        assert await _run_on(controller, phone.address, "a") == "OK"
        assert alive(pid)
        assert len(supervisor.of("agent_online", phone.address)) == 1


async def test_no_process_outlives_a_killed_supervisor(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with stub_controller(nats_server), supervising(nats_server, tmp_path) as supervisor:
        child = await supervisor.online(phone.address)
        supervisor.signal(signal.SIGKILL)
        await supervisor.ended()
        await until(lambda: not alive(child), within_s=20)


async def test_a_named_phone_is_connected_when_it_appears(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones, connect=False)
    async with (
        stub_controller(nats_server) as controller,
        supervising(nats_server, tmp_path, "--name", f"{phone.address}=phone-01") as supervisor,
    ):
        await supervisor.online("phone-01")
        assert await _run_on(controller, "phone-01", "a") == "OK"


async def test_ctrl_c_ends_everything_in_order(
    nats_server: NatsServer, phones: ConnectedPhones, tmp_path: Path
) -> None:
    phone = await asyncio.to_thread(phones)
    async with stub_controller(nats_server), supervising(nats_server, tmp_path) as supervisor:
        child = await supervisor.online(phone.address)
        # A terminal sends it to the whole group.
        os.kill(child, signal.SIGINT)
        supervisor.signal(signal.SIGINT)
        assert await supervisor.ended() == 130
        assert not alive(child)
        assert [news["code"] for news in supervisor.of("agent_ended", phone.address)] == [""]
