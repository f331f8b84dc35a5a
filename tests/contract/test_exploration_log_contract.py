"""What every log of an exploration keeps, whatever keeps it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import pytest

from droidfleet_designer.log import Entry, Told
from droidfleet_designer.ports import ExplorationLog, LogBounds, Shot
from droidfleet_shared.errors import ExhaustedError, PreconditionError
from droidfleet_shared.screen.snapshot import Snapshot
from support.exploration_logs import ENDED, ENTRIES, LOGS, NOW, TOLD, Open

SNAPSHOT = Snapshot(package="com.example.shop", activity="", display=(0, 0, 1080, 2400), rotation=0, window="<x/>")
OTHER = SNAPSHOT.model_copy(update={"activity": "com.example.shop.Cart"})
SHOT = Shot("image/png", b"\x89PNG of the screen", 108, 240)
OTHER_SHOT = Shot("image/jpeg", b"\xff\xd8 of the screen", 108, 240)

OpenWith = Callable[[LogBounds], Awaitable[Open]]


@pytest.fixture(params=LOGS)
async def open_with(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OpenWith]:
    async with AsyncExitStack() as stack:

        async def open_one(bounds: LogBounds) -> Open:
            return await stack.enter_async_context(LOGS[request.param](tmp_path, bounds))

        yield open_one


@pytest.fixture
async def opened(open_with: OpenWith) -> Open:
    return await open_with(LogBounds())


@pytest.fixture
def log(opened: Open) -> ExplorationLog:
    return opened()


# Entries ------------------------------------------------------------------------------------------------------------


async def test_a_new_log_is_empty(log: ExplorationLog) -> None:
    assert list(await log.entries()) == []


async def test_entries_are_numbered_from_one_on(log: ExplorationLog) -> None:
    assert [await log.append(TOLD) for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.kind)
async def test_an_entry_is_read_as_it_was_written(log: ExplorationLog, entry: Entry) -> None:
    await log.append(entry)
    [logged] = await log.entries()
    assert logged.entry == entry


async def test_an_entry_has_its_number_and_time(log: ExplorationLog) -> None:
    await log.append(TOLD)
    [logged] = await log.entries()
    assert (logged.sequence, logged.at) == (1, NOW)


async def test_entries_are_read_in_the_order_in_which_they_were_written(log: ExplorationLog) -> None:
    for entry in ENTRIES:
        await log.append(entry)
    assert [logged.entry for logged in await log.entries()] == list(ENTRIES)


async def test_what_was_written_is_there_for_another_process(opened: Open) -> None:
    await opened().append(TOLD)
    assert [logged.entry for logged in await opened().entries()] == [TOLD]


async def test_another_process_goes_on_with_the_numbers(opened: Open) -> None:
    await opened().append(TOLD)
    assert await opened().append(TOLD) == 2


async def test_nothing_comes_after_the_end(log: ExplorationLog) -> None:
    await log.append(ENDED)
    with pytest.raises(PreconditionError, match="EXPLORATION_OVER"):
        await log.append(TOLD)


async def test_what_is_heard_is_not_kept(log: ExplorationLog) -> None:
    log.heard("I look")
    assert list(await log.entries()) == []


# Snapshots and pictures ---------------------------------------------------------------------------------------------


async def test_a_snapshot_is_there_for_another_process(opened: Open) -> None:
    await opened().keep_snapshot("s1", SNAPSHOT)
    assert await opened().snapshot("s1") == SNAPSHOT


async def test_there_is_no_snapshot_that_was_not_kept(log: ExplorationLog) -> None:
    await log.keep_snapshot("s1", SNAPSHOT)
    assert await log.snapshot("s2") is None


async def test_a_snapshot_takes_the_place_of_the_one_before(log: ExplorationLog) -> None:
    await log.keep_snapshot("s1", SNAPSHOT)
    await log.keep_snapshot("s1", OTHER)
    assert await log.snapshot("s1") == OTHER


async def test_a_picture_is_named_by_its_digest(log: ExplorationLog) -> None:
    assert await log.keep_picture(SHOT) == sha256(SHOT.data).hexdigest()


async def test_a_picture_is_there_for_another_process(opened: Open) -> None:
    digest = await opened().keep_picture(SHOT)
    assert await opened().picture(digest) == SHOT


async def test_there_is_no_picture_that_was_not_kept(log: ExplorationLog) -> None:
    assert await log.picture(sha256(b"another").hexdigest()) is None


# Bounds -------------------------------------------------------------------------------------------------------------


async def test_more_entries_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(entries=2)))()
    for _ in range(2):
        await log.append(TOLD)
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.append(TOLD)
    assert len(await log.entries()) == 2


async def test_more_bytes_of_entries_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(entry_bytes=1_000)))()
    await log.append(Told(code="X", text="x" * 600))
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.append(Told(code="X", text="x" * 600))
    assert len(await log.entries()) == 1


async def test_an_exploration_whose_log_is_full_can_end(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(entries=1, entry_bytes=10)))()
    assert await log.append(ENDED) == 1


async def test_more_snapshots_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(snapshots=1)))()
    await log.keep_snapshot("s1", SNAPSHOT)
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.keep_snapshot("s2", SNAPSHOT)
    assert await log.snapshot("s2") is None


async def test_a_snapshot_that_takes_anothers_place_counts_once(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(snapshots=1)))()
    await log.keep_snapshot("s1", SNAPSHOT)
    await log.keep_snapshot("s1", OTHER)
    assert await log.snapshot("s1") == OTHER


async def test_more_bytes_of_snapshots_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(snapshot_bytes=10)))()
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.keep_snapshot("s1", SNAPSHOT)
    assert await log.snapshot("s1") is None


async def test_more_pictures_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(pictures=1)))()
    await log.keep_picture(SHOT)
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.keep_picture(OTHER_SHOT)
    assert await log.picture(sha256(OTHER_SHOT.data).hexdigest()) is None


async def test_a_picture_that_is_there_already_counts_once(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(pictures=1)))()
    assert await log.keep_picture(SHOT) == await log.keep_picture(SHOT)


async def test_more_bytes_of_pictures_than_may_be_are_refused(open_with: OpenWith) -> None:
    log = (await open_with(LogBounds(picture_bytes=len(SHOT.data))))()
    await log.keep_picture(SHOT)
    with pytest.raises(ExhaustedError, match="EXPLORATION_FULL"):
        await log.keep_picture(OTHER_SHOT)
    assert await log.picture(sha256(OTHER_SHOT.data).hexdigest()) is None
