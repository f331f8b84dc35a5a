"""What an exploration logs moves its draft on, in the same transaction, and whoever follows it finds everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from droidfleet_controller.drafts import followers as followers_module
from droidfleet_controller.drafts import log as log_module
from droidfleet_controller.drafts.followers import Follower, Followers, Turn
from droidfleet_controller.drafts.log import Heard
from droidfleet_controller.drafts.record import DraftState, StoredDraft, StoredEntry
from droidfleet_controller.store import artifacts, drafts
from droidfleet_designer.log import Ended, Ending, Entry, Proposed, Resumed, Told
from droidfleet_designer.ports import LogBounds, Shot
from droidfleet_shared.errors import ExhaustedError, NotFoundError, PreconditionError
from droidfleet_shared.screen.snapshot import Snapshot
from support.clock import settle
from support.exploration_logs import DRAFT, ENDED, ENTRIES, TOLD, Bench, bench_of

SPOKE = ENTRIES[2]
ASKED = next(entry for entry in ENTRIES if entry.kind == "approval_asked")
ANSWERED = next(entry for entry in ENTRIES if entry.kind == "approval_answered")

WITHIN_S = 5.0


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench_of(tmp_path) as bench:
        yield bench


async def after(bench: Bench, *entries: Entry) -> StoredDraft:
    """The draft after these entries."""
    log = bench.logs().of("d-1")
    for entry in entries:
        await log.append(entry)
    return await bench.draft()


class Watcher:
    """One who follows the draft."""

    def __init__(self, bench: Bench, *, after: int = 0) -> None:
        self._stream = bench.logs().follow("d-1", after=after)

    async def next(self) -> str | int:
        """The next thing: the number of an entry, or what was heard."""
        async with asyncio.timeout(WITHIN_S):
            item = await anext(self._stream)
        return item.text if isinstance(item, Heard) else item.sequence

    async def rest(self) -> list[str | int]:
        """Everything until the end."""
        async with asyncio.timeout(WITHIN_S):
            items = [item async for item in self._stream]
        return [item.text if isinstance(item, Heard) else item.sequence for item in items]

    async def close(self) -> None:
        """Follows no more."""
        await self._stream.aclose()  # type: ignore[attr-defined]  # a generator


# The draft moves on -----------------------------------------------------------------------------------------------


async def test_a_draft_knows_its_last_entry(bench: Bench) -> None:
    assert (await after(bench, TOLD, TOLD)).last_sequence == 2


async def test_a_draft_knows_what_was_spent(bench: Bench) -> None:
    draft = await after(bench, SPOKE)
    assert (draft.spent_tokens, draft.spent_money) == (7, 0.25)


async def test_what_is_only_logged_leaves_the_version_alone(bench: Bench) -> None:
    assert (await after(bench, *ENTRIES[:8])).version == 1


async def test_a_draft_names_the_approval_that_it_waits_for(bench: Bench) -> None:
    assert (await after(bench, ASKED)).pending_approval_id == "a-1"


@pytest.mark.parametrize("entry", [ANSWERED, Resumed(), ENDED], ids=lambda entry: entry.kind)
async def test_an_approval_is_waited_for_until(bench: Bench, entry: Entry) -> None:
    assert (await after(bench, ASKED, entry)).pending_approval_id == ""


async def test_what_was_proposed_is_the_draft_and_changes_its_version(bench: Bench) -> None:
    draft = await after(bench, Proposed(draft=DRAFT))
    assert (DRAFT.model_validate_json(draft.text), draft.version) == (DRAFT, 2)


@pytest.mark.parametrize(
    ("ending", "proposed", "state"),
    [
        (Ending.DRAFTED, True, DraftState.READY),
        (Ending.STOPPED, True, DraftState.READY),
        (Ending.FAILED, True, DraftState.READY),
        (Ending.STOPPED, False, DraftState.STOPPED),
        (Ending.FAILED, False, DraftState.FAILED),
    ],
)
async def test_an_end_makes_of_a_draft(bench: Bench, ending: Ending, proposed: bool, state: DraftState) -> None:
    before = [Proposed(draft=DRAFT)] if proposed else []
    assert (await after(bench, *before, Ended(ending=ending))).state is state


async def test_an_end_says_why(bench: Bench) -> None:
    draft = await after(bench, ENDED)
    assert (draft.code, draft.message, draft.version) == ("TURN_LIMIT", "It took too long.", 2)


async def test_an_entry_that_is_refused_changes_nothing(bench: Bench) -> None:
    bench.bounds = LogBounds(entries=0)
    before = await bench.draft()
    with pytest.raises(ExhaustedError):
        await bench.logs().of("d-1").append(TOLD)
    assert await bench.draft() == before


async def test_a_draft_that_nobody_began_has_no_log(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="DRAFT_NOT_FOUND"):
        await bench.logs().of("d-9").append(TOLD)


async def test_a_draft_that_was_discarded_logs_no_more(bench: Bench) -> None:
    over = replace(await bench.draft(), state=DraftState.DISCARDED)
    assert await bench.database.run(lambda connection: drafts.replace(connection, over, version=1))
    with pytest.raises(PreconditionError, match="EXPLORATION_OVER"):
        await bench.logs().of("d-1").append(TOLD)


async def test_half_an_emoji_is_kept_as_a_question_mark(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    await log.append(Told(code="X", text="tea \ud83c"))
    [logged] = await log.entries()
    assert logged.entry == Told(code="X", text="tea ?")


async def test_a_snapshot_is_kept_compressed(bench: Bench) -> None:
    window = "<node text='tea'/>" * 1_000
    await (
        bench.logs()
        .of("d-1")
        .keep_snapshot("s1", Snapshot(package="p", activity="", display=(0, 0, 1, 1), rotation=0, window=window))
    )
    body = await bench.database.run(lambda connection: drafts.snapshot(connection, "d-1", "s1"))
    assert body is not None
    assert len(body) < len(window) / 10


# Following --------------------------------------------------------------------------------------------------------


async def test_a_follower_finds_what_was_logged_and_what_is(bench: Bench) -> None:
    watcher, log = Watcher(bench), bench.logs().of("d-1")
    await log.append(TOLD)
    assert await watcher.next() == 1
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(watcher.next(), name="follower")
        await settle()
        await log.append(TOLD)
    assert waiting.result() == 2
    await watcher.close()


async def test_a_follower_finds_the_entry_itself(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    await log.append(TOLD)
    await log.append(ENDED)
    [first, _] = [item async for item in bench.logs().follow("d-1", after=0)]
    assert isinstance(first, StoredEntry)
    assert (first.kind, Told.model_validate_json(first.body)) == ("told", TOLD)


async def test_following_ends_with_the_exploration(bench: Bench) -> None:
    watcher, log = Watcher(bench), bench.logs().of("d-1")
    async with asyncio.TaskGroup() as group:
        ending = group.create_task(watcher.rest(), name="follower")
        await log.append(TOLD)
        await log.append(ENDED)
    assert ending.result() == [1, 2]


async def test_one_who_has_everything_of_an_ended_exploration_finds_the_end(bench: Bench) -> None:
    await after(bench, TOLD, ENDED)
    assert await Watcher(bench, after=2).rest() == []


async def test_one_goes_on_from_where_it_was(bench: Bench) -> None:
    await after(bench, TOLD, TOLD, ENDED)
    assert await Watcher(bench, after=1).rest() == [2, 3]


async def test_a_log_of_many_pages_is_followed_whole(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "PAGE", 2)
    await after(bench, TOLD, TOLD, TOLD, ENDED)
    assert await Watcher(bench).rest() == [1, 2, 3, 4]


async def test_all_who_follow_find_everything(bench: Bench) -> None:
    watchers = [Watcher(bench) for _ in range(3)]
    async with asyncio.TaskGroup() as group:
        endings = [group.create_task(watcher.rest(), name="follower") for watcher in watchers]
        await after(bench, TOLD, ENDED)
    assert [each.result() for each in endings] == [[1, 2]] * 3


async def test_nothing_is_followed_of_a_draft_that_nobody_began(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="DRAFT_NOT_FOUND"):
        await anext(bench.logs().follow("d-9", after=0))


async def test_more_followers_than_may_be_are_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followers_module, "MAX_FOLLOWERS", 0)
    with pytest.raises(ExhaustedError, match="TOO_MANY_WATCHES"):
        await anext(bench.logs().follow("d-1", after=0))


async def test_nothing_is_kept_for_followers_that_have_gone(bench: Bench) -> None:
    await after(bench, TOLD)
    watcher = Watcher(bench)
    await watcher.next()
    await watcher.close()
    assert bench.followers._by_draft == {}


# What is said just now --------------------------------------------------------------------------------------------


async def test_a_follower_hears_what_is_said(bench: Bench) -> None:
    watcher, log = Watcher(bench), bench.logs().of("d-1")
    await log.append(TOLD)
    await watcher.next()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(watcher.next(), name="follower")
        await settle()
        log.heard("I look")
    assert waiting.result() == "I look"
    log.heard(" again")
    assert await watcher.next() == " again"
    await watcher.close()


async def test_one_who_comes_late_first_hears_all_of_the_turn(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    await log.append(TOLD)
    for piece in ("I ", "look ", "around"):
        log.heard(piece)
    watcher = Watcher(bench)
    assert [await watcher.next(), await watcher.next()] == [1, "I look around"]
    await watcher.close()


async def test_what_was_said_before_an_entry_is_not_said_after_it(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    await log.append(TOLD)
    log.heard("I look")
    await log.append(SPOKE)
    log.heard("Now")
    watcher = Watcher(bench)
    assert [await watcher.next() for _ in range(3)] == [1, 2, "Now"]
    await watcher.close()


async def test_one_who_reads_slowly_skips_to_the_entry_that_has_the_whole(bench: Bench) -> None:
    watcher, log = Watcher(bench), bench.logs().of("d-1")
    await log.append(TOLD)
    await watcher.next()
    for _ in range(10):
        log.heard("word ")
    await log.append(SPOKE)
    assert await watcher.next() == 2
    await watcher.close()


@pytest.mark.parametrize("read", [1, 3])
def test_nothing_is_heard_of_a_turn_before_the_entries_that_came_before_it(read: int) -> None:
    turn = Turn(after=2, pieces=["I look"])
    assert Follower().take(turn, after=read) == ""


def test_what_is_kept_of_a_turn_is_bounded() -> None:
    followers = Followers()
    for _ in range(3):
        followers.heard("d-1", "x" * (followers_module.MAX_HEARD // 2))
    turn = followers.turn("d-1")
    assert turn is not None
    assert sum(map(len, turn.pieces)) == followers_module.MAX_HEARD


async def test_nothing_is_kept_of_what_was_said_in_an_exploration_that_ended(bench: Bench) -> None:
    log = bench.logs().of("d-1")
    log.heard("I look")
    await log.append(ENDED)
    assert bench.followers.turn("d-1") is None


# Pictures ---------------------------------------------------------------------------------------------------------


async def test_a_picture_that_made_room_is_gone(bench: Bench) -> None:
    bench.quota_bytes = 150
    log = bench.logs().of("d-1")
    first = await log.keep_picture(Shot("image/png", b"a" * 100, 1, 1))
    await bench.clock.move(1)
    second = await log.keep_picture(Shot("image/png", b"b" * 100, 1, 1))
    assert [await log.picture(first) is None, await log.picture(second) is None] == [True, False]


async def test_a_picture_above_the_quota_crowds_out_nothing(bench: Bench) -> None:
    bench.quota_bytes = 150
    log = bench.logs().of("d-1")
    small = await log.keep_picture(Shot("image/png", b"a" * 100, 1, 1))
    large = await log.keep_picture(Shot("image/png", b"b" * 151, 1, 1))
    assert [await log.picture(small) is None, await log.picture(large) is None] == [False, True]


async def test_a_picture_that_the_disk_does_not_take_is_noted_as_gone(bench: Bench) -> None:
    (bench.folder / "artifacts").write_text("a file in the folder's place")
    log = bench.logs().of("d-1")
    digest = await log.keep_picture(Shot("image/png", b"a", 1, 1))
    found = await bench.database.run(lambda connection: drafts.picture(connection, "d-1", digest))
    assert found is not None
    assert not found.available


async def test_a_file_of_a_picture_is_known_so_that_it_is_not_swept_away(bench: Bench) -> None:
    digest = await bench.logs().of("d-1").keep_picture(Shot("image/png", b"a", 1, 1))
    bench.files.sweep(await bench.database.run(artifacts.digests))
    assert bench.files.read(digest) == b"a"


async def test_a_picture_is_only_shown_as_one_of_its_draft(bench: Bench) -> None:
    digest = await bench.logs().of("d-1").keep_picture(Shot("image/png", b"a", 1, 1))
    assert digest == sha256(b"a").hexdigest()
    assert await bench.logs().of("d-2").picture(digest) is None
