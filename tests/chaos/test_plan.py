"""What goes wrong and what is asked for: the same for a seed, as much as the scale says, and spread over the time."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from chaos.load import load_plan
from chaos.plan import CI, FULL, FaultKind, Lane, fault_plan, for_minutes, light_part, real_part


@pytest.mark.parametrize("scale", [CI, FULL, for_minutes(1)])
def test_the_plan_has_the_faults_of_its_scale(scale: object) -> None:
    assert isinstance(scale, type(CI))
    faults = fault_plan(7, scale)
    kinds = Counter((fault.lane, fault.kind) for fault in faults if fault.kind is not FaultKind.PAUSE)
    assert kinds == {
        (Lane.BROKER, FaultKind.KILL): scale.broker_kills,
        (Lane.AGENTS, FaultKind.KILL): scale.agent_kills,
        (Lane.CONTROLLER, FaultKind.KILL): scale.controller_kills,
        (Lane.LINKS, FaultKind.CUT): scale.cuts,
    }
    assert len(faults) - kinds.total() == scale.pauses


def test_a_seed_is_one_plan_and_one_load() -> None:
    assert (fault_plan(3, CI), load_plan(3, CI)) == (fault_plan(3, CI), load_plan(3, CI))
    assert fault_plan(3, CI) != fault_plan(4, CI)
    assert load_plan(3, CI) != load_plan(4, CI)


def test_faults_of_agents_hit_every_process() -> None:
    parts = {fault.part for fault in fault_plan(1, FULL) if fault.lane is Lane.AGENTS}
    assert parts == {
        *(light_part(number) for number in range(FULL.light_processes)),
        *(real_part(number) for number in range(FULL.real_phones)),
    }


def test_a_fleet_without_adb_phones_has_no_faults_of_them() -> None:
    parts = {fault.part for fault in fault_plan(1, replace(CI, real_phones=0)) if fault.lane is Lane.AGENTS}
    assert parts <= {light_part(number) for number in range(CI.light_processes)}


def test_the_load_asks_for_as_many_executions_as_the_scale_says() -> None:
    calls = load_plan(1, CI)
    assert sum(len(call.devices) for call in calls if not call.rollout) == CI.executions
    assert sum(call.rollout for call in calls) == CI.rollouts


def test_each_call_has_a_word_of_its_own_and_names_each_device_once() -> None:
    calls = load_plan(1, CI)
    assert len({call.word for call in calls}) == len(calls)
    assert all(len(set(call.devices)) == len(call.devices) for call in calls)
