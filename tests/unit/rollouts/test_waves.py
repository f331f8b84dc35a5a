"""Sizes of waves, places in them, and gates as numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.rollouts import waves
from droidfleet_controller.rollouts.amounts import Amount, Count, Percent
from droidfleet_controller.rollouts.planner.gate import excess, verdict
from droidfleet_controller.rollouts.planner.tally import Tally
from droidfleet_controller.rollouts.rollout import ALL_CODES
from droidfleet_controller.rollouts.spec import Gate, Order, Wave
from droidfleet_controller.rollouts.states import ReasonCode

AMOUNTS = st.one_of(st.integers(0, 40).map(Count), st.integers(0, 10_000).map(Percent))


def sizes(members: int, *asked: object) -> waves.WaveSizes:
    return waves.sizes([Wave.model_validate({} if size is None else {"size": size}) for size in asked], members)


@pytest.mark.parametrize(
    ("members", "asked", "found"),
    [
        (50, [1, "10%", None], (1, 5, 44)),
        (41, ["10%", None], (5, 36)),
        (3, ["1%", None], (1, 2)),
        (1, ["50%", None], (1, 0)),
        (2, ["100%", "100%", None], (2, 0, 0)),
        (10, [4, 6, None], (4, 6, 0)),
        (10, [4, 6], (4, 6)),
        (3, [1, "50%"], (1, 2)),
        (7, [None], (7,)),
    ],
)
def test_sizes_are_rounded_up_and_the_last_takes_the_rest(
    members: int, asked: list[object], found: tuple[int, ...]
) -> None:
    assert (sizes(members, *asked).sizes, sizes(members, *asked).issues) == (found, ())


def test_an_empty_wave_is_left_out_and_said_so() -> None:
    assert sizes(1, 1, "10%", None).notes == (
        "Wave 2 is left out: the waves before it take all 1.",
        "Wave 3 is left out: the waves before it take all 1.",
    )


@pytest.mark.parametrize(
    ("members", "asked", "path", "message"),
    [
        (3, [5, None], "/waves/0/size", "wave 1 wants 5, and 3 of 3 members are left for it."),
        (3, [3, 1, None], "/waves/1/size", "wave 2 wants 1, and 0 of 3 members are left for it."),
        (9, [0, None], "/waves/0/size", "wave 1 has the size 0: a wave has at least 1 member."),
        (
            50,
            ["10%", "100%"],
            "/waves/1/size",
            "the last wave takes the rest, which is 45 of 50, and its size 100% says 50.",
        ),
        (10, [2, 3], "/waves/1/size", "the last wave takes the rest, which is 8 of 10, and its size 3 says 3."),
        (9, [None, 1], "/waves/0", "wave 1 has no size and is not the last: only the last wave takes the rest."),
    ],
)
def test_waves_that_do_not_fit_say_the_numbers(members: int, asked: list[object], path: str, message: str) -> None:
    first = sizes(members, *asked).issues[0]
    assert (first.path, first.code, first.message) == (path, "WAVES_DO_NOT_FIT", message)
    assert first.hint


def test_every_wave_that_does_not_fit_is_listed() -> None:
    assert [issue.path for issue in sizes(5, 0, None, 9, 1).issues] == [
        "/waves/0/size",
        "/waves/1",
        "/waves/2/size",
        "/waves/3/size",
    ]


@given(
    members=st.integers(1, 500),
    asked=st.lists(AMOUNTS, max_size=5),
)
def test_waves_that_fit_share_out_all_members(members: int, asked: list[Amount]) -> None:
    found = waves.sizes([*(Wave(size=size) for size in asked), Wave()], members)
    if found.issues:
        assert any(isinstance(size, Count) for size in asked)
        return
    assert sum(found.sizes) == members
    left_out = [number for number, size in enumerate(found.sizes, 1) if size == 0]
    assert len(found.notes) == len(left_out)
    for number, size in enumerate(asked, 1):
        if isinstance(size, Percent) and number not in left_out:
            exact = size.hundredths * members / 10_000
            rest = members - sum(found.sizes[: number - 1])
            assert found.sizes[number - 1] in {max(1, int(exact), int(exact) + (exact % 1 > 0)), rest}


def test_the_order_by_hash_is_the_same_each_time_and_another_one_for_each_rollout() -> None:
    devices = [f"phone-{number}" for number in range(100)]
    order = waves.places("r-1", devices, Order.HASH)
    assert order == waves.places("r-1", devices[::-1], Order.HASH)
    assert sorted(order) == sorted(devices)
    assert order != waves.places("r-2", devices, Order.HASH)
    assert order[:3] == ["phone-38", "phone-55", "phone-86"]


def test_listed_devices_stay_in_their_order() -> None:
    assert waves.places("r-1", ["b", "a", "c"], Order.LISTED) == ["b", "a", "c"]


def test_places_count_from_one_and_waves_that_were_left_out_have_none() -> None:
    assert waves.layout(["b", "a", "c"], [1, 0, 2]) == [
        waves.Place("b", 1, 1),
        waves.Place("a", 2, 3),
        waves.Place("c", 3, 3),
    ]


@pytest.mark.parametrize(
    ("gate", "members", "sentence"),
    [
        ({}, 40, "advances at 36 of 40"),
        ({"maxFailures": 2}, 40, "advances at 36 of 40; pauses at the 3rd failure"),
        ({"maxFailures": "5%"}, 40, "advances at 36 of 40; pauses at the 3rd failure"),
        ({"maxFailures": "5%"}, 41, "advances at 37 of 41; pauses at the 3rd failure"),
        ({"maxFailures": 0, "onExceeded": "CANCEL"}, 5, "advances at 5 of 5; cancels at the 1st failure"),
        ({"maxFailures": 5}, 5, "advances at 5 of 5"),
        ({"maxFailures": "100%", "minSuccessPercent": "0%"}, 5, "advances at 0 of 5"),
        ({"maxFailuresByCode": {"OUTCOME_UNKNOWN": 0}}, 5, "advances at 5 of 5; pauses at the 1st OUTCOME_UNKNOWN"),
        (
            {"minSample": 9, "soak": "10m", "approval": "MANUAL"},
            5,
            "advances at 5 of 5; needs 5 results; waits 10m after the last result; then a person decides",
        ),
    ],
)
def test_a_gate_is_shown_as_numbers(gate: dict[str, object], members: int, sentence: str) -> None:
    assert waves.numbers(Gate.model_validate(gate), members).sentence == sentence


@given(
    percent=st.integers(0, 10_000).map(Percent),
    limit=AMOUNTS,
    members=st.integers(1, 500),
)
def test_the_numbers_shown_are_the_ones_that_decide(percent: Percent, limit: Amount, members: int) -> None:
    gate = Gate(min_success_percent=percent, max_failures=limit)
    shown = waves.numbers(gate, members)
    assert _passes(gate, members, succeeded=shown.successes_needed)
    assert shown.successes_needed == 0 or not _passes(gate, members, succeeded=shown.successes_needed - 1)
    stopping = [failed for failed in range(1, members + 1) if _stops(gate, members, failed=failed)]
    assert shown.stops_at_failure == min(stopping, default=0)


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (113, "113th")]
)
def test_ordinals(number: int, text: str) -> None:
    assert waves.ordinal(number) == text


def _passes(gate: Gate, members: int, *, succeeded: int) -> bool:
    tally = Tally()
    tally.members = tally.results = members
    tally.succeeded = succeeded
    return verdict(gate, tally) is ReasonCode.NONE


def _stops(gate: Gate, members: int, *, failed: int) -> bool:
    tally = Tally()
    tally.members = members
    tally.failures[ALL_CODES] = failed
    return excess(gate, tally, {}) is not None
