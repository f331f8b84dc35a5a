"""Cron expressions: what they mean, and what is wrong with one."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import given
from hypothesis import strategies as st

from droidfleet_controller.schedules.cron import MACROS, Cron, CronError, parse

SEED = 20_270_328
COMPARED = 400
FOLLOWED = 25
START = datetime(2027, 1, 31, 23, 58)  # noqa: DTZ001  # a time on the wall


def some(cron: Cron, count: int, *, after: datetime = START) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count:
        following = cron.next_after(found[-1] if found else after)
        assert following is not None
        found.append(following)
    return found


def texts(cron: Cron, count: int) -> list[str]:
    return [f"{each:%a %m-%d %H:%M}" for each in some(cron, count)]


@pytest.mark.parametrize(
    ("expression", "following"),
    [
        ("* * * * *", ["Sun 01-31 23:59", "Mon 02-01 00:00"]),
        ("30 8 * * 1-5", ["Mon 02-01 08:30", "Tue 02-02 08:30"]),
        ("0 9 * * 0", ["Sun 02-07 09:00", "Sun 02-14 09:00"]),
        ("0 9 * * 7", ["Sun 02-07 09:00", "Sun 02-14 09:00"]),
        ("0 9 * * sun", ["Sun 02-07 09:00", "Sun 02-14 09:00"]),
        ("0 9 * * 5-7", ["Fri 02-05 09:00", "Sat 02-06 09:00", "Sun 02-07 09:00"]),
        ("@daily", ["Mon 02-01 00:00", "Tue 02-02 00:00"]),
        ("@WEEKLY", ["Sun 02-07 00:00"]),
        ("@hourly", ["Mon 02-01 00:00", "Mon 02-01 01:00"]),
        ("0 0 13 * fri", ["Fri 02-05 00:00", "Fri 02-12 00:00", "Sat 02-13 00:00"]),
        ("0 0 */2 * mon", ["Mon 02-01 00:00", "Mon 02-15 00:00"]),
        ("5/20 6 * feb-MAR *", ["Mon 02-01 06:05", "Mon 02-01 06:25", "Mon 02-01 06:45"]),
        (" 5  4 * * sun ", ["Sun 02-07 04:05"]),
        ("0 0 29 2 *", ["Tue 02-29 00:00"]),
        ("1,1,2-3/1 0 1 1 *", ["Sat 01-01 00:01", "Sat 01-01 00:02", "Sat 01-01 00:03"]),
    ],
)
def test_an_expression_means_what_cron_means_by_it(expression: str, following: list[str]) -> None:
    assert texts(parse(expression), len(following)) == following


@pytest.mark.parametrize(
    ("expression", "position", "problem"),
    [
        ("", 0, "it has 0 fields; expected 5: minute, hour"),
        ("* * * *", 7, "it has 4 fields"),
        ("0 0 9 * * *", 10, "it has 6 fields"),
        ("60 * * * *", 0, "the minute: expected 0 to 59, not `60`"),
        ("0 25 * * *", 2, "the hour: expected 0 to 23, not `25`"),
        ("0 8,25 * * *", 4, "the hour: expected 0 to 23, not `25`"),
        ("0 8-25 * * *", 4, "the hour: expected 0 to 23, not `25`"),
        ("0 0 0 * *", 4, "the day of the month: expected 1 to 31"),
        ("0 0 * foo *", 6, "the month: expected 1 to 12, or jan to dec, not `foo`"),
        ("0 0 * * 5-1", 8, "the range `5-1` goes backwards"),
        ("*/0 * * * *", 2, "a step of 0 never moves"),
        ("a-b-c * * * *", 0, "is none of"),
        ("0 0 L * *", 4, "not `L`"),
        ("0 0 * * 1#2", 8, "`1#2` is none of"),
        ("@often", 0, "`@often` is no short form"),
        ("@reboot", 0, "`@reboot` is no short form"),
        ("0 0 30 2 *", 4, "it never fires: none of its months has a day 30"),
        ("0 0 31 4,6,9,11 *", 4, "it never fires"),
        ("* * * * * " * 60, 500, "600 characters, at most 500"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(expression: str, position: int, problem: str) -> None:
    with pytest.raises(CronError) as caught:
        parse(expression)
    assert (caught.value.position, problem in caught.value.problem) == (position, True)
    assert f"at character {position + 1}: " in caught.value.told(expression)
    assert caught.value.hint


def test_a_range_over_the_end_of_the_week_gets_a_hint_with_two() -> None:
    with pytest.raises(CronError) as caught:
        parse("0 0 * * fri-mon")
    assert caught.value.hint == "Write two: `fri-sat,sun-mon`."
    assert parse("0 0 * * fri-sat,sun-mon").weekdays == {5, 6, 0, 1}


def test_only_what_never_fires_is_said_to_never_fire() -> None:
    with pytest.raises(CronError) as caught:
        parse("0 0 30 2 *")
    assert caught.value.never
    # Either day is enough: Mondays of February.
    assert texts(parse("0 0 30 2 1"), 1) == ["Mon 02-01 00:00"]


def test_the_end_of_the_calendar_is_an_end() -> None:
    assert parse("0 0 1 1 *").next_after(datetime(9999, 6, 1)) is None  # noqa: DTZ001
    assert parse("* * * * *").next_after(datetime.max) is None  # noqa: DTZ901


@given(st.text(alphabet="0123456789*/-,@ adfjmnostuw", max_size=30))
def test_any_text_is_read_or_refused(expression: str) -> None:
    try:
        cron = parse(expression)
    except CronError as error:
        inside = 0 <= error.position <= len(expression)
    else:
        inside = cron.next_after(START) is not None
    assert inside


def random_field(source: random.Random, low: int, high: int) -> str:
    def one() -> str:
        # Of one number and a step, as 2-2/9, cronsim makes 2/9; Vixie's cron does not.
        first, last = sorted(source.sample(range(low, high + 1), 2))
        step = source.choice(("", "", f"/{source.randint(1, 12)}"))
        return source.choice((f"{first}", f"{first}", f"{first}-{last}{step}", f"{first}/{source.randint(1, 12)}"))

    return source.choice(("*", "*", f"*/{source.randint(1, 12)}", ",".join(one() for _ in range(source.randint(1, 3)))))


def random_expression(source: random.Random) -> str:
    return " ".join(random_field(source, *bounds) for bounds in ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7)))


@pytest.mark.parametrize("part", range(4))
def test_plain_matching_agrees_with_another_implementation(part: int) -> None:
    source = random.Random(SEED + part)
    differing: list[str] = []
    for _ in range(COMPARED):
        expression = random_expression(source)
        try:
            theirs = CronSim(expression, START)
        except CronSimError:
            with pytest.raises(CronError):
                parse(expression)
            continue
        ours = some(parse(expression), FOLLOWED)
        if ours != [next(theirs) for _ in range(FOLLOWED)]:
            differing.append(expression)
    assert differing == []


@given(st.integers(0, 2**32), st.datetimes(datetime(2024, 1, 1), datetime(2034, 12, 31)))  # noqa: DTZ001
def test_the_next_time_matches_and_none_before_it_does(seed: int, start: datetime) -> None:
    source = random.Random(seed)
    cron = parse(f"{random_field(source, 0, 59)} {random_field(source, 0, 23)} * * *")
    start = start.replace(second=0, microsecond=0)
    found = cron.next_after(start)
    assert found is not None
    assert cron.matches(found)
    between = (start + timedelta(minutes=number) for number in range(1, (found - start) // timedelta(minutes=1)))
    assert not any(cron.matches(each) for each in between)


@pytest.mark.parametrize("name", MACROS)
def test_a_short_form_is_its_long_form(name: str) -> None:
    assert parse(name).same_times(parse(MACROS[name]))
