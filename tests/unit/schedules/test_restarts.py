"""One occurrence, one rollout: a controller that dies at any point, and two controllers on one database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from shutil import copy
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from droidfleet_controller.rollouts.states import ReasonCode
from droidfleet_controller.schedules.schedule import OccurrenceState
from unit.schedules.documents import utc
from unit.schedules.scheduling import Scheduling, WallClock, scheduling

T = TypeVar("T")
HOURLY = {"when": {"cron": "0 * * * *"}, "timeZone": "UTC"}
MOST_POINTS = 60
"""More than a look has points at which it may die."""


class Killed(BaseException):
    """The process is gone."""


class Fate:
    """Kills at the point with this number; before and after everything that is waited for there is one."""

    def __init__(self, lives: int) -> None:
        self.lives = lives

    def point(self) -> None:
        if self.lives == 0:
            raise Killed
        self.lives -= 1


def doom(parts: Scheduling, fate: Fate) -> None:
    """Lets the parts meet their fate at the database and at the rollout service."""
    run, prepare, end = parts.database.run, parts.rollouts.prepare, parts.rollouts.end

    async def mortal_run(work: Callable[[Connection], T], *, after: Callable[[T], None] | None = None) -> T:
        fate.point()
        done = await run(work)
        fate.point()  # committed, and nobody is told any more
        if after is not None:
            after(done)
        return done

    async def mortal_prepare(*arguments: object, **named: object) -> object:
        fate.point()
        return await prepare(*arguments, **named)  # type: ignore[arg-type]  # as they came

    async def mortal_end(*arguments: object, **named: object) -> None:
        fate.point()
        await end(*arguments, **named)  # type: ignore[arg-type]  # as they came
        fate.point()

    parts.database.run = mortal_run  # type: ignore[method-assign]  # to be killed
    parts.rollouts.prepare = mortal_prepare  # type: ignore[method-assign,assignment]  # to be killed
    parts.rollouts.end = mortal_end  # type: ignore[method-assign]  # to be killed


async def check_once_each(parts: Scheduling, expected: dict[str, str]) -> None:
    """Every occurrence is decided once, as expected; every one that began has one rollout, and no other has one."""
    assert await parts.became() == expected
    history = await parts.history()
    began = [each.intended_at for each in history if each.state is OccurrenceState.STARTED]
    assert sorted(at for _, at in await parts.stored_rollouts() if at is not None) == began
    assert all(bool(each.rollout_id) == (each.state is OccurrenceState.STARTED) for each in history)


async def survive(file: Path, times: list[datetime], lives: int, **fields: object) -> bool:
    """A schedule is made, a controller looks at each of the times and dies at one point, and another takes over.
    Returns whether it died."""
    clock = WallClock()
    async with scheduling(file, clock=clock, is_new=False) as parts:
        await parts.create(**{**HOURLY, **fields})
        doom(parts, Fate(lives))
        died = False
        try:
            for time in times:
                clock.time = time
                await parts.look()
        except Killed:
            died = True
    async with scheduling(file, clock=clock, is_new=False) as parts:
        for time in [each for each in times if each >= clock.time]:
            clock.time = time
            await parts.look()
            await parts.look()
    return died


SCENARIOS: dict[str, tuple[dict[str, object], list[str], dict[str, str]]] = {
    "on time": ({}, ["01 13:00"], {"01 13:00": "STARTED"}),
    "overlap": ({}, ["01 13:00", "01 14:00"], {"01 13:00": "STARTED", "01 14:00": "OVERLAPPED"}),
    "replaced": (
        {"overlap": "CANCEL_RUNNING"},
        ["01 13:00", "01 14:00"],
        {"01 13:00": "STARTED", "01 14:00": "STARTED"},
    ),
    "queued": ({"overlap": "QUEUE"}, ["01 13:00", "01 14:00"], {"01 13:00": "STARTED", "01 14:00": "QUEUED"}),
    "missed": (
        {"misfire": "ALL", "catchUpLimit": 2, "overlap": "ALLOW"},
        ["01 15:30"],
        {"01 13:00": "MISSED", "01 14:00": "STARTED", "01 15:00": "STARTED"},
    ),
    "window": (
        {"when": {"window": {"start": "0 13 * * *", "stop": "30 13 * * *"}}},
        ["01 13:00", "01 13:30"],
        {"01 13:00": "STARTED"},
    ),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_controller_may_die_anywhere(scenario: str, tmp_path: Path) -> None:
    fields, times, expected = SCENARIOS[scenario]
    async with scheduling(tmp_path / "new.db"):
        pass
    for lives in range(MOST_POINTS):
        file = tmp_path / f"{lives}.db"
        copy(tmp_path / "new.db", file)
        died = await survive(file, [utc(f"2027-03-{each}") for each in times], lives, **fields)
        async with scheduling(file, is_new=False) as parts:
            await check_once_each(parts, expected)
            assert (await parts.schedules.get("nightly")).last is not None
            if scenario == "window":
                assert (await parts.history())[0].stop_at is None
        if not died:
            return
    pytest.fail("it dies however late")


async def test_a_stop_that_came_while_the_controller_was_down_is_carried_out(tmp_path: Path) -> None:
    fields = {"when": {"window": {"start": "0 13 * * *", "stop": "30 13 * * *"}}, "timeZone": "UTC"}
    clock = WallClock(utc("2027-03-01 12:00"))
    async with scheduling(tmp_path / "fleet.db", clock=clock) as before:
        await before.create(**fields)
        clock.time = utc("2027-03-01 13:00")
        await before.look()
        rollout_id = before.rollouts.adopted[0]
    async with scheduling(tmp_path / "fleet.db", clock=clock) as after:
        clock.time = utc("2027-03-01 18:00")
        await after.look()
        assert after.rollouts.ended == [(rollout_id, ReasonCode.WINDOW_CLOSED)]


async def test_two_controllers_begin_each_occurrence_once(tmp_path: Path) -> None:
    clock = WallClock()
    async with (
        scheduling(tmp_path / "fleet.db", clock=clock) as one,
        scheduling(tmp_path / "fleet.db", clock=clock) as other,
    ):
        for number in range(4):
            await one.create(**HOURLY, name=f"every-{number}", overlap="ALLOW")
        for hour in range(1, 7):
            clock.move(hours=1)
            await asyncio.gather(*(each.look() for each in (one, other) for _ in range(2)))
            stored = Counter(await one.stored_rollouts())
            assert (len(stored), set(stored.values())) == (4 * hour, {1})
        assert one.rollouts.adopted != []
        assert other.rollouts.adopted != []
        assert len(one.rollouts.adopted) + len(other.rollouts.adopted) == 4 * 6
