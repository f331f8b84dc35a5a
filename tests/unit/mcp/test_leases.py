"""Leases of other AI clients: one owner each, one call after the other, given back whatever happens."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from droidfleet_controller.mcp import leases as module
from droidfleet_controller.mcp.leases import Leases
from droidfleet_designer.tools.tool import OutcomeKind
from droidfleet_designer.tools.workshop import Workshop
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.errors import DroidfleetError
from droidfleet_shared.screen.snapshot import Snapshot
from support.designer_phones import DEVICE, ScriptedPhones
from support.waiting import until
from support.workshops import APPS, MOVES, PAGES, WORDS


@asynccontextmanager
async def held(phones: ScriptedPhones) -> AsyncIterator[Leases]:
    numbers = itertools.count(1)
    leases = Leases(
        phones=phones, holder="a test", clock=SystemClock(), words=WORDS, new_id=lambda: f"l-{next(numbers)}"
    )
    async with asyncio.TaskGroup() as group:
        owner = group.create_task(leases.run())
        await asyncio.sleep(0)
        try:
            yield leases
        finally:
            owner.cancel()


def shop() -> ScriptedPhones:
    phones = ScriptedPhones(PAGES, clock=SystemClock(), moves=MOVES, apps=APPS)
    phones.now = "shop"
    return phones


async def test_a_phone_is_worked_under_its_lease_and_given_back() -> None:
    phones = shop()
    async with held(phones) as leases:
        lease = await leases.open(DEVICE)
        seen = await leases.call(lease, "screen", {})
        assert "Green tea" in seen.text
        assert phones.holder == "a test"
        await leases.close(lease)
        await leases.close(lease)
        assert phones.holder == ""
        with pytest.raises(DroidfleetError, match="LEASE_LOST"):
            await leases.call(lease, "screen", {})


async def test_what_cannot_be_undone_is_withheld() -> None:
    async with held(shop()) as leases:
        lease = await leases.open(DEVICE)
        await leases.call(lease, "screen", {})
        outcome = await leases.call(lease, "tap", {"screen": 1, "element": 3})
        assert outcome.kind is OutcomeKind.NEEDS_APPROVAL


async def test_there_is_nothing_to_submit_to() -> None:
    async with held(shop()) as leases:
        outcome = await leases.call(await leases.open(DEVICE), "submit_task", {"summary": "x", "task": {}})
        assert outcome.code == "UNKNOWN_TOOL"


async def test_a_phone_whose_holder_says_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IDLE_S", 0.01)
    phones = shop()
    async with held(phones) as leases:
        await leases.open(DEVICE)
        await until(lambda: not leases.holds(DEVICE))
        assert phones.holder == ""


async def test_a_phone_that_somebody_has_is_refused_and_nothing_is_held() -> None:
    phones = shop()
    async with held(phones) as leases:
        await phones.open(DEVICE, holder="anna", ttl_s=30)
        with pytest.raises(DroidfleetError, match="anna"):
            await leases.open(DEVICE)
        assert not leases.holds(DEVICE)


async def test_only_so_many_phones_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LEASES", 0)
    async with held(shop()) as leases:
        with pytest.raises(DroidfleetError, match="TOO_MANY_LEASES"):
            await leases.open(DEVICE)


async def test_at_the_end_every_phone_is_given_back() -> None:
    phones = shop()
    async with held(phones) as leases:
        await leases.open(DEVICE)
        assert phones.holder == "a test"
    assert phones.holder == ""


async def test_calls_on_one_phone_are_done_one_after_the_other_and_only_so_many_wait() -> None:
    async with held(shop()) as leases:
        lease = await leases.open(DEVICE)
        looks = [leases.call(lease, "screen", {}) for _ in range(module.MAX_WAITING + 2)]
        answers = await asyncio.gather(*looks, return_exceptions=True)
        seen = [each.text.partition(":")[0] for each in answers if not isinstance(each, BaseException)]
        assert seen == [f"Screen {number}" for number in range(1, module.MAX_WAITING + 1)]
        assert all("TOO_MANY_CALLS" in str(each) for each in answers[module.MAX_WAITING :])


async def test_a_call_that_its_client_gave_up_holds_up_nobody() -> None:
    phones = shop()
    async with held(phones) as leases:
        lease = await leases.open(DEVICE)
        async with asyncio.TaskGroup() as group:
            call = group.create_task(leases.call(lease, "wait", {"seconds": 0.5}))
            await asyncio.sleep(0)
            call.cancel()
        assert "Green tea" in (await leases.call(lease, "screen", {})).text


async def test_a_lease_that_its_client_gave_up_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    phones = shop()
    looked, whole = asyncio.Event(), phones.look

    async def slow(device: str) -> Snapshot:
        await looked.wait()
        return await whole(device)

    monkeypatch.setattr(phones, "look", slow)
    async with held(phones) as leases:
        async with asyncio.TaskGroup() as group:
            opening = group.create_task(leases.open(DEVICE))
            await until(lambda: phones.holder)
            opening.cancel()
        looked.set()
        await until(lambda: not leases.holds(DEVICE))
        assert phones.holder == ""


async def test_a_defect_ends_one_lease_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    phones = shop()

    async def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    async with held(phones) as leases:
        lease = await leases.open(DEVICE)
        monkeypatch.setattr(Workshop, "call", broken)
        with pytest.raises(ZeroDivisionError):
            await leases.call(lease, "screen", {})
        await until(lambda: not leases.holds(DEVICE))
        monkeypatch.undo()
        assert "Green tea" in (await leases.call(await leases.open(DEVICE), "screen", {})).text


async def test_a_call_that_was_given_up_before_its_turn_is_not_done() -> None:
    phones = shop()
    async with held(phones) as leases:
        lease = await leases.open(DEVICE)
        async with asyncio.TaskGroup() as group:
            group.create_task(leases.call(lease, "screen", {}))
            later = group.create_task(leases.call(lease, "stop_app", {"package": "com.example.chat"}))
            await asyncio.sleep(0)
            later.cancel()
        await leases.call(lease, "screen", {})
        assert not phones.done


async def test_all_phones_are_given_back_at_once_when_that_is_asked_for() -> None:
    phones = shop()
    async with held(phones) as leases:
        await leases.open(DEVICE)
        await leases.close_all()
        assert (leases.holds(DEVICE), phones.holder) == (False, "")
