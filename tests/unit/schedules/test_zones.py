"""Zones by name, and times on their clocks."""

from __future__ import annotations

from datetime import datetime

import pytest

from droidfleet_controller.schedules.spec import Fold, Gap
from droidfleet_controller.schedules.zones import UnknownZoneError, exists, exists_twice, instants, zone
from unit.schedules.documents import utc

BERLIN = zone("Europe/Berlin")
IN_GAP = datetime(2027, 3, 28, 2, 30)  # noqa: DTZ001  # a time on the wall
IN_FOLD = datetime(2027, 10, 31, 2, 30)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Berlin", "Europe/Berlin"),
        ("europe/berlin", "Europe/Berlin"),
        ("Europe/Berlni", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_an_unknown_zone_gets_the_one_that_was_meant(asked: str, meant: str) -> None:
    with pytest.raises(UnknownZoneError) as caught:
        zone(asked)
    assert caught.value.hint.startswith(f"Did you mean `{meant}`?")


@pytest.mark.parametrize("asked", ["CEST", "Mars/Base", "", "../etc/passwd", "x" * 10_000, "localtime"])
def test_what_is_like_no_zone_gets_examples(asked: str) -> None:
    with pytest.raises(UnknownZoneError) as caught:
        zone(asked)
    assert caught.value.hint.startswith("Names are those of the tz database")


def test_a_time_in_the_gap_is_the_end_of_it_or_nothing() -> None:
    assert instants(IN_GAP, BERLIN, gap=Gap.NEXT_VALID, fold=Fold.FIRST) == (utc("2027-03-28 01:00"),)
    assert instants(IN_GAP, BERLIN, gap=Gap.SKIP, fold=Fold.FIRST) == ()
    assert (exists(IN_GAP, BERLIN), exists_twice(IN_GAP, BERLIN)) == (False, False)


def test_a_time_in_the_fold_is_the_first_the_second_or_both() -> None:
    first, second = utc("2027-10-31 00:30"), utc("2027-10-31 01:30")
    found = {fold: instants(IN_FOLD, BERLIN, gap=Gap.SKIP, fold=fold) for fold in Fold}
    assert found == {Fold.FIRST: (first,), Fold.SECOND: (second,), Fold.BOTH: (first, second)}
    assert (exists(IN_FOLD, BERLIN), exists_twice(IN_FOLD, BERLIN)) == (True, True)


def test_a_day_that_a_country_left_out_ends_at_midnight() -> None:
    # Samoa went over the date line at the end of 2011-12-29.
    missing = datetime(2011, 12, 30, 12, 0)  # noqa: DTZ001
    found = instants(missing, zone("Pacific/Apia"), gap=Gap.NEXT_VALID, fold=Fold.FIRST)
    assert found == (utc("2011-12-30 10:00"),)


def test_the_ends_of_the_calendar_have_no_instants() -> None:
    last = datetime(9999, 12, 31, 23, 59)  # noqa: DTZ001
    assert instants(last, zone("America/Denver"), gap=Gap.NEXT_VALID, fold=Fold.FIRST) == ()
