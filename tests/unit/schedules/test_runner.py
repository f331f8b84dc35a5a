"""Occurrences become rollouts: once each, by the policies, and windows end what they began."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from droidfleet_controller.rollouts.states import ReasonCode
from droidfleet_shared.errors import InvalidInputError, NotFoundError, UnavailableError
from support.waiting import until
from unit.schedules.documents import document, utc
from unit.schedules.scheduling import Scheduling, scheduling

HOURLY = {"when": {"cron": "0 * * * *"}, "timeZone": "UTC"}
NIGHTS = {"when": {"window": {"start": "0 22 * * *", "stop": "0 6 * * *"}}, "timeZone": "UTC"}


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Scheduling]:
    async with scheduling(tmp_path / "fleet.db") as made:
        yield made


async def at(parts: Scheduling, text: str) -> None:
    """Looks at an instant of 2027-03."""
    parts.clock.time = utc(f"2027-03-{text}")
    await parts.look()


async def finish(parts: Scheduling) -> None:
    await parts.rollouts.finish(parts.rollouts.adopted[-1])


async def test_an_occurrence_begins_a_rollout_at_its_time(parts: Scheduling) -> None:
    view = await parts.create(**HOURLY)
    await at(parts, "01 12:59:59")
    assert parts.rollouts.adopted == []
    await at(parts, "01 13:00")
    assert await parts.stored_rollouts() == [(view.schedule.schedule_id, utc("2027-03-01 13:00"))]
    assert len(parts.rollouts.adopted) == 1
    assert await parts.became() == {"01 13:00": "STARTED"}


async def test_it_begins_once_however_often_one_looks(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    for _ in range(3):
        await at(parts, "01 13:00")
    assert len(await parts.stored_rollouts()) == 1


async def test_a_request_id_of_somebody_else_is_in_nobodys_way(parts: Scheduling) -> None:
    view = await parts.create(**HOURLY)
    at_one = utc("2027-03-01 13:00")
    prepared = await parts.rollouts.prepare(view.schedule.spec.rollout)
    request_id = f"{view.schedule.schedule_id}@{at_one.isoformat()}"
    await parts.database.run(
        lambda connection: parts.rollouts.create(
            connection, prepared, now=at_one, request_id=request_id, actor="somebody"
        )
    )
    await at(parts, "01 13:00")
    assert await parts.became() == {"01 13:00": "STARTED"}


async def test_the_timer_is_set_for_the_next_one(parts: Scheduling) -> None:
    view = await parts.create(**HOURLY)
    await parts.look()
    assert parts.timer.times[view.schedule.schedule_id] == utc("2027-03-01 13:00")
    await at(parts, "01 13:00")
    assert parts.timer.times[view.schedule.schedule_id] == utc("2027-03-01 14:00")


async def test_a_daily_schedule_begins_once_on_the_day_that_clocks_change(parts: Scheduling) -> None:
    """Field case F25."""
    parts.clock.time = utc("2027-03-27 12:00")
    await parts.create()
    for hour in range(48):
        await at(parts, f"{28 + hour // 24} {hour % 24:02}:30")
        if parts.rollouts.adopted:
            await finish(parts)
    assert await parts.became() == {"28 01:00": "STARTED", "29 00:30": "STARTED"}


async def test_after_a_downtime_the_newest_is_made_up_for(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    await at(parts, "01 16:30")
    assert await parts.became() == {
        "01 13:00": "MISSED",
        "01 14:00": "MISSED",
        "01 15:00": "MISSED",
        "01 16:00": "STARTED",
    }
    assert parts.noted == ["MISSED"] * 3 + ["STARTED"]


async def test_after_a_downtime_nothing_begins_with_skip(parts: Scheduling) -> None:
    await parts.create(**HOURLY, misfire="SKIP")
    await at(parts, "01 14:30")
    assert await parts.became() == {"01 13:00": "MISSED", "01 14:00": "MISSED"}


async def test_after_a_downtime_all_begin_up_to_the_limit(parts: Scheduling) -> None:
    await parts.create(**HOURLY, misfire="ALL", catchUpLimit=2, overlap="ALLOW")
    await at(parts, "01 15:30")
    assert await parts.became() == {"01 13:00": "MISSED", "01 14:00": "STARTED", "01 15:00": "STARTED"}


async def test_an_overlap_is_left_out(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    await at(parts, "01 13:00")
    await at(parts, "01 14:00")
    await finish(parts)
    await at(parts, "01 15:00")
    assert await parts.became() == {"01 13:00": "STARTED", "01 14:00": "OVERLAPPED", "01 15:00": "STARTED"}


async def test_an_overlap_waits_its_turn(parts: Scheduling) -> None:
    await parts.create(**HOURLY, overlap="QUEUE")
    for hour in (13, 14, 15):
        await at(parts, f"01 {hour}:00")
    assert await parts.became() == {"01 13:00": "STARTED", "01 14:00": "QUEUED", "01 15:00": "QUEUED"}
    await finish(parts)
    await at(parts, "01 15:10")
    assert await parts.became() == {"01 13:00": "STARTED", "01 14:00": "STARTED", "01 15:00": "QUEUED"}
    assert (await parts.stored_rollouts())[-1][1] == utc("2027-03-01 14:00")


async def test_an_overlap_takes_the_place_of_what_goes_on(parts: Scheduling) -> None:
    await parts.create(**HOURLY, overlap="CANCEL_RUNNING")
    await at(parts, "01 13:00")
    await at(parts, "01 14:00")
    first, second = parts.rollouts.adopted
    assert parts.rollouts.ended == [(first, ReasonCode.REPLACED)]
    assert (await parts.history())[-1].rollout_id == second


async def test_what_cannot_begin_takes_nobodys_place(parts: Scheduling) -> None:
    await parts.create(**HOURLY, overlap="CANCEL_RUNNING")
    await at(parts, "01 13:00")
    parts.rollouts.refuse["tea"] = NotFoundError("TASK_NOT_FOUND", "no task `tea` is stored")
    await at(parts, "01 14:00")
    assert parts.rollouts.ended == []
    assert await parts.became() == {"01 13:00": "STARTED", "01 14:00": "FAILED"}


async def test_an_overlap_may_be_allowed(parts: Scheduling) -> None:
    await parts.create(**HOURLY, overlap="ALLOW")
    await at(parts, "01 13:00")
    await at(parts, "01 14:00")
    assert (len(parts.rollouts.adopted), parts.rollouts.ended) == (2, [])


async def test_jitter_begins_later_and_keeps_the_intended_time(parts: Scheduling) -> None:
    view = await parts.create(**HOURLY, jitter="30m")
    await parts.look()
    begin = parts.timer.times[view.schedule.schedule_id]
    assert utc("2027-03-01 13:00") < begin < utc("2027-03-01 13:30")
    parts.clock.time = begin - timedelta(seconds=1)
    await parts.look()
    assert await parts.became() == {}
    parts.clock.time = begin
    await parts.look()
    assert await parts.became() == {"01 13:00": "STARTED"}


async def test_the_stop_of_a_window_cancels_what_still_runs(parts: Scheduling) -> None:
    await parts.create(**NIGHTS)
    await at(parts, "01 22:00")
    await at(parts, "02 05:59")
    assert parts.rollouts.ended == []
    assert parts.timer.times["stop"] == utc("2027-03-02 06:00")
    await at(parts, "02 06:00")
    assert parts.rollouts.ended == [(parts.rollouts.adopted[0], ReasonCode.WINDOW_CLOSED)]
    await at(parts, "02 06:01")
    assert len(parts.rollouts.ended) == 1


async def test_the_stop_is_carried_out_when_the_schedule_is_gone(parts: Scheduling) -> None:
    await parts.create(**NIGHTS)
    await at(parts, "01 22:00")
    await parts.schedules.delete("nightly", version=1, actor="test")
    await at(parts, "02 06:00")
    assert [code for _, code in parts.rollouts.ended] == [ReasonCode.WINDOW_CLOSED]


async def test_a_window_that_closed_while_its_occurrence_waited_begins_nothing(parts: Scheduling) -> None:
    await parts.create(**NIGHTS, overlap="QUEUE")
    await at(parts, "01 22:00")
    # Its cancel takes more than a day: the agents are offline.
    parts.rollouts.end = _nothing  # type: ignore[method-assign]  # a cancel that is not confirmed
    await at(parts, "02 06:00")
    await at(parts, "02 22:00")
    await at(parts, "03 06:00")
    assert await parts.became() == {"01 22:00": "STARTED", "02 22:00": "OVERLAPPED"}
    assert "WINDOW_CLOSED" in (await parts.history())[-1].reason


async def _nothing(*_arguments: object, **_named: object) -> None:
    pass


async def test_a_rollout_that_cannot_begin_is_on_record_with_the_reason(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    parts.rollouts.refuse["tea"] = InvalidInputError("INVALID_ROLLOUT", "group `berlin` is empty")
    await at(parts, "01 13:00")
    failed = (await parts.history())[0]
    assert (failed.state, failed.reason) == ("FAILED", "INVALID_ROLLOUT: group `berlin` is empty")
    parts.rollouts.refuse.clear()
    await at(parts, "01 14:00")
    assert await parts.became() == {"01 13:00": "FAILED", "01 14:00": "STARTED"}


async def test_a_rollout_that_cannot_begin_just_now_is_tried_again(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    parts.rollouts.refuse["tea"] = UnavailableError("DATABASE_UNAVAILABLE", "the disk is full")
    await at(parts, "01 13:00")
    assert await parts.became() == {}
    parts.rollouts.refuse.clear()
    await at(parts, "01 13:00:05")
    assert await parts.became() == {"01 13:00": "STARTED"}


@pytest.mark.parametrize(
    "trouble", [UnavailableError("DATABASE_UNAVAILABLE", "the disk is full"), RuntimeError("a defect")]
)
async def test_one_schedule_that_cannot_begin_does_not_hold_up_the_others(
    parts: Scheduling, trouble: Exception
) -> None:
    await parts.create(**HOURLY)
    await parts.create(**HOURLY, name="other", rollout={"task": "coffee", "target": {"devices": ["phone-02"]}})
    parts.rollouts.refuse["tea"] = trouble
    await at(parts, "01 13:00")
    assert (await parts.became(), await parts.became("other")) == ({}, {"01 13:00": "STARTED"})


async def test_a_waiting_one_that_cannot_begin_makes_room(parts: Scheduling) -> None:
    await parts.create(**HOURLY, overlap="QUEUE")
    await at(parts, "01 13:00")
    await at(parts, "01 14:00")
    await finish(parts)
    parts.rollouts.refuse["tea"] = NotFoundError("TASK_NOT_FOUND", "no task `tea` is stored")
    await at(parts, "01 14:10")
    assert await parts.became() == {"01 13:00": "STARTED", "01 14:00": "FAILED"}


async def test_what_is_switched_off_begins_nothing(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    await parts.schedules.set_enabled("nightly", version=1, enabled=False, actor="test")
    await at(parts, "01 13:00")
    assert await parts.became() == {}
    await parts.schedules.set_enabled("nightly", version=2, enabled=True, actor="test")
    await at(parts, "01 13:10")
    # What passed meanwhile was not missed.
    assert await parts.became() == {}
    await at(parts, "01 14:00")
    assert await parts.became() == {"01 14:00": "STARTED"}


async def test_a_changed_document_counts_from_the_change_on(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    await parts.look()
    parts.clock.time = utc("2027-03-01 12:50")
    changed = document(when={"cron": "45 * * * *"}, timeZone="UTC")
    await parts.schedules.update("nightly", version=1, spec_json=changed, actor="test")
    await at(parts, "01 13:00")
    # Neither the old one's 13:00 nor the new one's 12:45.
    assert await parts.became() == {}
    await at(parts, "01 13:45")
    assert await parts.became() == {"01 13:45": "STARTED"}


async def test_the_runner_looks_when_it_is_woken_and_ends_its_timer(parts: Scheduling) -> None:
    await parts.create(**HOURLY)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(parts.schedules.run(), name="schedules")
        await until(lambda: parts.timer.running and "look" in parts.timer.times)
        parts.clock.time = utc("2027-03-01 13:00")
        parts.timer.wake("look")
        await until(lambda: bool(parts.rollouts.adopted))
        task.cancel()
    assert not parts.timer.running
