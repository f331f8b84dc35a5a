"""Who gets a name, and what state a device is in."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from droidfleet_controller.fleet.device import DeviceState
from droidfleet_controller.fleet.names import Grant, decide
from droidfleet_shared.bus.messages import ExecutionRef, Heartbeat, PhoneState
from unit.controller.builders import NOW, beat, device

HEARTBEAT = timedelta(seconds=10)
LONG_AGO = NOW - timedelta(days=1)


def asked(heartbeat: Heartbeat, *, last_seen_at: datetime = NOW, hearing_since: datetime = LONG_AGO) -> Grant:
    return decide(
        heartbeat, device(last_seen_at=last_seen_at), now=NOW, hearing_since=hearing_since, heartbeat=HEARTBEAT
    )


def test_the_first_to_ask_gets_the_name() -> None:
    grant = decide(beat(hello=True), None, now=NOW, hearing_since=NOW, heartbeat=HEARTBEAT)
    assert (grant.granted, grant.new, grant.holder.instance) == (True, True, "i-1")


def test_the_holder_keeps_the_name() -> None:
    assert asked(beat()) == Grant(True, device().holder)
    assert asked(beat(hello=True)) == Grant(True, device().holder)


def test_a_second_agent_elsewhere_is_refused_and_told_who_holds_the_name() -> None:
    grant = asked(beat(instance="i-2", host_id="h-2", hello=True))
    assert not grant.granted
    assert str(grant.holder) == "pid 4711 on lab-1 since 2026-03-01 12:00:00 UTC"


def test_a_new_process_on_the_same_host_takes_over_at_once() -> None:
    grant = asked(beat(instance="i-2", hello=True))
    assert (grant.granted, grant.new, grant.holder.instance) == (True, True, "i-2")


@pytest.mark.parametrize(("silence_s", "granted"), [(29, False), (30, True)])
def test_the_name_of_a_silent_holder_is_free_after_three_heartbeats(silence_s: int, *, granted: bool) -> None:
    grant = asked(beat(instance="i-2", host_id="h-2", hello=True), last_seen_at=NOW - timedelta(seconds=silence_s))
    assert grant.granted is granted


def test_silence_counts_only_while_something_could_be_heard() -> None:
    grant = asked(
        beat(instance="i-2", host_id="h-2", hello=True),
        last_seen_at=LONG_AGO,
        hearing_since=NOW - timedelta(seconds=5),
    )
    assert not grant.granted


def test_a_plain_heartbeat_never_takes_a_name_over() -> None:
    assert not asked(beat(instance="i-2")).granted
    assert not asked(beat(instance="i-2", host_id="h-2"), last_seen_at=LONG_AGO).granted


@pytest.mark.parametrize(
    ("heartbeat", "age_s", "state"),
    [
        (beat(), 0, DeviceState.ONLINE),
        (beat(), 29.9, DeviceState.ONLINE),
        (beat(), 30, DeviceState.OFFLINE),
        (beat(running=ExecutionRef(execution_id="x", attempt=1)), 0, DeviceState.BUSY),
        (beat(phone=PhoneState.OFFLINE), 0, DeviceState.PHONE_OFFLINE),
        (beat(phone=PhoneState.UNAUTHORIZED), 0, DeviceState.PHONE_OFFLINE),
        (
            beat(phone=PhoneState.OFFLINE, running=ExecutionRef(execution_id="x", attempt=1)),
            0,
            DeviceState.PHONE_OFFLINE,
        ),
        (beat(running=ExecutionRef(execution_id="x", attempt=1)), 31, DeviceState.OFFLINE),
    ],
)
def test_a_devices_state_follows_from_its_last_heartbeat(
    heartbeat: Heartbeat, age_s: float, state: DeviceState
) -> None:
    seen = device(heartbeat, last_seen_at=NOW - timedelta(seconds=age_s))
    assert seen.state(NOW, heartbeat=HEARTBEAT) is state
