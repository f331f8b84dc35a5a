"""F11, F12 and F15 beyond a plain tap: what stands under the keyboard, a killed run, every touch on a rotated phone."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from droidfleet_agent.virtual_phone.faults import Fault, FaultKind
from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.scenario.models import Scenario
from droidfleet_shared.protocol.codes import Detail, StepCode
from integration.field_cases.conftest import Handset, MakeHandset
from support.adb import AdbServer
from support.agent_process import PROGRAM
from support.runs import JsonStep, task_of
from support.waiting import until

pytestmark = pytest.mark.integration

ESCAPE = 111
ROTATIONS = ["left", "right", "upsidedown"]

DESK = """
format: 1
name: desk
start: com.example.desk
apps:
  - package: com.example.desk
    label: Desk
    home: entry
    variables:
      size: Small
      rows: {generate: {count: 60, item: "Row {{number}}"}}
    screens:
      entry:
        activity: .EntryActivity
        root:
          type: column
          height: fill
          children:
            - {type: field, id: note, hint: Note}
            - {type: button, text: Rows, on_click: [{go: rows}]}
            - {type: space, weight: 1}
            - {type: button, id: size, text: "{{size}}", on_click: [{dialog: sizes}]}
            - {type: button, text: Handle, on_drag: [{effect: moved, details: {to: "{{value}}"}}]}
            - {type: button, text: Hold, on_long_click: [{effect: held}], on_click: [{effect: tapped}]}
            - {type: field, id: last, hint: Last field}
      rows:
        activity: .RowsActivity
        root:
          type: list
          id: rows
          items: rows
          row: {type: text, text: "{{item}}", height: 56, width: fill}
    dialogs:
      sizes:
        root:
          type: column
          children:
            - {type: button, text: Large, on_click: [{set: {size: Large}}, {effect: sized}, {close_dialog: true}]}
"""
NOTE: JsonStep = {"action": "INPUT", "selector": {"resourceId": "note"}, "value": "hello"}
KEPT: JsonStep = {"action": "WAIT", "selector": {"text": "hello", "resourceId": "note"}}
ROWS: JsonStep = {"action": "CLICK", "selector": {"text": "Rows"}}

LOW: list[tuple[JsonStep, str]] = [
    ({"action": "CLICK", "selector": {"text": "Hold"}}, "tapped"),
    ({"action": "LONG_CLICK", "selector": {"text": "Hold"}}, "held"),
    ({"action": "DRAG", "selector": {"text": "Handle"}, "to": {"text": "Hold"}}, "moved"),
    ({"action": "SELECT_OPTION", "selector": {"resourceId": "size"}, "option": {"text": "Large"}}, "sized"),
    ({"action": "INPUT", "selector": {"resourceId": "last"}, "value": "there"}, "set_text"),
]
"""Steps whose targets stand at the foot of the screen, and what each does there."""
low_step = pytest.mark.parametrize(("step", "effect"), LOW, ids=[str(step["action"]) for step, _ in LOW])


@pytest.fixture(scope="session")
def form() -> Scenario:
    """In place of the form: a field on top and, at the foot, something for every finger."""
    return parse_scenario(DESK, source="desk")


def rotate(one: Handset, orientation: str) -> None:
    one.running.do(lambda phone: phone.phone.set_orientation(orientation))  # type: ignore[arg-type]  # one of them


@low_step
async def test_f12_the_keyboard_is_hidden_before_any_finger_goes_where_it_is(
    handset: MakeHandset, step: JsonStep, effect: str
) -> None:
    one = await handset()
    assert (await one.run(NOTE)).successful
    assert one.running.do(lambda phone: phone.phone.keyboard_shown)
    before = len(one.seen(effect))

    task = await one.run(step, KEPT)

    assert task.successful, task.message
    assert len(one.seen(effect)) == before + 1
    assert [key.details["code"] for key in one.running.effects.of("key")] == [ESCAPE]


async def test_f12_a_keyboard_that_does_not_go_is_not_tapped_through(handset: MakeHandset) -> None:
    one = await handset()
    assert (await one.run(NOTE)).successful
    one.running.faults.add(Fault(on="pressKeyCode", do=FaultKind.FALSE, times=None))

    task = await one.run({"action": "CLICK", "selector": {"text": "Hold"}, "timeoutMs": 800})

    assert not task.successful
    assert task.code is not StepCode.OUTCOME_UNKNOWN
    assert one.seen("tapped", "type_text") == []


async def test_f11_the_keyboard_stays_selected_when_the_agent_is_killed_while_it_types(
    handset: MakeHandset, adb_server: AdbServer, tmp_path: Path
) -> None:
    one = await handset()
    before = one.running.do(lambda phone: (phone.phone.default_input_method, phone.phone.installed_input_methods))
    one.running.faults.add(Fault(on="setText", do=FaultKind.HANG, after=True))
    file = tmp_path / "task.json"
    file.write_text(task_of({**NOTE, "timeoutMs": 30_000}).model_dump_json(by_alias=True, exclude_none=True))
    agent = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("exec", str(file), "--serial", one.running.address, "--adb", f"127.0.0.1:{adb_server.port}"),
        env={**os.environ, "HOME": str(tmp_path)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await until(lambda: one.seen("set_text") != [], within_s=30, what="the text on the phone")

    agent.kill()
    await agent.wait()

    after = one.running.do(lambda phone: (phone.phone.default_input_method, phone.phone.installed_input_methods))
    assert after == before
    assert (
        adb_server.run("-s", one.running.address, "shell", "settings get secure default_input_method").strip()
        == (before[0])
    )
    assert one.seen("select_input_method", "type_text") == []
    assert (await one.run(KEPT)).successful


@pytest.mark.parametrize("orientation", ROTATIONS)
@low_step
async def test_f15_every_finger_goes_where_things_are_on_the_rotated_phone(
    handset: MakeHandset, orientation: str, step: JsonStep, effect: str
) -> None:
    one = await handset()
    rotate(one, orientation)
    assert "1080x2400" in one.running.do(lambda phone: f"{phone.phone.identity.width}x{phone.phone.identity.height}")

    task = await one.run(step)

    assert task.successful, task.message
    assert one.seen(effect) == [effect]


@pytest.mark.parametrize("orientation", ROTATIONS)
async def test_f15_a_list_is_scrolled_to_its_end_on_the_rotated_phone(handset: MakeHandset, orientation: str) -> None:
    one = await handset()
    rotate(one, orientation)

    task = await one.run(ROWS, {"action": "SCROLL", "until": {"text": "Row 60"}, "maxScrolls": 40})

    assert task.successful, task.message
    assert task.steps[1].detail is Detail.SEEN


async def test_f15_a_phone_that_turns_between_two_steps_is_touched_in_its_new_frame(handset: MakeHandset) -> None:
    one = await handset()
    hold = {"action": "CLICK", "selector": {"text": "Hold"}}
    assert (await one.run(hold)).successful
    rotate(one, "left")
    assert (await one.run(hold)).successful
    rotate(one, "natural")
    assert (await one.run(hold)).successful
    assert one.seen("tapped") == ["tapped"] * 3
