"""The virtual clock keeps the order that real time would have."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta

import pytest

from droidfleet_shared.clock import Deadline, SystemClock, Uptime, VirtualClock
from support.clock import HandClock


async def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *pauses: float) -> None:
        for pause in pauses:
            await clock.sleep(pause)
            woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("slow", 5.0, 5.0))
        group.create_task(sleeper("fast", 2.0, 2.0, 2.0))

    assert woken == [("fast", 2.0), ("fast", 4.0), ("slow", 5.0), ("fast", 6.0), ("slow", 10.0)]


async def test_a_cancelled_sleeper_does_not_hold_the_others() -> None:
    clock = VirtualClock()

    async with asyncio.TaskGroup() as group:
        first = group.create_task(clock.sleep(1.0))
        second = group.create_task(clock.sleep(2.0))
        await asyncio.sleep(0)
        first.cancel()
        await second

    assert clock.monotonic() == 2.0


def test_a_deadline_is_never_restarted_on_the_way_down() -> None:
    clock = VirtualClock()
    outer = clock.deadline(10.0)
    clock.advance(4.0)

    inner = outer.at_most(30.0)

    assert inner.remaining() == 6.0
    assert outer.at_most(1.0) == Deadline(clock, 5.0)


def test_a_passed_deadline_has_nothing_remaining() -> None:
    clock = VirtualClock()
    deadline = clock.deadline(1.0)
    clock.advance(2.0)

    assert deadline.passed
    assert deadline.remaining() == 0.0


def test_the_system_clock_gives_aware_utc_times() -> None:
    assert SystemClock().now().utcoffset() is not None


@pytest.mark.parametrize("ahead_s", [0.0, 86_400.0, -86_400.0])
async def test_time_since_what_another_process_wrote_is_true_whatever_the_wall_clock_says(ahead_s: float) -> None:
    clock = HandClock()
    at, uptime = clock.now(), clock.uptime()
    clock.sleep_machine(40)
    await clock.move(2)
    clock.ahead_s = ahead_s
    assert clock.since(at, uptime) == 42.0


@pytest.mark.parametrize("uptime", [None, Uptime("", 5.0), Uptime("an earlier start", 5.0)])
async def test_over_a_start_of_the_machine_only_the_wall_clock_connects(uptime: Uptime | None) -> None:
    clock = HandClock()
    assert clock.since(clock.now() - timedelta(seconds=7), uptime) == 7.0


def test_two_processes_agree_on_how_long_the_machine_runs() -> None:
    code = "from droidfleet_shared.clock import SystemClock; up = SystemClock().uptime(); print(up.boot, up.s)"
    before = SystemClock().uptime()
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    boot, seconds = said.split(" ")
    assert boot == before.boot
    assert before.s <= float(seconds) <= SystemClock().uptime().s
