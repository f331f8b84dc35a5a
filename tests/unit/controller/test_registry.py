"""Devices in memory and in the database: names, presence, and heartbeats that cannot be read."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.store import devices
from droidfleet_controller.store.events import FleetEvent
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import Heartbeat, HeartbeatReply, PhoneState
from droidfleet_shared.bus.port import BusMessage
from support.waiting import until
from unit.controller.builders import beat
from unit.controller.dispatching import HEARTBEAT_S, Dispatch, dispatching


async def ask(dispatch: Dispatch, heartbeat: Heartbeat) -> HeartbeatReply:
    """Sends a heartbeat with a reply subject, as an agent's hello has one, and lets the registry decide once."""
    answers: list[HeartbeatReply] = []

    async def take(message: BusMessage) -> None:
        answers.append(HeartbeatReply.decode(message.data))

    dispatch.bus.subscribe("inbox", take)
    await dispatch.registry.receive(BusMessage(subjects.heartbeat(heartbeat.agent), heartbeat.encode(), reply="inbox"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(dispatch.registry._decide_names())
        await until(lambda: answers)
        task.cancel()
    return answers[-1]


async def test_a_new_device_is_stored_before_it_is_answered(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "other") as dispatch:
        assert (await ask(dispatch, beat(hello=True))).granted
        stored = await dispatch.database.run(devices.load)
        assert [device.name for device in stored] == ["other", "phone-01"]
        assert [event.kind for event in await dispatch.log()] == ["NameGranted"]


async def test_a_second_agent_of_one_name_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        answer = await ask(dispatch, beat(instance="i-2", host_id="h-2", hello=True))
        assert not answer.granted
        assert answer.holder.startswith("pid 4711 on lab-1 since ")
        [event] = await dispatch.log()
        assert event.kind == "NameRefused"
        assert dispatch.registry.get("phone-01").holder.instance == "i-1"


async def test_a_plain_heartbeat_of_another_is_answered_and_changes_nothing(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        answer = await ask(dispatch, beat(instance="i-2", phone=PhoneState.OFFLINE))
        assert not answer.granted
        assert dispatch.registry.state(dispatch.registry.get("phone-01")) is DeviceState.ONLINE


async def test_two_that_ask_at_once_do_not_both_get_the_name(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "other") as dispatch:
        answers: dict[str, bool] = {}

        async def take(message: BusMessage) -> None:
            answers[message.subject] = HeartbeatReply.decode(message.data).granted

        for number in (1, 2):
            dispatch.bus.subscribe(f"inbox-{number}", take)
            asking = beat(instance=f"i-{number}", host_id=f"h-{number}", hello=True)
            await dispatch.registry.receive(
                BusMessage(subjects.heartbeat("phone-01"), asking.encode(), reply=f"inbox-{number}")
            )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(dispatch.registry._decide_names())
            await until(lambda: len(answers) == 2)
            task.cancel()
        assert answers == {"inbox-1": True, "inbox-2": False}


async def test_a_wrong_clock_becomes_an_event_and_so_does_its_end(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        async with asyncio.TaskGroup() as group:
            sweep = group.create_task(dispatch.registry._sweep())
            for ahead_s in (*[86_400] * 3, *[0] * 5):
                sent_at = dispatch.clock.now() + timedelta(seconds=ahead_s)
                message = beat().model_copy(update={"sent_at": sent_at}).encode()
                await dispatch.registry.receive(BusMessage(subjects.heartbeat("phone-01"), message))
            lines: list[FleetEvent] = []
            async with asyncio.timeout(10):
                while len(lines) < 2:
                    lines = await dispatch.log()
            sweep.cancel()
        [wrong, right] = lines
        assert (wrong.kind, right.kind) == ("ClockWrong", "ClockRight")
        assert wrong.summary == "phone-01: the clock of lab-1 is 86400.0 s ahead of the controller's"


async def test_a_holder_that_asks_again_is_granted_again_without_an_event(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        assert (await ask(dispatch, beat(hello=True))).granted
        assert await dispatch.log() == []


async def test_silence_and_return_are_events(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        dispatch.clock.advance(3 * HEARTBEAT_S)
        await dispatch.registry.write(dispatch.registry._changes())
        await dispatch.heard(beat(phone=PhoneState.OFFLINE))
        await dispatch.registry.write(dispatch.registry._changes())
        await dispatch.heard(beat())
        await dispatch.registry.write(dispatch.registry._changes())
        await dispatch.registry.write(dispatch.registry._changes())
        assert [event.kind for event in await dispatch.log()] == ["DeviceOffline", "PhoneOffline", "DeviceOnline"]


async def test_working_and_resting_are_no_events(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.heard(
            Heartbeat.model_validate({**beat().model_dump(), "running": {"execution_id": "x", "attempt": 1}})
        )
        assert dispatch.registry.counts() == {DeviceState.BUSY: 1}
        assert dispatch.registry._changes() == []


async def test_a_heartbeat_that_cannot_be_read_is_ignored(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        before = dispatch.registry.get("phone-01")
        for data in (b"", b"{", b'{"v": 2}', beat(agent="phone-02").encode()):
            await dispatch.registry.receive(BusMessage(subjects.heartbeat("phone-01"), data))
        await dispatch.registry.receive(BusMessage("fleet.heartbeat.=zz", beat().encode()))
        assert dispatch.registry.get("phone-01") == before


async def test_devices_are_listed_by_name_state_and_page(tmp_path: Path) -> None:
    async with dispatching(tmp_path, "c", "a", "b") as dispatch:
        dispatch.clock.advance(3 * HEARTBEAT_S)
        await dispatch.heard(beat(agent="b"))
        names = [device.name for device in dispatch.registry.page(after="", limit=2, states=frozenset())]
        assert names == ["a", "b"]
        names = [device.name for device in dispatch.registry.page(after="b", limit=2, states=frozenset())]
        assert names == ["c"]
        offline = dispatch.registry.page(after="", limit=9, states=frozenset({DeviceState.OFFLINE}))
        assert [device.name for device in offline] == ["a", "c"]


async def test_what_is_known_survives_a_restart(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        dispatch.clock.advance(5)
        await dispatch.heard(beat(phone=PhoneState.UNAUTHORIZED))
        await dispatch.registry.write()
        [stored] = await dispatch.database.run(devices.load)
        assert stored == dispatch.registry.get("phone-01")


async def test_an_agent_that_leaves_is_offline_at_once_and_online_when_it_is_back(tmp_path: Path) -> None:
    async with dispatching(tmp_path) as dispatch:
        await dispatch.heard(beat().model_copy(update={"leaving": True}))
        assert dispatch.registry.state(dispatch.registry.get("phone-01")) is DeviceState.OFFLINE
        # What was assigned is still its own: only silence past every deadline loses it.
        assert not dispatch.registry.silent("phone-01")
        assert (await ask(dispatch, beat(instance="i-2", hello=True))).granted
        assert dispatch.registry.state(dispatch.registry.get("phone-01")) is DeviceState.ONLINE
