"""Who is meant, what is said when it is nobody, and when the answer may have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from droidfleet_controller.fleet.device import Device, DeviceState
from droidfleet_controller.fleet.groups import Update
from droidfleet_controller.rollouts.spec import Target
from droidfleet_shared.bus.messages import ExecutionRef, PhoneState
from droidfleet_shared.errors import InvalidInputError, NotFoundError
from support.waiting import until
from unit.controller.builders import beat
from unit.fleet.fleets import ACTOR, Fleet, fleet_of

RUNNING = ExecutionRef(execution_id="x-1", attempt=1)


async def test_devices_are_meant_as_they_are_listed(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        assert fleet.targets.members(Target(devices=("c", "a", "c"))) == ["c", "a"]


async def test_a_query_means_those_that_match_by_name(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        await fleet.label("c", "a", site="berlin")
        assert fleet.targets.members(Target(query="site=berlin")) == ["a", "c"]


async def test_a_dynamic_group_is_evaluated_at_use(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("a", site="berlin")
        await fleet.groups.create("berlin", query="site=berlin", actor=ACTOR)
        assert fleet.targets.members(Target(group="berlin")) == ["a"]
        await fleet.label("b", site="berlin")
        assert fleet.targets.members(Target(group="berlin")) == ["a", "b"]


async def test_a_static_group_means_those_that_it_lists(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        await fleet.groups.create("shelf", devices=["c", "a"], actor=ACTOR)
        assert fleet.targets.members(Target(group="shelf")) == ["a", "c"]


@pytest.mark.parametrize(
    "query",
    [
        "name=a",
        "serial=emulator-5554",
        'model="Pixel 8"',
        "android>=14",
        "version>=0.1",
        "host=lab-1",
        "state=online",
        "battery>=55",
        "capability.protocol.v1",
        "!capability.vision",
    ],
)
async def test_built_in_facts_are_asked_for_like_labels(tmp_path: Path, query: str) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        assert fleet.targets.matching(query) == ["a"]


async def test_the_state_is_the_one_of_now(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.heard(beat(agent="a", running=RUNNING))
        assert fleet.targets.matching("state=busy") == ["a"]
        fleet.clock.advance(60)
        assert fleet.targets.matching("state=offline") == ["a"]


async def test_what_is_not_known_is_not_there(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.heard(beat(agent="a").model_copy(update={"battery_percent": None, "model": ""}))
        assert fleet.targets.matching("!battery, !model") == ["a"]


async def test_offline_are_those_that_cannot_work_now(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "busy", "unplugged", "silent") as fleet:
        fleet.clock.advance(25)
        await fleet.heard(beat(agent="busy", running=RUNNING))
        await fleet.heard(beat(agent="unplugged", phone=PhoneState.OFFLINE))
        fleet.clock.advance(5)
        offline = fleet.targets.offline()
        assert [name for name in ("busy", "unplugged", "silent", "nobody") if name in offline] == [
            "unplugged",
            "silent",
            "nobody",
        ]


async def test_a_downtime_of_the_controller_makes_nobody_offline(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "left") as fleet:
        await fleet.heard(beat(agent="left").model_copy(update={"leaving": True}))
        fleet.clock.advance(3_600)
        await fleet.registry.connected()
        offline = fleet.targets.offline()
        assert ["a" in offline, "left" in offline] == [False, True]
        fleet.clock.advance(30)
        assert "a" in offline


@pytest.mark.parametrize(("leaving", "found"), [(False, ["a"]), (True, [])])
async def test_after_a_downtime_the_state_is_the_last_that_was_heard_until_the_phone_is_silent(
    tmp_path: Path, *, leaving: bool, found: list[str]
) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.heard(beat(agent="a").model_copy(update={"leaving": leaving}))
        fleet.clock.advance(3_600)
        await fleet.registry.connected()
        target = Target(query="state=online")
        assert (fleet.targets.matching("state=online"), sorted(fleet.targets.matches(target))) == (found, found)
        fleet.clock.advance(30)
        assert fleet.targets.matches(target) == frozenset()


# Nobody.


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("stie=berlin", "No phone has stie. Did you mean site?"),
        ("site=berlni", "No phone meets site=berlni; site is berlin (2), paris (1). Did you mean berlin?"),
        ("site in (berlni)", "Did you mean berlin?"),
        ("android>=40", "No phone meets android>=40; android is 14 (3)."),
        ("site=paris, rack", "Some phones meet each condition, and none meets all: site=paris (1), rack (1)."),
        ("!site", "No phone meets !site; site is berlin (2), paris (1)."),
        ("capability.visoin", "No phone has capability.visoin."),
    ],
)
async def test_a_query_that_nobody_matches_says_why(tmp_path: Path, query: str, hint: str) -> None:
    async with fleet_of(tmp_path, "a", "b", "c") as fleet:
        await fleet.label("a", "b", site="berlin")
        await fleet.label("c", site="paris")
        await fleet.label("a", rack="3")
        with pytest.raises(InvalidInputError, match="NO_MATCH") as caught:
            fleet.targets.members(Target(query=query))
        assert hint in caught.value.hint


async def test_without_any_phone_that_is_said(tmp_path: Path) -> None:
    async with fleet_of(tmp_path) as fleet:
        with pytest.raises(InvalidInputError, match=r"NO_MATCH.*There are no phones yet\."):
            fleet.targets.members(Target(query="state=online"))


async def test_an_empty_group_says_what_to_do(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.groups.create("later", actor=ACTOR)
        await fleet.groups.create("berlin", query="site=berlin", actor=ACTOR)
        with pytest.raises(InvalidInputError, match=r"EMPTY_GROUP.*droidfleet group add later"):
            fleet.targets.members(Target(group="later"))
        with pytest.raises(InvalidInputError, match=r"EMPTY_GROUP.*site=berlin.*No phone has site\."):
            fleet.targets.members(Target(group="berlin"))


async def test_unknown_devices_and_groups_are_answered_with_the_nearest(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "phone-01") as fleet:
        await fleet.groups.create("berlin", query="site=berlin", actor=ACTOR)
        with pytest.raises(NotFoundError, match=r"DEVICE_NOT_FOUND.*'phone-01'"):
            fleet.targets.members(Target(devices=("phone-01", "phone-1")))
        with pytest.raises(NotFoundError, match=r"GROUP_NOT_FOUND.*'berlin'"):
            fleet.targets.members(Target(group="berlni"))


async def test_a_misspelt_key_behind_a_denial_is_noted_though_everybody_matches(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a", "b") as fleet:
        await fleet.label("a", retired="")
        target = Target(query="!retird")
        assert fleet.targets.members(target) == ["a", "b"]
        assert fleet.targets.notes(target) == ["No phone has retird. Did you mean retired?"]


async def test_matches_may_be_nobody(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        assert fleet.targets.matches(Target(query="site=berlin")) == frozenset()


async def test_a_group_that_is_gone_matches_nothing_and_says_so(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.groups.create("shelf", devices=["a"], actor=ACTOR)
        await fleet.groups.delete("shelf", version=1, actor=ACTOR)
        with pytest.raises(NotFoundError, match="GROUP_NOT_FOUND"):
            fleet.targets.matches(Target(group="shelf"))


# Word of changes.


async def test_labels_and_groups_are_told(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await fleet.label("a", site="berlin")
        await fleet.groups.create("berlin", query="site=berlin", actor=ACTOR)
        await fleet.groups.update("berlin", Update(query="site=paris"), version=1, actor=ACTOR)
        await fleet.groups.delete("berlin", version=2, actor=ACTOR)
        assert len(fleet.changes) == 4


async def settled(fleet: Fleet, query: str = "site=berlin") -> None:
    """The phone `a` was heard, and a rollout watches a query."""
    fleet.targets.matches(Target(query=query))
    await fleet.heard(beat(agent="a"))
    fleet.changes.clear()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "Pixel 9"),
        ("android", "15"),
        ("version", "0.2.0"),
        ("capabilities", ()),
        ("phone", PhoneState.OFFLINE),
    ],
)
async def test_a_fact_that_changed_is_told_once(tmp_path: Path, field: str, value: object) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await settled(fleet)
        for _ in range(2):
            await fleet.heard(beat(agent="a").model_copy(update={field: value}))
        assert len(fleet.changes) == 1


@pytest.mark.parametrize(
    ("query", "told"), [("site=berlin", 0), ("battery>=50, state=online", 1)], ids=["not asked for", "asked for"]
)
async def test_the_battery_is_told_only_where_a_query_asks_for_it(tmp_path: Path, query: str, told: int) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await settled(fleet, query)
        await fleet.heard(beat(agent="a").model_copy(update={"battery_percent": 54}))
        assert len(fleet.changes) == told


async def test_a_phone_that_becomes_busy_goes_on_to_match_and_is_not_told(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await settled(fleet, "state=online")
        await fleet.heard(beat(agent="a", running=RUNNING))
        assert fleet.targets.matches(Target(query="state=online")) == {"a"}
        assert not fleet.changes


async def test_a_phone_that_falls_silent_is_told(tmp_path: Path) -> None:
    async with fleet_of(tmp_path, "a") as fleet:
        await settled(fleet)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(fleet.registry.run())
            await until(lambda: bool(fleet.changes), what="word of the silence")
            task.cancel()
        assert "a" in fleet.targets.offline()


# Scale.


class CountedFacts(Mapping[str, str]):
    """Labels that count how often they are looked at."""

    def __init__(self, labels: Mapping[str, str], looks: list[str]) -> None:
        self._labels = labels
        self._looks = looks

    def __getitem__(self, key: str) -> str:
        self._looks.append(key)
        return self._labels[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._labels)

    def __len__(self) -> int:
        return len(self._labels)


async def test_ten_thousand_phones_are_each_looked_at_once_for_a_condition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"phone-{number:05}" for number in range(10_000)]
    async with fleet_of(tmp_path, *names) as fleet:
        await fleet.label(*names[:4_000], site="berlin")
        await fleet.label(*names[4_000:], site="paris")
        looks: list[str] = []
        asked_states: list[str] = []
        of, state = fleet.labels.of, fleet.registry.state

        def counted_state(device: Device) -> DeviceState:
            asked_states.append(device.name)
            return state(device)

        monkeypatch.setattr(fleet.labels, "of", lambda name: CountedFacts(of(name), looks))
        monkeypatch.setattr(fleet.registry, "state", counted_state)
        assert len(fleet.targets.matching("site=berlin, !retired")) == 4_000
        assert (looks.count("site"), looks.count("retired")) == (10_000, 4_000)
        assert asked_states == []


def test_the_states_of_queries_are_those_of_the_command_line() -> None:
    from droidfleet_controller.cli.commands.devices import StateFilter
    from droidfleet_controller.fleet.facts import state_word

    assert {state_word(state) for state in DeviceState} == {item.value for item in StateFilter}
