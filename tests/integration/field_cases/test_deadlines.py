"""A step ends at its own deadline, whichever call to the phone is the one that hangs (F16), and tells what is known."""

from __future__ import annotations

import pytest

from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_shared.protocol.codes import StepCode
from integration.field_cases.conftest import MakeHandset
from support.hanging import LATE_MS

pytestmark = pytest.mark.integration

TIMEOUT_MS = 800
"""Of steps that end so whether or not the call is made by then."""

EVERYTHING = {
    "action": "INPUT",
    "selector": {"resourceId": "card"},
    "value": "12",
    "submit": True,
    "packageName": "com.example.form",
    "activityName": ".FormActivity",
    "timeoutMs": TIMEOUT_MS,
}
"""One step that needs every kind of call but the keyboard's."""
PAY = {"action": "CLICK", "selector": {"text": "Pay now"}, "timeoutMs": TIMEOUT_MS}

READS = ["dumpWindowHierarchy", "shell", "shell_stream", "open", "shell:dumpsys window", "http"]
ACTIONS = {"click": [], "setText": ["tap"], "pressKeyCode": ["tap", "set_text"]}
"""What hangs, and what has happened before."""


@pytest.mark.parametrize("what", READS)
async def test_a_read_that_hangs(handset: MakeHandset, what: str) -> None:
    one = await handset(faults=[Fault(on=what, do=FaultKind.HANG, times=None)])
    task = await one.run(EVERYTHING)
    assert task.code is StepCode.DEVICE_UNAVAILABLE, task.message
    assert TIMEOUT_MS * 0.9 < task.duration_ms < TIMEOUT_MS + LATE_MS
    assert one.seen() == []


@pytest.mark.parametrize("what", ["open", "tcp", "shell", "shell:wm", "shell:ime", "ping", "server_start"])
async def test_a_read_that_hangs_before_the_phone_ever_answered(handset: MakeHandset, what: str) -> None:
    kind = FaultKind.SLOW if what == "server_start" else FaultKind.HANG
    seconds = 60 if kind is FaultKind.SLOW else None
    one = await handset(faults=[Fault(on=what, do=kind, times=None, seconds=seconds)], ready=False)
    task = await one.run(EVERYTHING)
    assert task.code is StepCode.DEVICE_UNAVAILABLE, task.message
    assert TIMEOUT_MS * 0.9 < task.duration_ms < TIMEOUT_MS + LATE_MS
    assert one.seen() == []


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("what", ACTIONS)
async def test_an_action_that_hangs(handset: MakeHandset, what: str, after: bool) -> None:
    step = {**EVERYTHING, "optional": True}
    hung = await handset.hung(Fault(on=what, do=FaultKind.HANG, times=None, after=after), step, PAY)
    assert hung.task.code is StepCode.OUTCOME_UNKNOWN, hung.task.message
    assert hung.timeout_ms * 0.9 < hung.task.duration_ms < hung.timeout_ms + LATE_MS
    own = {"click": "tap", "setText": "set_text", "pressKeyCode": "key"}[what]
    assert hung.handset.seen("tap", "set_text", "key") == ACTIONS[what] + [own] * after


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("shell:dumpsys input_method", StepCode.DEVICE_UNAVAILABLE),
        ("pressKeyCode", StepCode.OUTCOME_UNKNOWN),
    ],
)
async def test_hiding_the_keyboard_hangs(handset: MakeHandset, what: str, code: StepCode) -> None:
    typing = {"action": "INPUT", "selector": {"resourceId": "card"}, "value": "12"}
    hung = await handset.hung(Fault(on=what, do=FaultKind.HANG, times=None), PAY, first=[typing])
    assert hung.task.code is code, hung.task.message
    assert hung.timeout_ms * 0.9 < hung.task.duration_ms < hung.timeout_ms + LATE_MS
    assert hung.handset.seen() == hung.before


async def test_a_tasks_own_bound_holds_while_the_phone_hangs(handset: MakeHandset) -> None:
    one = await handset(faults=[Fault(on="dumpWindowHierarchy", do=FaultKind.HANG, times=None)])
    task = await one.run({**PAY, "timeoutMs": 30_000}, max_duration_ms=1000)
    assert task.code is StepCode.TASK_TIMEOUT
    assert task.duration_ms < 1000 + LATE_MS
