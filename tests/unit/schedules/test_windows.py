"""Windows: open from a start to a stop, held to a walk over the minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.rollouts.spec import Window
from droidfleet_controller.schedules.cron import parse
from droidfleet_controller.schedules.moments import behind
from droidfleet_controller.schedules.windows import is_open, next_opening, window_clock

MINUTE = timedelta(minutes=1)
NIGHTS = Window(start="0 22 * * *", stop="0 6 * * *", time_zone="Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def next_closing(window: Window, now: datetime) -> datetime | None:
    stop = window_clock(window).stop.first_after(behind(now))
    return None if stop is None else stop.at


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2027-01-10 20:59", False),
        ("2027-01-10 21:00", True),
        ("2027-01-11 04:59", True),
        ("2027-01-11 05:00", False),
        ("2027-07-10 20:00", True),
        ("2027-07-11 04:00", False),
    ],
)
def test_a_window_is_open_from_its_start_until_before_its_stop(now: str, expected: bool) -> None:
    assert is_open(NIGHTS, utc(now)) is expected


def test_it_opens_and_closes_next_by_the_clock_of_its_zone() -> None:
    before_change = utc("2027-03-27 23:00")
    assert next_closing(NIGHTS, before_change) == utc("2027-03-28 04:00")
    assert next_opening(NIGHTS, before_change) == utc("2027-03-28 20:00")


def test_the_next_opening_is_after_now_also_at_an_opening() -> None:
    assert next_opening(NIGHTS, utc("2027-01-10 21:00")) == utc("2027-01-11 21:00")
    assert next_opening(NIGHTS, utc("2027-01-10 20:59")) == utc("2027-01-10 21:00")


def test_a_stop_in_a_gap_closes_when_the_clocks_have_changed() -> None:
    window = Window(start="0 1 * * *", stop="30 2 * * *", time_zone="Europe/Berlin")
    assert next_closing(window, utc("2027-03-28 00:30")) == utc("2027-03-28 01:00")
    assert not is_open(window, utc("2027-03-28 01:00"))


def test_a_window_that_lies_in_a_gap_does_not_open_until_the_next_day() -> None:
    window = Window(start="15 2 * * *", stop="45 2 * * *", time_zone="Europe/Berlin")
    assert not is_open(window, utc("2027-03-28 01:00"))
    assert not is_open(window, utc("2027-03-28 12:00"))
    assert next_opening(window, utc("2027-03-28 00:00")) == utc("2027-03-29 00:15")


def test_a_start_while_it_is_open_changes_nothing() -> None:
    window = Window(start="0 * * * *", stop="30 5 * * *")
    openings = window_clock(window).openings(utc("2027-01-10 04:30"))
    assert next(openings).start.at == utc("2027-01-10 06:00")
    assert next(openings).start.at == utc("2027-01-11 06:00")


def test_where_a_stop_and_a_start_coincide_it_closes_and_opens_again() -> None:
    window = Window(start="0 */6 * * *", stop="0 0,6 * * *")
    openings = window_clock(window).openings(utc("2027-01-10 00:00"))
    first, second = next(openings), next(openings)
    assert (first.start.at, first.stop.at) == (utc("2027-01-10 06:00"), utc("2027-01-11 00:00"))
    assert second.start.at == first.stop.at
    assert is_open(window, utc("2027-01-10 06:00"))


def test_a_window_that_closes_when_it_opens_is_open_all_the_time() -> None:
    window = Window(start="0 6 * * *", stop="0 6 * * *")
    assert is_open(window, utc("2027-01-10 06:00"))
    assert is_open(window, utc("2027-01-10 05:59"))


def test_a_rare_stop_is_found() -> None:
    window = Window(start="0 0 1 3 *", stop="0 0 29 2 *")
    assert is_open(window, utc("2027-06-01 00:00"))
    assert next_closing(window, utc("2027-06-01 00:00")) == utc("2028-02-29 00:00")


def walked(start: str, stop: str, begin: datetime, minutes: int) -> list[bool]:
    """Whether it is open in each minute, by plain matching in UTC; closed before ``begin``."""
    opens, closes = parse(start), parse(stop)
    state, found = False, []
    for number in range(minutes):
        local = (begin + number * MINUTE).replace(tzinfo=None)
        state = opens.matches(local) or (state and not closes.matches(local))
        found.append(state)
    return found


HOURS = st.lists(st.integers(0, 23), min_size=1, max_size=3).map(lambda hours: ",".join(map(str, hours)))
CRONS = st.builds(lambda minute, hours: f"{minute} {hours} * * *", st.integers(0, 59), HOURS)


@given(CRONS, CRONS, st.integers(0, 1439))
def test_it_is_open_when_a_walk_over_the_minutes_says_so(start: str, stop: str, offset: int) -> None:
    window = Window(start=start, stop=stop)
    begin = utc("2027-01-10 00:00")
    # After two days the state does not depend on the one at the beginning.
    states = walked(start, stop, begin, 5 * 1440)
    at = 2 * 1440 + offset
    now = begin + at * MINUTE
    assert is_open(window, now) is states[at]
    opening = next_opening(window, now)
    expected = next(
        (
            number
            for number in range(at + 1, len(states))
            if parse_matches(start, begin, number) and opens(states, stop, begin, number)
        ),
        None,
    )
    assert opening == (None if expected is None else begin + expected * MINUTE)


def parse_matches(expression: str, begin: datetime, number: int) -> bool:
    return parse(expression).matches((begin + number * MINUTE).replace(tzinfo=None))


def opens(states: list[bool], stop: str, begin: datetime, number: int) -> bool:
    """Whether it is not open already at a start: it was closed, or closes in this very minute."""
    return not states[number - 1] or parse_matches(stop, begin, number)
