"""Tasks that were imported do on a virtual phone what their files say; the phone's effect log is the judge."""

from __future__ import annotations

import json

import pytest

from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_controller.importing.report import Imported
from droidfleet_controller.importing.sources import form_of, import_file
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.result import TaskResult
from droidfleet_shared.protocol.task import Task
from support.adb import AdbServer, ConnectedPhones, RunningPhone
from support.runs import AGENT, Recorder

pytestmark = pytest.mark.integration

GENERIC = """{
  "name": "tea-pot",
  "task_type": "generic_steps",
  "enabled": true,
  "params": {"max_duration": 120, "steps": [
    {"type": "screen_on", "params": {}},
    {"type": "open_app", "params": {"package": "com.example.shop", "wait_home": true}},
    {"type": "if_el", "params": {"selector_type": "text", "selector_value": "Rate this app",
      "then": [{"type": "key_event", "params": {"key": "back"}}]}},
    {"type": "click", "probability": 0, "params": {"selector_type": "text", "selector_value": "Cart"}},
    {"type": "wait", "params": {"min": 0.1, "max": "0.2"}},
    {"type": "swipe_until", "params": {"direction": "up", "max_swipes": 10,
      "selector_type": "text", "selector_value": "Ceramic tea pot 1.2 l"}},
    {"type": "CLICK", "params": {"selector_type": "text", "selector_value": "Ceramic tea pot 1.2 l"}},
    {"type": "swipe_until", "params": {"direction": "up", "max_swipes": 5,
      "selector_type": "resourceId", "selector_value": "add_to_cart"}},
    {"type": "click", "params": {"selector_type": "resourceId", "selector_value": "add_to_cart"}},
    {"type": "loop", "params": {"loop_mode": "count", "max_iterations": 2, "children": [
      {"type": "key_event", "params": {"key": 4}}]}},
    {"type": "stop_app", "params": {"package": "com.example.shop"}}
  ]}
}"""

MAESTRO = """
appId: com.example.shop
env:
  WHAT: tea pot
---
- launchApp
- tapOn: Search Harbour Goods
- inputText: ${WHAT}
- pressKey: Enter
- extendedWaitUntil:
    visible: ceramic .* 1[.]2 l
    timeout: 20000
- tapOn: ceramic .* 1[.]2 l
- runFlow:
    when:
      notVisible:
        id: add_to_cart
    commands:
      - scrollUntilVisible:
          element:
            id: add_to_cart
- tapOn:
    id: add_to_cart
    enabled: true
- assertNotVisible: Your cart is empty
- repeat:
    times: 5
    while:
      notVisible: Search Harbour Goods
    commands:
      - back
- takeScreenshot: home
"""


async def run(running: RunningPhone, adb: AdbServer, imported: Imported) -> TaskResult:
    assert imported.document is not None, imported.report
    task = Task.model_validate_json(json.dumps(imported.document | {"assignedAgentName": AGENT}))
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb.port, clock=clock, deadline=clock.deadline(20))
    try:
        engine = Engine(phone, clock=clock)
        return await engine.run(task, execution_id="e1", agent_name=AGENT, observer=Recorder(), control=RunControl())
    finally:
        await phone.close()


@pytest.mark.parametrize("text", [GENERIC, MAESTRO], ids=["generic", "maestro"])
async def test_an_imported_task_buys_what_its_file_says(
    phones: ConnectedPhones, adb_server: AdbServer, text: str
) -> None:
    running = phones(PhoneOptions(scenario="shop"))
    data = text.encode()
    result = await run(running, adb_server, import_file(data, form=form_of(data), file="flow.yaml"))

    assert result.successful, (result.failed_step_id, result.message)
    assert [dict(effect.details)["title"] for effect in running.effects.of("added_to_cart")] == [
        "Ceramic tea pot 1.2 l"
    ]
