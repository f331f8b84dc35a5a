"""The next occurrences, with what is special about them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.schedules.occurrences import Timed
from droidfleet_controller.schedules.preview import begin_at, local_text, planned, when_text
from unit.schedules.documents import NOW, spec, timetable, utc


def test_a_time_in_the_gap_is_flagged() -> None:
    first, second = planned(timetable(), "s-1", after=utc("2027-03-27 02:00"), count=2)[:2]
    assert (first.at, first.note) == (utc("2027-03-28 01:00"), first.note)
    assert first.note.startswith("clocks have gone forward by 1h; 02:30 does not exist on this day")
    assert second.note == ""


def test_both_of_a_fold_are_flagged() -> None:
    found = planned(timetable(fold="BOTH"), "s-1", after=utc("2027-10-30 12:00"), count=2)
    assert [each.note for each in found] == [
        "02:30 comes twice on this day; this is the first",
        "clocks have gone back by 1h; 02:30 comes twice on this day; this is the second",
    ]


def test_an_occurrence_left_out_by_the_gap_is_seen_by_the_change() -> None:
    found = planned(timetable(gap="SKIP"), "s-1", after=utc("2027-03-27 02:00"), count=1)
    assert [(each.at, each.note) for each in found] == [(utc("2027-03-29 00:30"), "clocks have gone forward by 1h")]


def test_an_instant_is_shown_on_the_clock_of_the_zone() -> None:
    assert local_text(utc("2027-03-28 01:00"), timetable().zone) == "2027-03-28 03:00:00+02:00 CEST"


@pytest.mark.parametrize(
    ("when", "text"),
    [
        ({"cron": "30 2 * * *"}, "30 2 * * * in Europe/Berlin"),
        ({"cron": "@daily"}, "@daily (0 0 * * *) in Europe/Berlin"),
        ({"interval": "90m"}, "every 1h30m"),
        ({"once": "2027-04-01T08:00"}, "once at 2027-04-01T08:00 in Europe/Berlin"),
        ({"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}}, "from 0 22 * * * to 0 6 * * * in Europe/Berlin"),
    ],
)
def test_when_is_told_in_few_words(when: dict[str, object], text: str) -> None:
    assert when_text(spec(when=when)) == text


@given(st.text(max_size=20), st.timedeltas(timedelta(0), timedelta(days=2)), st.datetimes(NOW.replace(tzinfo=None)))
def test_jitter_is_the_same_each_time_and_within_its_bounds(key: str, jitter: timedelta, local: object) -> None:
    timed = Timed(utc(str(local)))
    begin = begin_at(key, timed, jitter)
    assert begin == begin_at(key, timed, jitter)
    assert timedelta(0) <= begin - timed.at <= jitter


def test_jitter_spreads() -> None:
    hour = timedelta(hours=1)
    begins = [begin_at(f"s-{number}", Timed(NOW), hour) - NOW for number in range(200)]
    assert min(begins) < hour / 10
    assert max(begins) > hour * 9 / 10


def test_jitter_never_goes_past_the_stop_of_a_window() -> None:
    timed = Timed(NOW, None, NOW + timedelta(minutes=1))
    assert all(
        begin_at(f"s-{number}", timed, timedelta(hours=9)) < timed.stop_at for number in range(100) if timed.stop_at
    )
