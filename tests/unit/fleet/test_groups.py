"""Groups: what one may be, versions, what is written down."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from droidfleet_controller.fleet.group import MAX_DESCRIPTION, MAX_MEMBERS, member_issues
from droidfleet_controller.fleet.groups import MAX_GROUPS, Update
from droidfleet_shared.errors import ConflictError, ExhaustedError, InvalidInputError, NotFoundError
from unit.fleet.fleets import ACTOR, Fleet, fleet_of

QUERY = "site=berlin, !retired"


async def shelf(fleet: Fleet) -> None:
    await fleet.groups.create("shelf", devices=["b", "a", "b"], actor=ACTOR)


async def test_a_static_group_lists_its_devices_once_and_by_name(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        group = fleet.groups.get("shelf")
        assert (group.query, group.devices, group.version) == (None, ("a", "b"), 1)


async def test_a_group_may_begin_empty(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.groups.create("later", actor=ACTOR)
        assert (await fleet.groups.update("later", Update(add=("a",)), version=1, actor=ACTOR)).devices == ("a",)


async def test_groups_survive_a_restart(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        await shelf(fleet)
        await fleet.groups.create("berlin", query=QUERY, description="all there", actor=ACTOR)
        await fleet.groups.create("gone", devices=["a"], actor=ACTOR)
        await fleet.groups.update("shelf", Update(add=("c",), remove=("a",)), version=1, actor=ACTOR)
        await fleet.groups.delete("gone", version=1, actor=ACTOR)
        before = fleet.groups.page(after="", limit=10)
    async with fleet_of(tmp_path) as again:
        assert again.groups.page(after="", limit=10) == before
        assert [group.name for group in before] == ["berlin", "shelf"]


async def test_a_name_that_was_freed_has_none_of_the_old_members(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        await fleet.groups.delete("shelf", version=1, actor=ACTOR)
        await fleet.groups.create("shelf", actor=ACTOR)
    async with fleet_of(tmp_path) as again:
        assert again.groups.get("shelf").devices == ()


async def test_groups_are_paged_by_name(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        for name in ("c", "a", "b"):
            await fleet.groups.create(name, actor=ACTOR)
        assert [group.name for group in fleet.groups.page(after="a", limit=1)] == ["b"]


async def test_a_taken_name_is_refused(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        with pytest.raises(ConflictError, match="GROUP_EXISTS"):
            await fleet.groups.create("shelf", query=QUERY, actor=ACTOR)
        assert fleet.groups.get("shelf").query is None


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("", {}),
        (" shelf", {}),
        ("two\nlines", {}),
        ("x" * 129, {}),
        ("both", {"query": QUERY, "devices": ["a"]}),
        ("long", {"description": "x" * (MAX_DESCRIPTION + 1)}),
    ],
)
async def test_what_no_group_can_be_is_refused(tmp_path: Path, name: str, fields: dict[str, object]) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        with pytest.raises(InvalidInputError, match="BAD_GROUP"):
            await fleet.groups.create(name, actor=ACTOR, **fields)  # type: ignore[arg-type]  # as the table says
        assert fleet.groups.page(after="", limit=10) == []


def test_a_static_group_has_a_limit() -> None:
    assert member_issues(MAX_MEMBERS) == []
    assert member_issues(MAX_MEMBERS + 1) != []


async def test_a_bad_query_or_an_unknown_device_makes_no_group(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "phone-01") as fleet:
        with pytest.raises(InvalidInputError, match="BAD_QUERY"):
            await fleet.groups.create("berlin", query="site=", actor=ACTOR)
        with pytest.raises(NotFoundError, match="DEVICE_NOT_FOUND") as caught:
            await fleet.groups.create("shelf", devices=["phone-1"], actor=ACTOR)
        assert "'phone-01'" in caught.value.hint
        assert await fleet.log() == []


async def test_an_unknown_group_is_answered_with_the_nearest(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        with pytest.raises(NotFoundError, match=r"GROUP_NOT_FOUND.*Did you mean 'shelf'\?"):
            fleet.groups.get("shelve")


@pytest.mark.parametrize(
    ("name", "update"),
    [
        ("shelf", Update(query=QUERY)),
        ("shelf", Update(add=("a",), remove=("a",))),
        ("berlin", Update(add=("a",))),
        ("berlin", Update(remove=("a",))),
    ],
)
async def test_what_does_not_suit_the_kind_is_refused(tmp_path: Path, name: str, update: Update) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        await fleet.groups.create("berlin", query=QUERY, actor=ACTOR)
        with pytest.raises(InvalidInputError, match="BAD_GROUP"):
            await fleet.groups.update(name, update, version=1, actor=ACTOR)
        assert fleet.groups.get(name).version == 1


async def test_a_change_of_an_old_version_is_refused_and_says_which_is_there(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        await fleet.groups.update("shelf", Update(remove=("a",)), version=1, actor=ACTOR)
        for change in (
            fleet.groups.update("shelf", Update(remove=("b",)), version=1, actor=ACTOR),
            fleet.groups.delete("shelf", version=1, actor=ACTOR),
        ):
            with pytest.raises(ConflictError, match=r"STALE_VERSION.*version 2"):
                await change
        assert fleet.groups.get("shelf").devices == ("b",)


async def test_of_two_changes_at_the_same_time_one_is_refused(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        answers = await asyncio.gather(
            fleet.groups.update("shelf", Update(remove=("a",)), version=1, actor=ACTOR),
            fleet.groups.update("shelf", Update(remove=("b",)), version=1, actor=ACTOR),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, ConflictError)]
        assert [error.code for error in refused] == ["STALE_VERSION"]
        assert fleet.groups.get("shelf").devices == ("b",)


async def test_of_two_groups_made_at_the_same_time_one_is_refused(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        answers = await asyncio.gather(
            fleet.groups.create("shelf", devices=["a"], actor=ACTOR),
            fleet.groups.create("shelf", devices=["b"], actor=ACTOR),
            return_exceptions=True,
        )
        assert [answer.code for answer in answers if isinstance(answer, ConflictError)] == ["GROUP_EXISTS"]
        assert fleet.groups.get("shelf").devices == ("a",)


async def test_what_changes_nothing_keeps_the_version(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        same = Update(add=("a",), description="")
        assert (await fleet.groups.update("shelf", same, version=1, actor=ACTOR)).version == 1
        assert len(await fleet.log()) == 1


async def test_each_change_is_an_event_and_a_line_of_the_audit(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        await shelf(fleet)
        await fleet.groups.update("shelf", Update(add=("c",), remove=("a",)), version=1, actor=ACTOR)
        await fleet.groups.delete("shelf", version=2, actor=ACTOR)
        assert [(event.kind, event.summary) for event in await fleet.log()] == [
            ("GroupCreated", "group shelf: 2 devices"),
            ("GroupChanged", "group shelf: with c, without a"),
            ("GroupDeleted", "group shelf: deleted (2 devices)"),
        ]
        assert [line[:3] for line in await fleet.audited()] == [
            (ACTOR, "CreateGroup", "shelf"),
            (ACTOR, "UpdateGroup", "shelf"),
            (ACTOR, "DeleteGroup", "shelf"),
        ]


async def test_there_is_a_limit_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_GROUPS == 1_000
    monkeypatch.setattr("droidfleet_controller.fleet.groups.MAX_GROUPS", 1)
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await shelf(fleet)
        with pytest.raises(ExhaustedError, match="TOO_MANY_GROUPS"):
            await fleet.groups.create("one-more", actor=ACTOR)
