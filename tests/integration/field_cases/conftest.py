"""A virtual phone with a small form, the real adb server between, the agent's own driver and engine before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.virtual_phone.faults import Fault
from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.result import TaskResult
from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.hanging import HANGING_S
from support.runs import JsonStep, run_steps

FORM = """
format: 1
name: field_cases
start: com.example.form
apps:
  - package: com.example.form
    label: Form
    home: form
    variables: {card: "", pin: "", note: "", paid: 0}
    screens:
      form:
        activity: .FormActivity
        root:
          type: column
          height: fill
          children:
            - {type: text, text: Payment, style: title}
            - {type: field, id: card, hint: Card number, bind: card}
            - {type: field, id: pin, hint: PIN, bind: pin, kind: password}
            - {type: field, id: note, hint: Note, bind: note, multiline: true, height: 96}
            - {type: button, id: next, text: Next, on_click: [{effect: next_pressed}, {go: done}]}
            - {type: space, weight: 1}
            - {type: button, id: pay, text: Pay now, width: fill, on_click: [{effect: paid}, {add: {paid: 1}}]}
      done:
        activity: .DoneActivity
        root:
          type: column
          height: fill
          children:
            - {type: text, text: Thank you}
            - {type: button, id: again, text: Again, on_click: [{effect: again_pressed}]}
"""


@pytest.fixture(scope="session")
def form() -> Scenario:
    """The app of the field cases: fields at the top, a button at the bottom that the keyboard covers."""
    return parse_scenario(FORM, source="field_cases")


class Handset:
    """One virtual phone and the agent's way to it."""

    def __init__(self, running: RunningPhone, phone: AdbPhone) -> None:
        self.running = running
        self.phone = phone

    async def run(self, *steps: JsonStep, max_duration_ms: int | None = None) -> TaskResult:
        """Runs steps by the engine."""
        return await run_steps(self.phone, SystemClock(), *steps, max_duration_ms=max_duration_ms)

    def seen(self, *kinds: str) -> list[str]:
        """Kinds of what the phone saw, in order; of these kinds only, where some are given."""
        effects = self.running.effects
        return [effect.kind for effect in (effects.of(*kinds) if kinds else effects.all())]


@dataclass(frozen=True)
class Hung:
    """A run whose first step met a call that hangs. ``before``: what the phone had seen by then."""

    handset: Handset
    task: TaskResult
    timeout_ms: int
    before: Sequence[str]


class MakeHandset:
    """Starts phones for one test."""

    def __init__(self, phones: ConnectedPhones, adb: AdbServer, form: Scenario) -> None:
        self._phones = phones
        self._adb = adb
        self._form = form
        self.made: list[Handset] = []

    async def __call__(self, *, faults: Sequence[Fault] = (), ready: bool = True) -> Handset:
        """A phone with the form in front. ``faults`` hit from when the agent is connected (``ready``), or before."""
        running = self._phones(PhoneOptions(scenario=self._form, faults=() if ready else faults))
        clock = SystemClock()
        phone = (
            await open_phone(running.address, adb_port=self._adb.port, clock=clock, deadline=clock.deadline(20))
            if ready
            else AdbPhone(running.address, adb_port=self._adb.port, clock=clock)
        )
        handset = Handset(running, phone)
        self.made.append(handset)
        if ready:
            running.faults.add(*faults)
        return handset

    async def hung(self, fault: Fault, step: JsonStep, *rest: JsonStep, first: Sequence[JsonStep] = ()) -> Hung:
        """Runs the ``step``, and the ``rest``, on a phone whose fault hits it: the call that hangs was made."""
        for seconds in HANGING_S:
            one = await self()
            if first:
                assert (await one.run(*first)).successful
            before = one.seen()
            one.running.faults.add(fault)
            timeout_ms = round(seconds * 1_000)
            task = await one.run({**step, "timeoutMs": timeout_ms}, *rest)
            if one.running.faults.fired:
                return Hung(one, task, timeout_ms, before)
        raise AssertionError("the call was never made, so nothing was tried")


@pytest.fixture
async def handset(phones: ConnectedPhones, adb_server: AdbServer, form: Scenario) -> AsyncIterator[MakeHandset]:
    """Call it for a phone."""
    make = MakeHandset(phones, adb_server, form)
    yield make
    for made in make.made:
        await made.phone.close()
