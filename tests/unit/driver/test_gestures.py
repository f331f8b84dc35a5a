"""Gestures in the server's words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from droidfleet_agent.driver.gestures import KEY_CODES, PANELS, STEP_MS, steps_of, swipe_call
from droidfleet_agent.driver.port import Key

points = st.tuples(st.integers(0, 4000), st.integers(0, 4000))


def test_every_key_has_a_code_or_a_panel() -> None:
    assert KEY_CODES.keys() | PANELS.keys() == set(Key)


@given(points, points, st.integers(50, 10_000))
def test_a_swipe_without_a_rest_is_one_call_from_end_to_end(
    start: tuple[int, int], end: tuple[int, int], duration_ms: int
) -> None:
    method, params = swipe_call(start, end, duration_ms=duration_ms, hold_ms=0)

    assert (method, params) == ("swipe", [*start, *end, steps_of(duration_ms)])


@given(points, points, st.integers(50, 10_000), st.integers(50, 1_000))
def test_a_swipe_with_a_rest_ends_twice_at_its_end_and_takes_about_its_time(
    start: tuple[int, int], end: tuple[int, int], duration_ms: int, hold_ms: int
) -> None:
    method, (way, steps) = swipe_call(start, end, duration_ms=duration_ms, hold_ms=hold_ms)
    assert isinstance(way, list)
    assert isinstance(steps, int)
    numbers = [int(str(number)) for number in way]
    met = list(zip(numbers[::2], numbers[1::2], strict=True))

    assert method == "swipePoints"
    assert met[0] == start
    assert met[-2:] == [end, end]
    moving_ms = (len(met) - 2) * steps * STEP_MS
    assert abs(moving_ms - duration_ms) <= hold_ms + STEP_MS * len(met)
