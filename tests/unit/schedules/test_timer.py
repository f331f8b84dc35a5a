"""The timer wakes on the event loop: each key once, at its time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from droidfleet_controller.schedules.timer import SystemTimer, Timer
from support.waiting import until

SOON = timedelta(milliseconds=50)
LATER = timedelta(hours=1)


@pytest.fixture
async def timer() -> AsyncIterator[Timer]:
    made = SystemTimer()
    yield made
    made.stop()


def now() -> datetime:
    return datetime.now(UTC)


async def test_it_wakes_once_at_the_time(timer: Timer) -> None:
    woken: list[tuple[str, datetime]] = []
    timer.start(lambda key: woken.append((key, now())))
    due = now() + SOON
    timer.set("a", due)
    await until(lambda: woken)
    timer.set("b", now())
    await until(lambda: len(woken) == 2)
    assert [key for key, _ in woken] == ["a", "b"]
    assert woken[0][1] >= due


async def test_what_has_passed_wakes_at_once(timer: Timer) -> None:
    woken: list[str] = []
    timer.set("a", now() - LATER)
    timer.start(woken.append)
    await until(lambda: woken == ["a"])


async def test_setting_again_moves_and_clearing_ends(timer: Timer) -> None:
    woken: list[str] = []
    timer.start(woken.append)
    timer.set("moved", now() + LATER)
    timer.set("moved", now() + SOON)
    timer.set("away", now() + SOON)
    timer.set("away", now() + LATER)
    timer.set("cleared", now() + SOON)
    timer.clear("cleared")
    timer.clear("unknown")
    await until(lambda: woken)
    timer.set("last", now() + SOON)
    await until(lambda: woken[-1] == "last")
    assert woken == ["moved", "last"]
