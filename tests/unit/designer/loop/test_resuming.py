"""Whatever entry of its log a process was killed at, another one goes on to an end, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from droidfleet_designer.log import Ended, Ending, Entry, OutcomeKind, Resumed, Spoke, ToolBegan, ToolEnded
from droidfleet_designer.loop.deciding import Write, next_move
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.loop.state import State, after, state_of
from droidfleet_designer.tools.phone import TTL_S
from droidfleet_shared.clock import VirtualClock
from support.explorations import TASK, WRONG, Trip
from support.memory_log import KillingLog, MemoryLog
from support.mortal_phones import MortalPhones
from support.scripted_model import call, does, in_turn, on, says, wants

PART = in_turn(
    does(call("screen", picture=True)),
    on("Green tea", "tap"),
    does(call("back"), call("list_devices")),
    on("Delete account", "tap"),
    does(call("open_app", package="com.example.nothing"), call("back")),
    lambda _: wants(("tap", '{"scre')),
    lambda _: says("The task is ready."),
    does(call("submit_task", summary="Opens the tea.", task=WRONG)),
    does(call("submit_task", summary="Opens the tea.", task=TASK)),
)
"""With everything that an entry can be of: a question to a person, a failure, a cut call, no call, a wrong task."""


async def whole_log() -> list[Entry]:
    trip = Trip(PART, sees=True)
    end = await trip.run()
    assert end.ending is Ending.DRAFTED, end
    return trip.log.kept


ENTRIES = 33
"""Of the whole log; there is a test that it is so."""


async def test_the_log_that_is_cut_holds_every_kind_of_entry() -> None:
    kept = await whole_log()

    assert len(kept) == ENTRIES
    assert {each.kind for each in kept} >= {
        "began",
        "spoke",
        "told",
        "tool_began",
        "tool_ended",
        "approval_asked",
        "approval_answered",
        "proposed",
        "ended",
    }


@pytest.mark.parametrize("written", [False, True], ids=["before it is written", "after it is written"])
@pytest.mark.parametrize("last", range(1, ENTRIES + 1))
async def test_a_process_that_is_killed_at_any_entry_is_gone_on_with(last: int, written: bool) -> None:
    clock = VirtualClock()
    ran: list[str] = []
    earlier = await killed(clock, ran, last=last, written=written)
    log = MemoryLog(clock)
    log.kept = list(earlier.log.kept)
    log.snapshots = dict(earlier.log.snapshots)
    log.pictures = dict(earlier.log.pictures)
    later = Trip(PART, sees=True, clock=clock, log=log, phones=MortalPhones(earlier.scripted, ran))

    end = await later.run()

    assert end.ending is Ending.DRAFTED, end
    assert [each for each in log.kept if isinstance(each, Ended)] == [end] == log.kept[-1:]
    clock.advance(TTL_S)
    assert earlier.scripted.holder == "", "given back, or the lease is over"
    assert_once(log.kept, ran)


async def killed(clock: VirtualClock, ran: list[str], *, last: int, written: bool) -> Trip:
    """An exploration whose process was killed there: nothing that it does afterwards reaches its log or the phone."""
    log = KillingLog(clock, last=last, written=written)
    trip = Trip(PART, sees=True, clock=clock, log=log)
    phones = MortalPhones(trip.scripted, ran)
    trip = Trip(PART, sees=True, clock=clock, log=log, phones=phones, scripted=trip.scripted)
    running = asyncio.get_running_loop().create_task(trip.run())
    async with asyncio.timeout(10):
        await log.killed.wait()
    phones.dead = True
    running.cancel()
    await asyncio.wait({running})
    return trip


def assert_once(entries: list[Entry], ran: list[str]) -> None:
    """Each call began and ended once at most, and each step on the phone is that of one call, run once."""
    began = [each for each in entries if isinstance(each, ToolBegan)]
    for kind in (ToolBegan, ToolEnded):
        ids = Counter(each.call_id for each in entries if isinstance(each, kind))
        assert set(ids.values()) <= {1}, ids
    of_calls = {each.request_id for each in began}
    assert set(Counter(ran).values()) <= {1}
    assert len([each for each in ran if each not in of_calls]) <= 4, "what is no call's restores the app in front"


async def test_a_call_in_which_the_process_ended_may_have_happened() -> None:
    kept = await whole_log()
    place = next(place for place, each in enumerate(kept) if isinstance(each, ToolBegan) and each.name == "tap")

    move = next_move(state_of([*kept[: place + 1], Resumed()]), limits=Limits())

    assert isinstance(move, Write)
    assert isinstance(move.entry, ToolEnded)
    assert (move.entry.outcome, move.entry.code) == (OutcomeKind.INTERRUPTED, "RESTARTED")


async def test_a_call_that_a_person_was_still_asked_about_did_not_happen() -> None:
    kept = await whole_log()
    place = next(place for place, each in enumerate(kept) if each.kind == "approval_asked")
    state = state_of([*kept[: place + 1], Resumed()])

    closing = next_move(state, limits=Limits())
    assert isinstance(closing, Write)
    assert closing.entry.kind == "approval_answered"
    assert not closing.entry.allowed
    ending = next_move(after(state, closing.entry), limits=Limits())
    assert isinstance(ending, Write)
    assert isinstance(ending.entry, ToolEnded)
    assert ending.entry.outcome is OutcomeKind.RETRY


async def test_calls_that_were_not_begun_before_a_restart_are_not_carried_out() -> None:
    kept = await whole_log()
    place = next(place for place, each in enumerate(kept) if isinstance(each, Spoke))

    move = next_move(state_of([*kept[: place + 1], Resumed()]), limits=Limits())

    assert isinstance(move, Write)
    assert isinstance(move.entry, ToolEnded)
    assert move.entry.code == "RESTARTED"


async def test_an_exploration_that_ended_is_not_gone_on_with() -> None:
    trip = Trip(PART)
    end = await trip.run()
    count = len(trip.log.kept)

    assert await Trip(PART, log=trip.log, clock=trip.clock).run() == end
    assert len(trip.log.kept) == count


async def test_an_exploration_that_is_restarted_again_and_again_ends() -> None:
    trip = Trip(PART)
    await trip.run()
    trip.log.kept = [trip.log.kept[0], *[Resumed()] * 20]

    end = await Trip(PART, log=trip.log, clock=trip.clock).run()

    assert (end.ending, end.code) == (Ending.FAILED, "RESUMED_TOO_OFTEN")


async def test_the_calls_of_the_process_before_count() -> None:
    state = state_of(await whole_log())

    assert state.counts == {
        "screen": 1,
        "tap": 2,
        "back": 1,
        "list_devices": 1,
        "open_app": 1,
        "submit_task": 2,
    }


async def test_a_state_is_the_same_however_its_log_was_read() -> None:
    kept = await whole_log()
    state = State()
    for place, entry in enumerate(kept, 1):
        state = after(state, entry)
        assert state == state_of(kept[:place])
