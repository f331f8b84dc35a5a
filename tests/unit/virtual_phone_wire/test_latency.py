"""Latency profiles: what they cost, and how they are written."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.calls import CallKind
from droidfleet_agent.virtual_phone.latency import PROFILES, latency_profile
from droidfleet_shared.errors import InvalidInputError


def test_zero_costs_nothing() -> None:
    assert {PROFILES["zero"].seconds(kind, gesture_ms=1_000) for kind in CallKind} == {0.0}


def test_realistic_dumps_in_120_ms_and_taps_in_30() -> None:
    profile = latency_profile("realistic")
    assert (profile.seconds(CallKind.DUMP), profile.seconds(CallKind.TAP)) == (0.12, 0.03)


def test_gestures_take_their_time_on_a_realistic_phone() -> None:
    assert latency_profile("realistic").seconds(CallKind.TAP, gesture_ms=500) == pytest.approx(0.53)


def test_every_kind_of_call_has_a_delay() -> None:
    assert set(CallKind) <= set(type(PROFILES["zero"]).model_fields)


@pytest.mark.parametrize(
    ("text", "dump", "tap"), [("realistic,dump=400", 400, 30), ("tap=5", 0, 5), ("tap=5, dump=7", 7, 5), ("zero", 0, 0)]
)
def test_profiles_are_changed_by_name(text: str, dump: float, tap: float) -> None:
    profile = latency_profile(text)
    assert (profile.dump, profile.tap) == (dump, tap)


@pytest.mark.parametrize("text", ["fast", "dump", "dump=x", "dump=-1", "dmp=3", "dump=99999999", "realistic,real"])
def test_a_wrong_profile_is_told_the_names(text: str) -> None:
    with pytest.raises(InvalidInputError, match="LATENCY_INVALID") as caught:
        latency_profile(text)
    assert "screenshot" in caught.value.hint
