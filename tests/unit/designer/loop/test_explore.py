"""One exploration from its brief to its end: what is written, what the model is told, and how it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from droidfleet_designer.conversation import Answer, Message, Picture, Request, ToolAnswer, Usage
from droidfleet_designer.draft.draft import DraftSettings
from droidfleet_designer.log import (
    ApprovalAnswered,
    ApprovalAsked,
    Ended,
    Ending,
    Problem,
    Proposed,
    Spoke,
    Told,
    ToolBegan,
)
from droidfleet_designer.loop.limits import Limits
from droidfleet_designer.model.port import ModelBusyError
from droidfleet_shared.errors import UnavailableError
from droidfleet_shared.protocol.codes import ValidationCode
from droidfleet_shared.protocol.issues import Issue
from support.clock import HandClock, settle
from support.explorations import ISSUE, TASK, WRONG, Trip
from support.memory_log import MemoryLog
from support.scripted_model import Saying, ScriptedModel, always, call, does, in_turn, on, says, wants

LOOK = does(call("screen"))
SUBMIT = does(call("submit_task", summary="Opens the tea.", task=TASK))
SUBMIT_WRONG = does(call("submit_task", summary="Opens the tea.", task=WRONG))
DELETE = on("Delete account", "tap")


def conversations(trip: Trip) -> list[Sequence[Message]]:
    assert isinstance(trip.model, ScriptedModel)
    return trip.model.heard_of


async def until_asked(trip: Trip) -> None:
    await until(lambda: any(isinstance(each, ApprovalAsked) for each in trip.log.kept))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await settle(1)


# What is written ------------------------------------------------------------------------------------------------------


async def test_an_exploration_that_works_is_written_down_in_order() -> None:
    trip = Trip(in_turn(LOOK, on("Green tea", "tap"), SUBMIT))

    end = await trip.run()

    assert end.ending is Ending.DRAFTED
    assert [each.kind for each in trip.log.kept] == [
        "began",
        *["spoke", "tool_began", "tool_ended"] * 2,
        "spoke",
        "tool_began",
        "proposed",
        "tool_ended",
        "ended",
    ]
    assert trip.scripted.done == ["CLICK Green tea"]
    assert set(trip.log.snapshots) == {"s0", "s1", "s2"}


async def test_a_call_is_written_before_it_is_carried_out() -> None:
    trip = Trip(in_turn(LOOK, on("Green tea", "tap"), SUBMIT))
    trip.scripted.hanging.add("step")
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(trip.run())
        await until(lambda: "step" in trip.scripted.asked)
        last = trip.log.kept[-1]
        running.cancel()

    assert isinstance(last, ToolBegan)
    assert last.name == "tap"


async def test_what_is_spent_is_added_up_by_the_prices() -> None:
    turn = SUBMIT(())
    assert not isinstance(turn, Exception)
    spent = turn.model_copy(update={"usage": Usage(input_tokens=1_000, output_tokens=100)})
    trip = Trip(in_turn(LOOK, always(spent)), limits=Limits(prices=(1.0, 10.0)))
    await trip.run()

    first, second = [each for each in trip.log.kept if isinstance(each, Spoke)]

    assert second.spent_tokens - first.spent_tokens == 1_100
    assert second.spent_money is not None
    assert first.spent_money is not None
    assert second.spent_money - first.spent_money == pytest.approx(0.002)


async def test_a_person_may_allow_less_than_the_server_and_not_more() -> None:
    less = Trip(SUBMIT, settings=DraftSettings(max_tokens=50_000))
    more = Trip(SUBMIT, settings=DraftSettings(max_tokens=5_000_000))
    await less.run()
    await more.run()

    began = [each for trip in (less, more) for each in trip.log.kept if each.kind == "began"]

    assert [each.max_tokens for each in began] == [50_000, Limits().max_tokens]


async def test_each_failure_of_the_model_is_told_with_when_it_is_tried_again() -> None:
    left = [ModelBusyError("too many requests", retry_after_s=20)] * 2

    def part(messages: Sequence[Message]) -> Saying:
        return left.pop() if left else SUBMIT(messages)

    trip = Trip(part)
    started = trip.clock.monotonic()
    await trip.run()

    problems = [each for each in trip.log.kept if isinstance(each, Problem)]
    assert [each.code for each in problems] == ["MODEL_BUSY"] * 2
    assert all((each.again_in_s or 0) >= 20 for each in problems)
    assert trip.clock.monotonic() - started >= 40


async def test_a_log_that_is_full_is_an_end() -> None:
    clock = HandClock()
    trip = Trip(LOOK, clock=clock, log=MemoryLog(clock, room=3))

    assert (await trip.run()).code == "EXPLORATION_FULL"
    assert trip.scripted.holder == ""


# What a person is asked -----------------------------------------------------------------------------------------------


async def test_what_a_person_allows_is_done_once() -> None:
    trip = Trip(in_turn(LOOK, DELETE, SUBMIT), allow=True)

    await trip.run()

    assert trip.scripted.done == ["CLICK Delete account"]
    [asked] = [each for each in trip.log.kept if isinstance(each, ApprovalAsked)]
    assert asked.name == "tap"
    assert "delete" in asked.why


@pytest.mark.parametrize("allow", [False, None], ids=["refused", "not answered"])
async def test_what_no_person_allows_is_not_done(allow: bool | None) -> None:
    trip = Trip(in_turn(LOOK, DELETE, SUBMIT), allow=allow)

    await trip.run()

    assert trip.scripted.done == []
    assert ("tap", "needs_approval", "NOT_ALLOWED") in trip.outcomes
    [answered] = [each for each in trip.log.kept if isinstance(each, ApprovalAnswered)]
    assert not answered.allowed


async def test_a_person_has_ten_minutes_to_answer() -> None:
    clock = HandClock()
    trip = Trip(in_turn(LOOK, DELETE, SUBMIT), clock=clock, allow=None)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(trip.run())
        await until_asked(trip)
        for _ in range(59):
            await clock.move(10.0, turns=5)
        assert not any(isinstance(each, ApprovalAnswered) for each in trip.log.kept)
        await clock.move(10.0)
        assert any(isinstance(each, ApprovalAnswered) for each in trip.log.kept)
        async with asyncio.timeout(5):
            await running


# What the model is told -----------------------------------------------------------------------------------------------


async def test_pictures_come_after_all_the_answers_of_a_turn() -> None:
    trip = Trip(in_turn(does(call("screen", picture=True), call("list_devices")), SUBMIT), sees=True)
    await trip.run()

    told = conversations(trip)[1]

    assert [each.kind for each in told[2:]] == ["answer", "tool_answer", "tool_answer", "picture"]


async def test_a_model_that_cannot_see_is_shown_no_picture_and_told_so() -> None:
    trip = Trip(in_turn(does(call("screen", picture=True)), SUBMIT), sees=False)
    await trip.run()

    told = conversations(trip)[1]

    assert not any(isinstance(each, Picture) for each in told)
    assert isinstance(told[-1], ToolAnswer)
    assert "cannot be shown pictures" in told[-1].text
    assert trip.log.pictures, "people may look at it"


async def test_only_the_picture_of_the_newest_screen_is_shown() -> None:
    picture = does(call("screen", picture=True))
    trip = Trip(in_turn(picture, on("Green tea", "tap"), picture, SUBMIT), sees=True)
    await trip.run()

    assert [sum(isinstance(each, Picture) for each in told) for told in conversations(trip)] == [0, 1, 0, 1]


async def test_calls_after_one_that_did_not_work_are_not_carried_out() -> None:
    trip = Trip(in_turn(does(call("open_app", package="com.example.nothing"), call("back")), SUBMIT))

    await trip.run()

    assert trip.outcomes[:2] == [("open_app", "failed", "ACTION_FAILED"), ("back", "retry", "NOT_CARRIED_OUT")]
    assert trip.scripted.done == []


async def test_whole_calls_before_a_cut_one_are_carried_out() -> None:
    trip = Trip(in_turn(lambda _: wants(call("back"), ("tap", '{"scr')), SUBMIT))

    await trip.run()

    assert trip.outcomes[:2] == [("back", "result", ""), ("tap", "retry", "CALL_CUT")]


async def test_a_wrong_task_comes_back_with_all_that_is_wrong_and_the_tries_that_are_left() -> None:
    trip = Trip(in_turn(SUBMIT_WRONG, SUBMIT))
    await trip.run()

    answer = conversations(trip)[1][-1]

    assert isinstance(answer, ToolAnswer)
    assert ISSUE.message in answer.text
    assert ISSUE.hint in answer.text
    assert answer.text.rstrip(".").endswith("3")


async def test_what_the_fleet_says_against_a_draft_comes_back_too() -> None:
    trip = Trip(SUBMIT, issues=[Issue("/target/group", ValidationCode.BAD_VALUE, "There is no such group.", "")])

    end = await trip.run()

    assert end.code == "NO_ACCEPTABLE_DRAFT"
    assert not any(isinstance(each, Proposed) for each in trip.log.kept)


async def test_the_second_time_of_the_same_is_told_and_the_third_ends() -> None:
    trip = Trip(in_turn(LOOK, does(call("back"))))

    end = await trip.run()

    assert [each.code for each in trip.log.kept if isinstance(each, Told)] == ["STAGNATION"]
    assert end.code == "STAGNATION"
    assert trip.outcomes == [("screen", "result", ""), *[("back", "result", "")] * 3]


async def test_a_model_that_does_something_else_after_it_was_told_goes_on() -> None:
    trip = Trip(in_turn(LOOK, LOOK, on("Green tea", "tap"), SUBMIT))

    assert (await trip.run()).ending is Ending.DRAFTED


async def test_a_model_is_told_once_when_little_is_left() -> None:
    trip = Trip(in_turn(*[does(call("find_text", text=f"{place}")) for place in range(10)], SUBMIT),
                limits=Limits(max_turns=10))  # fmt: skip

    end = await trip.run()

    assert end.code == "TURN_LIMIT"
    assert [each.code for each in trip.log.kept if isinstance(each, Told)] == ["LAST_TURNS"]


async def test_an_empty_answer_is_not_said_again() -> None:
    said = [says(""), SUBMIT(())]
    trip = Trip(lambda _: said.pop(0))
    await trip.run()

    told = conversations(trip)[1]

    assert not any(isinstance(each, Answer) for each in told)
    assert isinstance(told[-1], Request)


# The phone ------------------------------------------------------------------------------------------------------------


async def test_a_phone_that_is_busy_is_an_end_that_says_who_has_it() -> None:
    trip = Trip(SUBMIT)
    trip.scripted.taken_by("somebody else")

    end = await trip.run()

    assert (end.ending, end.code) == (Ending.FAILED, "DEVICE_BUSY")
    assert "somebody else" in end.message


async def test_a_lease_that_is_lost_is_an_end() -> None:
    trip = Trip(in_turn(LOOK, does(call("back")), SUBMIT))
    trip.scripted.faults["step"].append(UnavailableError("LEASE_LOST", "taken away."))

    assert (await trip.run()).code == "LEASE_LOST"


async def test_a_phone_that_does_not_answer_is_an_end_after_some_calls() -> None:
    trip = Trip(lambda messages: does(call("find_text", text=str(len(messages))))(messages))
    trip.scripted.faults["look"].extend([UnavailableError("DEVICE_OFFLINE", "it is gone.")] * 9)
    trip.log.snapshots["s0"] = trip.scripted.pages["shop"]

    assert (await trip.run()).code == "DEVICE_OFFLINE"
    assert len(conversations(trip)) == 3


async def test_the_phone_is_given_back_before_the_end_is_written() -> None:
    holders: list[str] = []

    class Log(MemoryLog):
        async def append(self, entry: object) -> int:
            if isinstance(entry, Ended):
                holders.append(trip.scripted.holder)
            return await super().append(entry)  # type: ignore[arg-type]  # passed on as it came

    clock = HandClock()
    trip = Trip(SUBMIT, clock=clock, log=Log(clock))
    await trip.run()

    assert holders == [""]


# Stopping -------------------------------------------------------------------------------------------------------------


async def test_a_person_stops_it_and_the_phone_is_given_back() -> None:
    trip = Trip(in_turn(LOOK, DELETE, SUBMIT), clock=HandClock(), allow=None)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(trip.run())
        await until_asked(trip)
        trip.exploration.stop()
        trip.exploration.stop()

    assert running.result().ending is Ending.STOPPED
    assert trip.log.kept[-1] == running.result()
    assert trip.scripted.holder == ""


async def test_one_that_is_stopped_before_it_runs_does_nothing() -> None:
    trip = Trip(SUBMIT)
    trip.exploration.stop()

    assert (await trip.run()).ending is Ending.STOPPED
    assert trip.scripted.asked == []


async def test_a_shutdown_gives_the_phone_back_and_writes_no_end() -> None:
    trip = Trip(in_turn(LOOK, DELETE, SUBMIT), clock=HandClock(), allow=None)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(trip.run())
        await until_asked(trip)
        running.cancel()

    assert running.cancelled()
    assert trip.scripted.holder == ""
    assert not any(isinstance(each, Ended) for each in trip.log.kept)
