"""When the occurrences of each kind of schedule are."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.rollouts.amounts import duration_text
from droidfleet_controller.schedules.occurrences import Timetable
from unit.schedules.documents import NOW, timetable, utc

SECOND = timedelta(seconds=1)


def times(table: Timetable, after: datetime, count: int) -> list[str]:
    return [f"{each.at:%m-%d %H:%M}" for each in islice(table.after(after), count)]


def test_once_comes_once() -> None:
    table = timetable(when={"once": "2027-03-28T03:30"})
    assert times(table, NOW, 2) == ["03-28 01:30"]
    assert times(table, utc("2027-03-28 01:30"), 2) == []


@pytest.mark.parametrize(
    ("fold", "expected"),
    [("FIRST", ["10-31 00:30"]), ("SECOND", ["10-31 01:30"]), ("BOTH", ["10-31 00:30", "10-31 01:30"])],
)
def test_once_at_a_time_that_comes_twice_follows_the_fold(fold: str, expected: list[str]) -> None:
    assert times(timetable(when={"once": "2027-10-31T02:30"}, fold=fold), NOW, 3) == expected


def test_several_times_in_one_gap_are_one_occurrence() -> None:
    table = timetable(when={"cron": "0,20,40 2 * * *"})
    assert times(table, utc("2027-03-27 12:00"), 2) == ["03-28 01:00", "03-29 00:00"]


def test_a_time_at_the_end_of_a_gap_and_one_within_are_one_occurrence() -> None:
    table = timetable(when={"cron": "30 2,3 * * *"})
    assert times(timetable(when={"cron": "0 2,3 * * *"}), utc("2027-03-27 12:00"), 2) == ["03-28 01:00", "03-29 00:00"]
    assert times(table, utc("2027-03-27 12:00"), 2) == ["03-28 01:00", "03-28 01:30"]


def test_from_and_until_are_occurrences_themselves() -> None:
    table = timetable(
        when={"cron": "0 * * * *"}, timeZone="UTC", **{"from": "2027-03-02T05:00"}, until="2027-03-02T07:00"
    )
    assert times(table, NOW, 9) == ["03-02 05:00", "03-02 06:00", "03-02 07:00"]


def test_an_interval_counts_from_when_the_schedule_was_made() -> None:
    assert times(timetable(when={"interval": "90m"}), NOW, 2) == ["03-01 13:30", "03-01 15:00"]


def test_an_interval_counts_from_its_from_and_begins_there() -> None:
    table = timetable(when={"interval": "24h"}, **{"from": "2027-03-27T02:30"})
    # Time that elapses: a day later the clock shows an hour more.
    assert times(table, NOW, 3) == ["03-27 01:30", "03-28 01:30", "03-29 01:30"]


@given(
    st.timedeltas(timedelta(seconds=10), timedelta(days=30)),
    st.timedeltas(timedelta(0), timedelta(days=400)),
    st.booleans(),
)
def test_an_interval_never_drifts_and_leaves_nothing_out(every: timedelta, later: timedelta, with_from: bool) -> None:
    every -= timedelta(microseconds=every.microseconds)
    bound = {"from": "2027-03-02T00:00"} if with_from else {}
    table = timetable(when={"interval": duration_text(every)}, timeZone="UTC", **bound)
    anchor = utc("2027-03-02 00:00") if with_from else NOW
    found = [each.at for each in islice(table.after(NOW + later), 4)]
    assert all((each - anchor) % every == timedelta(0) for each in found)
    assert found[0] > NOW + later
    assert found[0] - max(NOW + later, anchor - every) <= every
    assert [after - before for before, after in pairwise(found)] == [every] * 3


@given(st.integers(1, 30), st.timedeltas(timedelta(0), timedelta(days=40)))
def test_the_newest_are_the_last_of_all(limit: int, span: timedelta) -> None:
    table = timetable(when={"cron": "*/17 1-9 * * *"})
    every = list(table.between(NOW, NOW + span))
    assert table.newest(NOW, NOW + span, limit=limit) == (every[-limit:], len(every) > limit)


def test_the_newest_after_years_are_found_without_counting_them_all() -> None:
    table = timetable(when={"cron": "* * * * *"})
    found, more = table.newest(NOW, NOW + timedelta(days=3_650), limit=3)
    assert (more, [NOW + timedelta(days=3_650) - each.at for each in found]) == (
        True,
        [120 * SECOND, 60 * SECOND, 0 * SECOND],
    )


def test_a_window_has_a_stop() -> None:
    table = timetable(when={"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}})
    first = next(table.after(utc("2027-03-27 12:00")))
    assert (first.at, first.stop_at) == (utc("2027-03-27 21:00"), utc("2027-03-28 04:00"))


def test_a_window_of_two_local_times_comes_once() -> None:
    table = timetable(when={"window": {"start": "2027-03-27T22:00", "stop": "2027-03-28T02:30"}})
    assert [(each.at, each.stop_at) for each in table.after(NOW)] == [
        (utc("2027-03-27 21:00"), utc("2027-03-28 01:00"))
    ]


def test_a_start_that_is_left_out_by_the_gap_opens_nothing_that_day() -> None:
    table = timetable(when={"window": {"start": "30 2 * * *", "stop": "0 6 * * *"}}, gap="SKIP")
    assert times(table, utc("2027-03-27 12:00"), 1) == ["03-29 00:30"]
