"""Labels: what one may be, all or none of the devices, what is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from droidfleet_controller.fleet.labels import MAX_LABELS, Changes
from droidfleet_shared.errors import InvalidInputError
from unit.fleet.fleets import ACTOR, fleet_of


async def test_labels_are_set_written_over_and_removed(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.label("a", site="berlin", rack="3", old="")
        await fleet.labels.change(["a"], Changes(set={"site": "paris"}, remove=("old", "never-there")), actor=ACTOR)
        assert dict(fleet.labels.of("a")) == {"rack": "3", "site": "paris"}


async def test_labels_survive_a_restart(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("a", site="berlin", rack="3", old="")
        await fleet.labels.change(["a"], Changes(set={"rack": "4"}, remove=("old",)), actor=ACTOR)
    async with fleet_of(tmp_path) as again:
        assert dict(again.labels.of("a")) == {"rack": "4", "site": "berlin"}
        assert dict(again.labels.of("b")) == {}


async def test_only_devices_that_changed_are_named_and_have_an_event(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("a", site="berlin")
        assert await fleet.label("a", "b", site="berlin") == ["b"]
        assert [(event.kind, event.device, event.summary) for event in await fleet.log()] == [
            ("LabelsChanged", "a", "a: site=berlin"),
            ("LabelsChanged", "b", "b: site=berlin"),
        ]


async def test_an_event_says_what_changed_alone(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.label("a", site="berlin", rack="3")
        changes = Changes(set={"site": "paris"}, remove=("rack", "never-there"))
        await fleet.labels.change(["a"], changes, actor=ACTOR)
        assert (await fleet.log())[-1].payload == '{"set": {"site": "paris"}, "removed": ["rack"]}'


async def test_what_changes_nothing_leaves_no_trace(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.label("a", site="berlin")
        before = len(await fleet.log()), len(await fleet.audited()), len(fleet.stored), len(fleet.changes)
        await fleet.label("a", site="berlin")
        assert (len(await fleet.log()), len(await fleet.audited()), len(fleet.stored), len(fleet.changes)) == before


async def test_the_audit_says_who_asked_for_what(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("b", "a", site="berlin")
        assert await fleet.audited() == [(ACTOR, "SetLabels", "a, b", '{"set": {"site": "berlin"}, "remove": []}')]


@pytest.mark.parametrize(
    "changes",
    [
        Changes(set={"name": "x"}),
        Changes(set={"capability.vision": ""}),
        Changes(set={}, remove=("android",)),
        Changes(set={"": "x"}),
        Changes(set={"7days": "x"}),
        Changes(set={"a b": "x"}),
        Changes(set={"ключ": "x"}),
        Changes(set={"k" * 65: "x"}),
        Changes(set={"site": "v" * 257}),
        Changes(set={"site": "two\nlines"}),
        Changes(set={"site": "\x1b[2J"}),
        Changes(set={"site": "x"}, remove=("site",)),
        Changes(set={}),
    ],
    ids=lambda changes: repr([*changes.set, *changes.remove])[:40],
)
def test_what_no_label_can_be_is_refused(changes: Changes) -> None:
    with pytest.raises(InvalidInputError, match="BAD_LABEL"):
        changes.check()


def test_the_longest_labels_are_allowed() -> None:
    Changes(set={"k" * 64: "v" * 256, "a.b/c_d-e": "", "place": "zu Hause, 北京"}).check()


def test_all_that_is_wrong_with_labels_is_listed() -> None:
    with pytest.raises(InvalidInputError) as caught:
        Changes(set={"name": "x", "7days": "x", "site": "v" * 257}).check()
    assert [getattr(issue, "path", "") for issue in caught.value.issues] == ["name", "7days", "site"]


async def test_one_full_device_refuses_the_change_of_all(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("b", **{f"k{number}": "" for number in range(MAX_LABELS)})
        with pytest.raises(InvalidInputError, match=r"TOO_MANY_LABELS.*: b\."):
            await fleet.label("a", "b", site="berlin")
        assert "site" not in fleet.labels.of("a")
        await fleet.labels.change(["b"], Changes(set={"site": "berlin"}, remove=("k0",)), actor=ACTOR)
        assert len(fleet.labels.of("b")) == MAX_LABELS


async def test_a_refused_change_is_not_in_the_database_either(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("b", **{f"k{number}": "" for number in range(MAX_LABELS)})
        with pytest.raises(InvalidInputError):
            await fleet.label("a", "b", site="berlin")
    async with fleet_of(tmp_path) as again:
        assert "site" not in again.labels.of("a")
