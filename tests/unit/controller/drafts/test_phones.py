"""The designer sees the fleet as it is, and its phones by their agents."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from droidfleet_controller.drafts import phones as phones_module
from droidfleet_controller.drafts.phones import FleetPhones
from droidfleet_controller.fleet.live import Live
from droidfleet_designer.ports import DeviceFact, GroupFact, Shot
from droidfleet_shared.bus import subjects
from droidfleet_shared.bus.messages import ExecutionRef
from droidfleet_shared.bus.port import BusMessage
from droidfleet_shared.bus.session import (
    CloseSession,
    Fault,
    Leased,
    Looked,
    Method,
    OpenSession,
    RenewSession,
    Reply,
    RunStep,
    SeenPicture,
    StepRan,
)
from droidfleet_shared.errors import NotFoundError, PreconditionError, UnavailableError
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.screen.snapshot import Snapshot
from support.memory_bus import MemoryBus
from unit.controller.builders import NOW, beat
from unit.fleet.fleets import Fleet, fleet_of

SNAPSHOT = Snapshot(package="com.example.shop", activity="", display=(0, 0, 1080, 2400), rotation=0)
RESULT = TaskResult(
    task_id="live",
    revision=1,
    agent_name="phone-01",
    execution_id="x",
    started_at=NOW,
    duration_ms=5,
    successful=True,
    code=StepCode.OK,
    message="",
)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with fleet_of(tmp_path, "phone-01", "phone-02") as fleet:
        yield fleet


@pytest.fixture
def bus() -> MemoryBus:
    return MemoryBus()


@pytest.fixture
def phones(fleet: Fleet, bus: MemoryBus) -> FleetPhones:
    return FleetPhones(
        live=Live(registry=fleet.registry, bus=bus),
        registry=fleet.registry,
        labels=fleet.labels,
        groups=fleet.groups,
        targets=fleet.targets,
    )


def answering(bus: MemoryBus, method: Method, answer: Reply) -> list[bytes]:
    """An agent that gives this answer; what it was asked."""
    asked: list[bytes] = []

    async def take(message: BusMessage) -> None:
        asked.append(message.data)
        await bus.publish(message.reply, answer.encode())

    bus.subscribe(subjects.rpc("phone-01", method), take)
    return asked


# What there is ----------------------------------------------------------------------------------------------------


async def test_a_device_is_told_with_what_its_agent_says(fleet: Fleet, phones: FleetPhones) -> None:
    await fleet.label("phone-01", site="berlin")
    assert (await phones.devices())[0] == DeviceFact(
        name="phone-01",
        state="ONLINE",
        model="Pixel 8",
        android="14",
        foreground="com.example.shop",
        labels={"site": "berlin"},
    )


async def test_a_busy_device_says_with_what(fleet: Fleet, phones: FleetPhones) -> None:
    await fleet.heard(beat(agent="phone-02", running=ExecutionRef(execution_id="x-7", attempt=1)))
    busy = (await phones.devices())[1]
    assert (busy.state, busy.busy_with) == ("BUSY", "it runs execution x-7")


async def test_a_large_fleet_is_told_in_part(phones: FleetPhones, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phones_module, "MAX_LISTED", 1)
    assert [device.name for device in await phones.devices()] == ["phone-01"]


async def test_groups_are_told_with_how_many_belong_to_them(fleet: Fleet, phones: FleetPhones) -> None:
    await fleet.label("phone-02", site="berlin")
    await fleet.groups.create("a-static", devices=["phone-01", "phone-02"], actor="test")
    await fleet.groups.create("b-dynamic", query="site=berlin", actor="test")
    await fleet.groups.create("c-empty", query="site=paris", actor="test")
    assert list(await phones.groups()) == [
        GroupFact("a-static", 2),
        GroupFact("b-dynamic", 1, "site=berlin"),
        GroupFact("c-empty", 0, "site=paris"),
    ]


# A phone ----------------------------------------------------------------------------------------------------------


async def test_a_phone_is_leased(phones: FleetPhones, bus: MemoryBus) -> None:
    asked = answering(bus, Method.OPEN, Leased(lease_id="l-1", expires_in_s=60))
    assert await phones.open("phone-01", holder="the designer", ttl_s=60) == "l-1"
    assert OpenSession.decode(asked[0]).holder == "the designer"


async def test_a_lease_is_kept(phones: FleetPhones, bus: MemoryBus) -> None:
    asked = answering(bus, Method.RENEW, Leased(lease_id="l-1", expires_in_s=60))
    await phones.renew("phone-01", "l-1")
    assert RenewSession.decode(asked[0]).lease_id == "l-1"


async def test_a_lease_is_given_back(phones: FleetPhones, bus: MemoryBus) -> None:
    asked = answering(bus, Method.CLOSE, Leased())
    await phones.close("phone-01", "l-1")
    assert CloseSession.decode(asked[0]).lease_id == "l-1"


async def test_a_phone_is_looked_at(phones: FleetPhones, bus: MemoryBus) -> None:
    answering(bus, Method.LOOK, Looked(snapshot=SNAPSHOT))
    assert await phones.look("phone-01") == SNAPSHOT


async def test_a_picture_is_taken(phones: FleetPhones, bus: MemoryBus) -> None:
    data = b64encode(b"a picture").decode()
    answering(bus, Method.SCREENSHOT, SeenPicture(media_type="image/png", data=data, width=108, height=240))
    assert await phones.shot("phone-01") == Shot("image/png", b"a picture", 108, 240)


async def test_a_picture_that_is_none_is_an_error(phones: FleetPhones, bus: MemoryBus) -> None:
    answering(bus, Method.SCREENSHOT, SeenPicture(media_type="image/png", data="no base64!"))
    with pytest.raises(UnavailableError, match="BAD_ANSWER"):
        await phones.shot("phone-01")


async def test_a_step_is_run(phones: FleetPhones, bus: MemoryBus) -> None:
    asked = answering(bus, Method.STEP, StepRan(result=RESULT))
    step = {"id": "back", "action": "BACK"}
    assert await phones.step("phone-01", "l-1", step=step, request_id="r-1") == RESULT
    request = RunStep.decode(asked[0])
    assert (request.lease_id, request.request_id, json.loads(request.step)) == ("l-1", "r-1", step)


async def test_a_refusal_of_the_agent_is_passed_on(phones: FleetPhones, bus: MemoryBus) -> None:
    fault = Fault(kind="precondition", code="DEVICE_BUSY", message="in use by Ada")
    answering(bus, Method.OPEN, Leased(fault=fault))
    with pytest.raises(PreconditionError, match="DEVICE_BUSY: in use by Ada"):
        await phones.open("phone-01", holder="the designer", ttl_s=60)


async def test_a_phone_that_nobody_knows_is_not_found(phones: FleetPhones) -> None:
    with pytest.raises(NotFoundError, match="DEVICE_NOT_FOUND"):
        await phones.look("phone-09")
