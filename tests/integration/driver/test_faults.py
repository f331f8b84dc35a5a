"""`AdbPhone` over a real adb server and a virtual phone while things go wrong. The phone's effect log is the judge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from droidfleet_agent.driver.adb import AdbServer, Forward
from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.driver.port import ActionRefusedError, OutcomeUnknownError, PhoneUnavailableError
from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import Deadline, SystemClock
from support import adb as adb_support
from support.adb import ConnectedPhones, RunningPhone
from support.form import FORM
from support.hanging import becomes_unknown_in_time
from support.waiting import until

pytestmark = pytest.mark.integration

RECOVERY_S = 25.0
"""The longest that a read may have to wait here: adb 29 calls an offline phone every ten seconds."""
SHORT_S = 2.0
"""Of a call that waits in vain for all of it: by then it has asked, also on a busy machine."""
POINT = (540, 1_000)


def within(seconds: float = RECOVERY_S) -> Deadline:
    return SystemClock().deadline(seconds)


def start(phones: ConnectedPhones, *faults: Fault, with_jar: bool = True) -> RunningPhone:
    return phones(PhoneOptions(scenario=FORM, faults=faults, with_jar=with_jar))


@pytest.fixture
def virtual(phones: ConnectedPhones) -> RunningPhone:
    return start(phones)


@pytest.fixture
async def phone(virtual: RunningPhone, adb_server: adb_support.AdbServer) -> AsyncIterator[AdbPhone]:
    """Connected: its server runs and it has answered."""
    opened = await open_phone(virtual.address, adb_port=adb_server.port, deadline=within())
    yield opened
    await opened.close()


@pytest.fixture
def adb(adb_server: adb_support.AdbServer) -> AdbServer:
    return AdbServer("127.0.0.1", adb_server.port)


def taps(virtual: RunningPhone) -> int:
    return len(virtual.effects.of("tap"))


# -- starting


async def test_server_is_pushed_and_started_on_a_phone_that_never_had_it(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    fresh = start(phones, with_jar=False)
    phone = await open_phone(fresh.address, adb_port=adb_server.port, deadline=within())
    assert await phone.tap(*POINT, deadline=within())
    await phone.close()


async def test_first_shell_that_is_refused_is_tried_again(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    shy = start(phones, Fault(on="shell_stream", do=FaultKind.REFUSE))
    phone = await open_phone(shy.address, adb_port=adb_server.port, deadline=within())
    assert await phone.dump(deadline=within())
    await phone.close()


async def test_server_whose_place_is_taken_is_tried_again_until_it_starts(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    taken = start(phones, Fault(on="server_start", do=FaultKind.ALREADY_REGISTERED, times=2))
    phone = await open_phone(taken.address, adb_port=adb_server.port, deadline=within())
    assert await phone.dump(deadline=within())
    await phone.close()


async def test_server_whose_place_stays_taken_is_named_with_what_to_do(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    taken = start(phones, Fault(on="server_start", do=FaultKind.ALREADY_REGISTERED, times=None))
    with pytest.raises(PhoneUnavailableError) as caught:
        await open_phone(taken.address, adb_port=adb_server.port, deadline=within(2))
    assert "AUTOMATION_TAKEN" in caught.value.details["tried"]


async def test_slow_start_goes_on_over_the_calls_that_wait_for_it(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    slow = start(phones, Fault(on="server_start", do=FaultKind.SLOW, seconds=2 * SHORT_S))
    phone = AdbPhone(slow.address, adb_port=adb_server.port)
    with pytest.raises(PhoneUnavailableError):
        await phone.dump(deadline=within(SHORT_S))
    assert await phone.dump(deadline=within())
    assert len(slow.faults.fired) == 1
    await phone.close()


# -- calls that go wrong


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "kind",
    [
        FaultKind.DROP,
        FaultKind.KILL_SERVER,
        FaultKind.HTTP_ERROR,
        FaultKind.NOT_CONNECTED,
        FaultKind.DEAD_OBJECT,
        FaultKind.CUT_ANSWER,
    ],
)
async def test_read_goes_on_after(virtual: RunningPhone, phone: AdbPhone, kind: FaultKind, times: int) -> None:
    virtual.faults.add(Fault(on="dumpWindowHierarchy", do=kind, times=times))
    assert "com.example.form" in await phone.dump(deadline=within())
    assert len(virtual.faults.fired) == times


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", [FaultKind.DROP, FaultKind.KILL_SERVER])
async def test_tap_whose_answer_is_lost_is_unknown_and_never_repeated(
    virtual: RunningPhone, phone: AdbPhone, kind: FaultKind, after: bool
) -> None:
    virtual.faults.add(Fault(on="click", do=kind, after=after))
    with pytest.raises(OutcomeUnknownError):
        await phone.tap(*POINT, deadline=within())
    await phone.dump(deadline=within())
    assert taps(virtual) == (1 if after else 0)


async def test_tap_lost_with_the_whole_phone_is_unknown_and_never_repeated(
    virtual: RunningPhone, phone: AdbPhone
) -> None:
    virtual.faults.add(Fault(on="click", do=FaultKind.OFFLINE, seconds=1, after=True))
    with pytest.raises(OutcomeUnknownError):
        await phone.tap(*POINT, deadline=within())
    await phone.dump(deadline=within())
    assert taps(virtual) == 1


@pytest.mark.parametrize("kind", [FaultKind.HTTP_ERROR, FaultKind.DEAD_OBJECT, FaultKind.CUT_ANSWER])
async def test_tap_with_a_bad_answer_is_unknown_and_never_repeated(
    virtual: RunningPhone, phone: AdbPhone, kind: FaultKind
) -> None:
    virtual.faults.add(Fault(on="click", do=kind))
    with pytest.raises(OutcomeUnknownError):
        await phone.tap(*POINT, deadline=within())
    await phone.dump(deadline=within())
    assert taps(virtual) <= 1


@pytest.mark.parametrize("kind", [FaultKind.NOT_CONNECTED, FaultKind.STALE, FaultKind.NOT_FOUND])
async def test_tap_that_did_not_happen_is_refused_and_can_be_done_after_a_look(
    virtual: RunningPhone, phone: AdbPhone, kind: FaultKind
) -> None:
    virtual.faults.add(Fault(on="click", do=kind))
    with pytest.raises(ActionRefusedError):
        await phone.tap(*POINT, deadline=within())
    await phone.dump(deadline=within())
    assert await phone.tap(*POINT, deadline=within())
    assert taps(virtual) == 1


async def test_hanging_call_ends_at_its_deadline_and_the_next_one_works(virtual: RunningPhone, phone: AdbPhone) -> None:
    virtual.faults.add(Fault(on="click", do=FaultKind.HANG))
    await becomes_unknown_in_time(lambda deadline: phone.tap(*POINT, deadline=deadline))
    assert await phone.tap(*POINT, deadline=within())
    assert taps(virtual) == 1


async def test_hanging_shell_ends_at_the_deadline(virtual: RunningPhone, phone: AdbPhone) -> None:
    virtual.faults.add(Fault(on="shell:dumpsys input_method", do=FaultKind.HANG))
    with pytest.raises(PhoneUnavailableError) as caught:
        await phone.keyboard_shown(deadline=within(SHORT_S))
    assert caught.value.code == "ADB_SILENT"
    assert await phone.keyboard_shown(deadline=within()) is False


async def test_shell_cut_in_the_middle_is_asked_again(virtual: RunningPhone, phone: AdbPhone) -> None:
    virtual.faults.add(Fault(on="shell:dumpsys window", do=FaultKind.DROP))
    assert (await phone.focus(deadline=within())).activity == "com.example.form.FormActivity"


# -- between calls


async def test_tap_after_the_server_was_killed_is_not_sent_and_the_next_look_brings_it_back(
    virtual: RunningPhone, phone: AdbPhone
) -> None:
    virtual.do(lambda handle: handle.kill_server())
    with pytest.raises((PhoneUnavailableError, OutcomeUnknownError)):
        await phone.tap(*POINT, deadline=within())
    assert taps(virtual) == 0
    await phone.dump(deadline=within())
    assert await phone.tap(*POINT, deadline=within())
    assert taps(virtual) == 1


async def test_connection_that_the_phone_closed_for_idleness_costs_a_tap_nothing(
    virtual: RunningPhone, phone: AdbPhone
) -> None:
    held = phone._link._connection
    assert held is not None
    await until(lambda: not held.usable, what="the phone closes idle connections after five seconds")
    assert await phone.tap(*POINT, deadline=within())
    assert taps(virtual) == 1


async def test_read_waits_for_a_phone_that_is_offline_for_a_while(virtual: RunningPhone, phone: AdbPhone) -> None:
    virtual.do(lambda handle: handle.go_offline(3))
    assert "com.example.form" in await phone.dump(deadline=within())
    assert await phone.tap(*POINT, deadline=within())


async def test_read_goes_on_after_the_adb_server_was_killed(
    virtual: RunningPhone, phone: AdbPhone, adb_server: adb_support.AdbServer
) -> None:
    adb_server.kill()
    try:
        assert "com.example.form" in await phone.dump(deadline=within())
        assert await phone.tap(*POINT, deadline=within())
        assert taps(virtual) == 1
    finally:
        adb_server.stop()
        adb_server.start()


# -- never another phone


async def test_port_stolen_by_another_phone_is_never_used(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer, adb: AdbServer
) -> None:
    mine, other = start(phones), start(phones)
    phone = await open_phone(mine.address, adb_port=adb_server.port, deadline=within())
    thief = await open_phone(other.address, adb_port=adb_server.port, deadline=within())
    try:
        port = _forwarded_port(await adb.forwards(deadline=within()), mine.address)
        # As when the adb server is killed and another agent is the first to come back.
        adb_server.kill()
        adb_server.start()
        adb_server.connect(other.address)
        adb_server.connect(mine.address)
        adb_server.run("-s", other.address, "forward", f"tcp:{port}", "tcp:9008")
        assert _forwarded_port(await adb.forwards(deadline=within()), other.address) == port
        with pytest.raises(PhoneUnavailableError):
            await phone.tap(*POINT, deadline=within())
        await phone.dump(deadline=within())
        assert await phone.tap(*POINT, deadline=within())
        assert (taps(mine), taps(other)) == (1, 0)
        await phone.close()
        assert _forwarded_port(await adb.forwards(deadline=within()), other.address) == port
    finally:
        await phone.close()
        await thief.close()


async def test_two_phones_beside_each_other_get_their_own_taps(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    virtuals = [start(phones), start(phones)]
    opened = [await open_phone(each.address, adb_port=adb_server.port, deadline=within()) for each in virtuals]

    async def work(phone: AdbPhone, times: int) -> None:
        for _ in range(times):
            assert await phone.tap(*POINT, deadline=within())

    async with asyncio.TaskGroup() as group:
        group.create_task(work(opened[0], 7))
        group.create_task(work(opened[1], 11))
    for phone in opened:
        await phone.close()
    assert [taps(each) for each in virtuals] == [7, 11]


async def test_adb_server_of_the_environment_is_used(
    virtual: RunningPhone, adb_server: adb_support.AdbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(adb_server.port))
    phone = await open_phone(virtual.address, deadline=within())
    assert await phone.dump(deadline=within())
    await phone.close()


async def test_closed_phone_leaves_no_forwarded_port_and_no_server(
    virtual: RunningPhone, phone: AdbPhone, adb: AdbServer
) -> None:
    await phone.close()
    assert [forward for forward in await adb.forwards(deadline=within()) if forward.serial == virtual.address] == []
    await until(lambda: not virtual.do(lambda handle: handle.server_running))


async def test_unauthorized_phone_is_named_with_what_to_do(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer
) -> None:
    locked = phones(PhoneOptions(scenario=FORM, authorized=False), connect=False)
    adb_server.run("connect", locked.address, check=False)
    phone = AdbPhone(locked.address, adb_port=adb_server.port)
    with pytest.raises(PhoneUnavailableError) as caught:
        await phone.dump(deadline=within(SHORT_S))
    assert caught.value.code == "DEVICE_UNAUTHORIZED"
    locked.do(lambda handle: handle.authorize())
    assert await phone.dump(deadline=within())
    await phone.close()


# -- following plug and unplug


async def test_tracking_follows_plug_and_unplug_over_a_restart_of_the_adb_server(
    phones: ConnectedPhones, adb_server: adb_support.AdbServer, adb: AdbServer
) -> None:
    virtual = start(phones)
    seen: list[str] = []

    async def follow() -> None:
        async for devices in adb.track():
            word = devices.get(virtual.address, "absent")
            seen.append(word)

    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(follow())
            await until(lambda: seen[-1:] == ["device"])
            adb_server.disconnect(virtual.address)
            await until(lambda: seen[-1:] == ["absent"])
            adb_server.connect(virtual.address)
            await until(lambda: seen[-1:] == ["device"])
            adb_server.kill()
            adb_server.start()
            seen.clear()
            await until(lambda: seen == ["absent"])
            adb_server.connect(virtual.address)
            await until(lambda: seen[-1:] == ["device"])
            task.cancel()
    finally:
        adb_server.stop()  # The tracking may have been the first to start one anew.
        adb_server.start()


async def test_tracking_starts_an_adb_server_where_none_runs(tmp_path: Path, kept_port: int) -> None:
    adb = AdbServer("127.0.0.1", kept_port)
    try:
        async with asyncio.timeout(RECOVERY_S):
            async for devices in adb.track():
                assert devices == {}
                break
    finally:
        adb_support.AdbServer(port=kept_port, home=tmp_path).stop()


def _forwarded_port(forwards: Sequence[Forward], serial: str) -> int:
    return next(int(forward.local.removeprefix("tcp:")) for forward in forwards if forward.serial == serial)
