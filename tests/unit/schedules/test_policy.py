"""What becomes of occurrences whose time has come."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

import pytest

from droidfleet_controller.schedules import policy
from droidfleet_controller.schedules.occurrences import Timetable
from droidfleet_controller.schedules.policy import GRACE, Begin, BeginQueued, Facts, Record, Settle, Step, next_step
from droidfleet_controller.schedules.schedule import Occurrence, OccurrenceState
from droidfleet_controller.schedules.spec import MAX_QUEUED
from unit.schedules.documents import NOW, schedule

HOUR = timedelta(hours=1)
LONG_AFTER = NOW + 5 * HOUR + timedelta(minutes=30)
"""Five hourly occurrences are due, all of them late."""


def facts(
    now: datetime = LONG_AFTER,
    *,
    running: tuple[str, ...] = (),
    queued: tuple[Occurrence, ...] = (),
    **fields: object,
) -> Facts:
    stored = schedule(**{"when": {"cron": "0 * * * *"}, "timeZone": "UTC", **fields})
    due, more = policy.due(stored, Timetable(stored.spec, anchor=NOW), now)
    return Facts(schedule=stored, due=due, more=more, queued=queued, running=running, now=now)


def waiting(number: int = 1, *, stop_at: datetime | None = None) -> Occurrence:
    return Occurrence(
        schedule_id="s-1",
        intended_at=NOW - number * HOUR,
        state=OccurrenceState.QUEUED,
        stop_at=stop_at,
        decided_at=NOW,
    )


def hours(step: Step | None) -> list[float]:
    """How many hours after NOW the occurrences of a record were meant to be."""
    assert isinstance(step, Record)
    return [(each.intended_at - NOW) / HOUR for each in step.occurrences]


def states(step: Step | None) -> set[OccurrenceState]:
    assert isinstance(step, Record)
    return {each.state for each in step.occurrences}


def test_nothing_is_due_before_its_time() -> None:
    assert next_step(facts(NOW + HOUR - timedelta(seconds=1))) is None


def test_an_occurrence_begins_at_its_time() -> None:
    step = next_step(facts(NOW + HOUR))
    assert isinstance(step, Begin)
    assert (step.timed.at, step.cancel) == (NOW + HOUR, ())


@pytest.mark.parametrize("misfire", ["SKIP", "LAST", "ALL"])
def test_one_that_is_a_little_late_is_on_time(misfire: str) -> None:
    assert isinstance(next_step(facts(NOW + HOUR + GRACE, misfire=misfire)), Begin)


def test_skip_leaves_out_all_that_is_late() -> None:
    step = next_step(facts(misfire="SKIP"))
    assert (hours(step), states(step)) == ([1, 2, 3, 4, 5], {OccurrenceState.MISSED})


def test_skip_begins_what_is_on_time_after_a_downtime() -> None:
    assert hours(next_step(facts(NOW + 5 * HOUR, misfire="SKIP"))) == [1, 2, 3, 4]


def test_last_makes_up_for_the_newest_alone() -> None:
    step = next_step(facts(misfire="LAST"))
    assert (hours(step), states(step)) == ([1, 2, 3, 4], {OccurrenceState.MISSED})


def test_last_makes_up_for_none_when_one_is_on_time() -> None:
    assert hours(next_step(facts(NOW + 3 * HOUR, misfire="LAST"))) == [1, 2]


def test_all_makes_up_for_the_newest_up_to_the_limit() -> None:
    assert hours(next_step(facts(misfire="ALL", catchUpLimit=2))) == [1, 2, 3]
    step = next_step(facts(misfire="ALL"))
    assert isinstance(step, Begin)
    assert step.timed.at == NOW + HOUR


def test_after_a_long_downtime_the_newest_are_listed_and_the_others_mentioned() -> None:
    step = next_step(facts(NOW + timedelta(days=900, minutes=30), misfire="SKIP"))
    assert isinstance(step, Record)
    assert len(step.occurrences) == policy.MAX_LISTED
    assert "Those before it are not listed." in step.occurrences[0].reason
    assert "Those before it" not in step.occurrences[1].reason
    assert step.occurrences[-1].intended_at == NOW + timedelta(days=900)


WINDOW = {"window": {"start": "0 */2 * * *", "stop": "30 1-23/2 * * *"}}


def test_a_window_that_is_open_still_begins_late() -> None:
    step = next_step(facts(NOW + 3 * HOUR, when=WINDOW))
    assert isinstance(step, Begin)
    assert step.timed.stop_at == NOW + 3.5 * HOUR


@pytest.mark.parametrize("misfire", ["SKIP", "LAST", "ALL"])
def test_a_window_that_has_closed_begins_never(misfire: str) -> None:
    step = next_step(facts(NOW + 3.75 * HOUR, when=WINDOW, misfire=misfire))
    assert isinstance(step, Record)
    assert [each.reason.split(":")[0] for each in step.occurrences] == ["WINDOW_CLOSED"]
    assert step.occurrences[0].stop_at is None


def test_an_overlap_is_left_out_by_default() -> None:
    step = next_step(facts(NOW + HOUR, running=("ro-1",)))
    assert isinstance(step, Record)
    assert (states(step), step.occurrences[0].reason) == ({OccurrenceState.OVERLAPPED}, "OVERLAP: ro-1 still goes on.")


def test_an_overlap_may_wait() -> None:
    assert states(next_step(facts(NOW + HOUR, running=("ro-1",), overlap="QUEUE"))) == {OccurrenceState.QUEUED}


def test_no_more_than_the_limit_waits() -> None:
    full = tuple(waiting(number) for number in range(MAX_QUEUED, 0, -1))
    step = next_step(facts(NOW + HOUR, running=("ro-1",), queued=full, overlap="QUEUE"))
    assert isinstance(step, Record)
    assert step.occurrences[0].reason.startswith("QUEUE_FULL")


def test_an_overlap_may_cancel_what_goes_on() -> None:
    step = next_step(facts(NOW + HOUR, running=("ro-1", "ro-2"), overlap="CANCEL_RUNNING"))
    assert isinstance(step, Begin)
    assert step.cancel == ("ro-1", "ro-2")


def test_an_overlap_may_be_allowed() -> None:
    step = next_step(facts(NOW + HOUR, running=("ro-1",), overlap="ALLOW"))
    assert isinstance(step, Begin)
    assert step.cancel == ()


def test_what_waits_begins_when_nothing_goes_on_the_oldest_first() -> None:
    oldest = waiting(2)
    step = next_step(facts(NOW, queued=(oldest, waiting(1)), overlap="QUEUE"))
    assert step == BeginQueued(occurrence=oldest)


def test_what_waits_goes_on_waiting_while_one_goes_on() -> None:
    assert next_step(facts(NOW, queued=(waiting(),), running=("ro-1",), overlap="QUEUE")) is None


def test_what_waits_never_begins_after_its_window() -> None:
    step = next_step(facts(NOW, queued=(waiting(stop_at=NOW),), running=("ro-1",), overlap="QUEUE"))
    assert isinstance(step, Settle)
    assert (step.occurrence.state, step.occurrence.reason[:13]) == (OccurrenceState.OVERLAPPED, "WINDOW_CLOSED")


def test_occurrences_with_jitter_begin_in_their_order() -> None:
    stored = schedule(when={"interval": "10s"}, jitter="10m")
    table = Timetable(stored.spec, anchor=NOW)
    for number in range(100):
        due, _ = policy.due(stored, table, NOW + number * timedelta(seconds=10))
        # None is left out: those that are due follow each other from the first.
        assert list(due) == list(islice(table.after(NOW), len(due)))
