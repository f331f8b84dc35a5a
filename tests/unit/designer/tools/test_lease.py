"""The phone is taken, kept and given back as it was found, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from droidfleet_designer.tools import phone as phone_module
from droidfleet_designer.tools.phone import RENEW_S, TTL_S
from droidfleet_designer.tools.tool import OutcomeKind
from droidfleet_shared.errors import ConflictError, DroidfleetError, UnavailableError
from droidfleet_shared.protocol.codes import StepCode
from support.clock import HandClock, settle
from support.waiting import until
from support.workshops import HOME, Bench


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def bench(clock: HandClock) -> AsyncIterator[Bench]:
    """One whose phone is not taken yet and shows the launcher."""
    bench = Bench(clock=clock, start="home")
    yield bench
    bench.phones.hanging.clear()
    await bench.workshop.leave()


# Taking and keeping ---------------------------------------------------------------------------------------------------


async def test_a_busy_phone_is_refused_with_who_has_it(bench: Bench) -> None:
    bench.phones.taken_by("Ada")

    with pytest.raises(ConflictError, match=r"DEVICE_BUSY: .* in use by Ada"):
        await bench.workshop.enter()


async def test_the_lease_is_kept_for_as_long_as_the_exploration_takes(bench: Bench, clock: HandClock) -> None:
    await bench.workshop.enter()

    await clock.move(10 * TTL_S)

    assert bench.phones.holder == "the designer"


async def test_a_renewal_that_did_not_get_through_is_tried_again(bench: Bench, clock: HandClock) -> None:
    await bench.workshop.enter()
    bench.phones.faults["renew"].append(UnavailableError("DEVICE_OFFLINE", "no answer"))

    await clock.move(2 * TTL_S)

    assert bench.phones.holder == "the designer"


async def test_a_phone_that_cannot_be_seen_is_not_kept(bench: Bench) -> None:
    bench.phones.faults["look"].append(UnavailableError("SCREEN_UNREADABLE", "it is black"))

    with pytest.raises(UnavailableError, match="SCREEN_UNREADABLE"):
        await bench.workshop.enter()

    assert bench.phones.holder == ""


async def test_a_lost_lease_fails_the_call_and_does_nothing(bench: Bench) -> None:
    await bench.workshop.enter()
    bench.phones.taken_by("Ada")

    outcome = await bench.call("back")

    assert (outcome.kind, outcome.code, bench.phones.done) == (OutcomeKind.FAILED, "LEASE_LOST", [])


async def test_a_lease_that_a_renewal_found_lost_is_not_asked_for_again(bench: Bench, clock: HandClock) -> None:
    await bench.workshop.enter()
    bench.phones.taken_by("Ada")
    await clock.move(RENEW_S)
    asked = len(bench.phones.asked)

    outcome = await bench.call("back")

    assert (outcome.code, len(bench.phones.asked)) == ("LEASE_LOST", asked)


async def test_a_phone_that_is_not_taken_is_not_worked(bench: Bench) -> None:
    assert (await bench.call("back")).code == "LEASE_LOST"


# Waits that end -------------------------------------------------------------------------------------------------------


async def test_a_step_that_is_never_answered_may_have_happened(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phone_module, "STEP_S", 0.01)
    await bench.workshop.enter()
    bench.phones.hanging.add("step")

    assert (await bench.call("back")).kind is OutcomeKind.INTERRUPTED


async def test_a_look_that_is_never_answered_fails(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phone_module, "READ_S", 0.01)
    await bench.workshop.enter()
    bench.phones.hanging.add("look")

    assert (await bench.call("screen")).code == "DEVICE_OFFLINE"


# Giving back ----------------------------------------------------------------------------------------------------------


async def test_the_app_that_was_in_front_is_in_front_again(bench: Bench) -> None:
    bench.phones.now = "chat"
    await bench.workshop.enter()
    await bench.call("open_app", package="com.example.shop")

    await bench.workshop.leave()

    assert (bench.phones.now, bench.phones.holder) == ("chat", "")


async def test_nothing_is_done_to_a_phone_that_shows_what_it_showed(bench: Bench) -> None:
    await bench.workshop.enter()

    await bench.workshop.leave()

    assert (bench.phones.steps, bench.phones.holder) == ([], "")


async def test_a_launcher_that_cannot_be_opened_is_reached_by_home(bench: Bench) -> None:
    await bench.workshop.enter()
    await bench.call("open_app", package="com.example.shop")

    await bench.workshop.leave()

    assert bench.phones.done[-1] == "KEY HOME"


async def test_what_was_in_front_is_remembered_over_a_restart(clock: HandClock) -> None:
    bench = Bench(clock=clock, start="shop", snapshots={"s0": HOME})
    await bench.workshop.enter()

    await bench.workshop.leave()

    assert bench.phones.done == ["KEY HOME"]


async def test_a_phone_that_others_have_by_now_is_left_alone(bench: Bench) -> None:
    await bench.workshop.enter()
    await bench.call("open_app", package="com.example.shop")
    bench.phones.taken_by("Ada")
    await bench.call("back")

    await bench.workshop.leave()

    assert (bench.phones.done, bench.phones.holder) == (["OPEN com.example.shop"], "Ada")


@pytest.mark.parametrize(
    "fault",
    [UnavailableError("DEVICE_OFFLINE", "no answer"), UnavailableError("OUTCOME_UNKNOWN", "no answer")],
    ids=["offline", "unknown"],
)
async def test_a_phone_that_cannot_be_put_back_is_given_back_anyhow(bench: Bench, fault: DroidfleetError) -> None:
    await bench.workshop.enter()
    await bench.call("open_app", package="com.example.shop")
    bench.phones.faults["step"].append(fault)

    await bench.workshop.leave()

    assert bench.phones.holder == ""


async def test_putting_back_takes_no_longer_than_its_bound(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phone_module, "LEAVE_S", 0.01)
    await bench.workshop.enter()
    bench.phones.hanging.add("look")

    await bench.workshop.leave()

    assert bench.phones.holder == ""


async def test_a_lease_that_cannot_be_given_back_is_no_error(bench: Bench) -> None:
    await bench.workshop.enter()
    bench.phones.faults["close"].append(UnavailableError("DEVICE_OFFLINE", "no answer"))

    await bench.workshop.leave()

    assert bench.phones.asked[-1] == "close"


async def test_leaving_twice_gives_back_once(bench: Bench) -> None:
    await bench.workshop.enter()

    await bench.workshop.leave()
    await bench.workshop.leave()

    assert bench.phones.asked.count("close") == 1


async def test_nothing_is_renewed_after_leaving(bench: Bench, clock: HandClock) -> None:
    await bench.workshop.enter()
    await bench.workshop.leave()

    await clock.move(TTL_S)

    assert "renew" not in bench.phones.asked


async def explore(bench: Bench) -> None:
    """As a loop does: whatever happens, the phone is left."""
    await bench.workshop.enter()
    try:
        await bench.call("open_app", package="com.example.shop")
        await asyncio.Event().wait()
    finally:
        await bench.workshop.leave()


async def test_a_cancelled_exploration_gives_the_phone_back_as_it_was(bench: Bench) -> None:
    async with asyncio.TaskGroup() as tasks:
        exploring = tasks.create_task(explore(bench))
        await until(lambda: "OPEN com.example.shop" in bench.phones.done)
        exploring.cancel()

    assert (bench.phones.done[-1], bench.phones.holder) == ("KEY HOME", "")


async def test_a_second_cancellation_does_not_keep_the_phone_from_being_given_back(bench: Bench) -> None:
    go_on = asyncio.Event()
    closing = bench.phones.close

    async def slowly(device: str, session_id: str) -> None:
        await go_on.wait()
        await closing(device, session_id)

    bench.phones.close = slowly  # type: ignore[method-assign]  # a phone that takes its time
    async with asyncio.TaskGroup() as tasks:
        exploring = tasks.create_task(explore(bench))
        await until(lambda: "OPEN com.example.shop" in bench.phones.done)
        exploring.cancel()
        await until(lambda: "KEY HOME" in bench.phones.done)
        exploring.cancel()
        await settle()
        go_on.set()

    assert exploring.cancelled()
    assert bench.phones.holder == ""


async def test_a_code_that_is_no_loss_is_not_taken_for_one(bench: Bench) -> None:
    await bench.workshop.enter()
    bench.phones.results.append((StepCode.DEVICE_UNAVAILABLE, False))
    await bench.call("back")

    assert (await bench.call("back")).kind is OutcomeKind.RESULT
