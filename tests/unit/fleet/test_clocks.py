"""How far an agent's clock is off, from what its heartbeats say of it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.fleet.clocks import ALARM_S, CLEAR_S, SAMPLES, ClockAlarm, Clocks
from droidfleet_shared.bus.messages import Heartbeat
from unit.controller.builders import NOW, beat

AGENT = "phone-01"
DAY_S = 86_400.0


def said(offset_s: float, *, late_s: float = 0.0, host_id: str = "h-1", round_trip_s: float | None = None) -> Heartbeat:
    """A heartbeat that comes now, ``late_s`` after it was sent by a clock that is so far ahead."""
    sent_at = NOW + timedelta(seconds=offset_s - late_s)
    return beat(host_id=host_id).model_copy(update={"sent_at": sent_at, "round_trip_s": round_trip_s})


def hear(clocks: Clocks, *beats: Heartbeat) -> list[ClockAlarm]:
    """The alarms that begin or end."""
    heard = [clocks.hear(each, received_at=NOW) for each in beats]
    return [alarm for alarm in heard if alarm is not None]


def test_nothing_is_known_of_who_was_not_heard() -> None:
    assert Clocks().offset_s(AGENT) is None


def test_half_of_the_way_there_and_back_is_no_offset() -> None:
    clocks = Clocks()
    hear(clocks, said(0.0, late_s=0.2, round_trip_s=0.4))
    assert clocks.offset_s(AGENT) == pytest.approx(0.0)


@given(st.floats(-DAY_S, DAY_S), st.lists(st.floats(0.0, 60.0), min_size=SAMPLES, max_size=SAMPLES))
def test_a_late_heartbeat_says_nothing_while_another_comes_in_time(offset_s: float, late_s: list[float]) -> None:
    clocks = Clocks()
    hear(clocks, *(said(offset_s, late_s=each) for each in late_s))
    assert clocks.offset_s(AGENT) == pytest.approx(offset_s - min(late_s), abs=1e-3)


@pytest.mark.parametrize("offset_s", [DAY_S, -DAY_S, ALARM_S + 0.1, -ALARM_S - 0.1])
def test_a_wrong_clock_is_alarmed_once(offset_s: float) -> None:
    clocks = Clocks()
    [alarm] = hear(clocks, *[said(offset_s)] * 20)
    assert (alarm.agent, alarm.wrong) == (AGENT, True)
    assert alarm.offset_s == pytest.approx(offset_s)
    assert clocks.wrong == 1


@pytest.mark.parametrize("offset_s", [0.0, ALARM_S - 0.1, 0.1 - ALARM_S])
def test_a_clock_within_the_limit_is_not_alarmed(offset_s: float) -> None:
    clocks = Clocks()
    assert hear(clocks, *[said(offset_s)] * 20) == []
    assert clocks.wrong == 0


def test_the_first_heartbeats_alarm_nobody() -> None:
    assert hear(Clocks(), *[said(-5.0)] * 2) == []


def test_an_alarm_ends_only_well_below_the_limit() -> None:
    clocks = Clocks()
    hear(clocks, *[said(DAY_S)] * 3)
    assert hear(clocks, *[said(ALARM_S - 0.1)] * SAMPLES, *[said(ALARM_S + 0.1)] * SAMPLES) == []
    [end] = hear(clocks, *[said(CLEAR_S - 0.1)] * SAMPLES)
    assert (end.wrong, clocks.wrong) == (False, 0)


def test_a_name_on_another_host_has_another_clock() -> None:
    clocks = Clocks()
    hear(clocks, *[said(DAY_S)] * 3)
    hear(clocks, said(0.0, host_id="h-2"))
    assert clocks.offset_s(AGENT) == pytest.approx(0.0)
    assert clocks.wrong == 0


def test_an_instant_without_a_zone_is_no_measurement() -> None:
    clocks = Clocks()
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - what is tested
    assert hear(clocks, beat().model_copy(update={"sent_at": naive})) == []
    assert clocks.offset_s(AGENT) is None
