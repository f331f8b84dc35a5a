"""A run that is left at any line, any number of times, is gone on with: nothing is in doubt, nothing is done twice.

The same tasks and phones as in `test_going_on`, whose kills are requests to leave here.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings

from droidfleet_agent.driver.memory import MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.validate import validate_task
from properties.test_going_on import CALLS, KILLS, PAGE, TAPS, TASK, Disk, Lives
from support.random_phones import random_phone
from support.random_tasks import SEEDS, RandomTasks

RUNS = 500
"""About ten seconds on one core."""

pytestmark = pytest.mark.timeout(300)  # on a busy machine


class Asked(Disk):
    """Asks the run to end in order, at a call."""

    def __init__(self) -> None:
        super().__init__()
        self._control = RunControl()
        self.in_doubt = False

    def control(self) -> RunControl:
        self._control = RunControl()
        # What the process before has left open.
        self.in_doubt |= self.open is not None and self.open.dispatched > 0
        return self._control

    def _die(self, when: str) -> None:
        if when == "before":
            self.calls += 1
        if self.calls == self.kill_at and (when == "before") is self.kill_before:
            self._control.leave()


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("at_call", range(1, CALLS))
def test_a_run_that_is_left_at_any_line_is_done_exactly_once(at_call: int, before: bool) -> None:
    clock = VirtualClock()
    phone = MemoryPhone({"shop": Page(PAGE)}, start="shop", clock=clock)
    lives = Lives(TASK, phone, clock, disk=Asked())
    result = lives.run([(at_call, before)])
    assert (result.code, [each.target for each in phone.done]) == (StepCode.OK, TAPS)


@given(SEEDS, KILLS)
@settings(max_examples=RUNS, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
def test_a_run_that_is_left_anywhere_is_never_in_doubt(seed: int, leaves: list[tuple[int, bool]]) -> None:
    clock = VirtualClock()
    task = validate_task(json.dumps(RandomTasks(Random(seed)).task())).require()
    disk = Asked()
    result = Lives(task, random_phone(Random(seed + 1), clock), clock, disk=disk).run(leaves)
    assert not disk.in_doubt
    assert "could not go on" not in result.message
    ended = [(each.path, each.iteration) for each in disk.ended]
    assert len(ended) == len(set(ended))
