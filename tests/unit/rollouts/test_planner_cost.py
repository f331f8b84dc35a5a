"""A call costs what changed: the members that it looks at are counted, and no time is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from droidfleet_controller.rollouts.rollout import Member
from droidfleet_controller.rollouts.states import Control, RolloutState
from unit.rollouts.planning import Planning

FLEET = 3_000

LOOKS_PER_CHANGE = 12
"""At the members of a wave's line and the one that changed, before and after; whatever the size of the fleet."""


class Watched(dict[int, Member]):
    """The members of a plan; counts how many are looked at."""

    def __init__(self, members: dict[int, Member]) -> None:
        super().__init__(members)
        self.looks = 0

    def __getitem__(self, place: int) -> Member:
        self.looks += 1
        return super().__getitem__(place)

    def __iter__(self) -> Iterator[int]:
        self.looks += len(self)
        return super().__iter__()

    def values(self) -> object:  # type: ignore[override]  # only counted here
        self.looks += len(self)
        return super().values()

    def items(self) -> object:  # type: ignore[override]  # only counted here
        self.looks += len(self)
        return super().items()


def watched(plan: Planning) -> Watched:
    members = Watched(plan.plan._book.members)
    plan.plan._book.members = members
    return members


def looks(plan: Planning, happening: Callable[[], object]) -> int:
    """How many looks at members a happening costs."""
    members = watched(plan)
    happening()
    return members.looks


def test_a_result_costs_the_same_in_a_large_fleet_as_in_a_small_one() -> None:
    found = []
    for phones in (30, FLEET):
        plan = Planning(phones, maxConcurrent=10, waves=[{"size": 5}, {"gate": {"maxFailures": "10%"}}])
        plan.end(*plan.started)
        found.append(looks(plan, lambda plan=plan: plan.end(plan.started[-1])))  # type: ignore[misc]  # bound now
        assert plan.rollout.wave == 2
    assert found[0] == found[1] <= LOOKS_PER_CHANGE


def test_a_call_in_which_nothing_changed_looks_at_next_to_nobody() -> None:
    plan = Planning(FLEET, maxConcurrent=10, ratePerMinute=10)
    assert looks(plan, lambda: plan.wait(30)) <= 2


def test_a_whole_rollout_looks_at_each_member_a_few_times() -> None:
    plan = Planning(
        FLEET, maxConcurrent=50, waves=[{"size": "1%"}, {"size": "10%"}, {}], retry={"maxAttempts": 2, "delay": "1s"}
    )
    members = watched(plan)
    live = list(plan.started)
    rounds = 0
    while plan.rollout.state is RolloutState.RUNNING:
        rounds += 1
        ending, live = live[:20], live[20:]
        if rounds % 5 == 0 and ending:
            plan.fail(ending.pop(), step=f"s{rounds}")
            live += [start.device for start in plan.last.starts]
        plan.end(*ending)
        live += [start.device for start in plan.last.starts]
        plan.wait(1)
        live += [start.device for start in plan.last.starts]
    assert plan.rollout.state is RolloutState.SUCCEEDED
    assert members.looks <= LOOKS_PER_CHANGE * FLEET


@pytest.mark.parametrize("policy", ["SKIP", "FAIL", "WAIT"])
def test_offline_phones_cost_one_look_each_time_their_turn_comes(policy: str) -> None:
    plan = Planning(FLEET, offline=policy, approval="MANUAL", waves=[{"gate": {"minSuccessPercent": "0%"}}])
    plan.offline = {f"p{number}" for number in range(1, FLEET)}
    assert looks(plan, lambda: plan.command(Control.PROMOTE)) <= LOOKS_PER_CHANGE * FLEET
