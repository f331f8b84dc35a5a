"""The example of every action's page runs, and does what the page says. The phone's effect log is the judge."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import Detail
from droidfleet_shared.protocol.steps import IMPLEMENTED_ACTIONS
from integration.actions.conftest import Bench
from support.adb import AdbServer, ConnectedPhones

pytestmark = pytest.mark.integration

SCREENS = (Path(__file__).parent / "example_pages.yaml").read_text(encoding="utf-8")
PAGES = Path(__file__).parents[3] / "docs" / "protocol" / "actions"

DETAILS = {
    "ASSERT": Detail.HELD,
    "BACK": Detail.DISPATCHED_UNVERIFIED,
    "BRANCH": Detail.NOT_JUMPED,
    "CLICK": Detail.DISPATCHED_UNVERIFIED,
    "DELAY": Detail.DELAYED,
    "DRAG": Detail.DISPATCHED_UNVERIFIED,
    "EXTRACT": Detail.EXTRACTED,
    "EXTRACT_TEXT": Detail.EXTRACTED,
    "GROUP": Detail.DONE,
    "IF": Detail.THEN,
    "INPUT": Detail.VERIFIED,
    "KEY": Detail.VERIFIED,
    "LONG_CLICK": Detail.VERIFIED,
    "OPEN": Detail.IN_FRONT,
    "REPEAT": Detail.UNTIL_HELD,
    "SCREENSHOT": Detail.CAPTURED,
    "SCROLL": Detail.SEEN,
    "SELECT_OPTION": Detail.VERIFIED,
    "STOP_APP": Detail.STOPPED,
    "SWIPE": Detail.DISPATCHED_UNVERIFIED,
    "WAIT": Detail.HELD,
    "WAKE": Detail.VERIFIED,
}
EFFECTS = {
    "BRANCH": ["added"],
    "CLICK": ["added_green"],
    "DRAG": ["moved"],
    "GROUP": ["closed"],
    "IF": ["signed_in"],
    "INPUT": ["searched"],
    "LONG_CLICK": ["held"],
    "SELECT_OPTION": ["chosen"],
}
"""What the app has made of it, where there is something to make."""

OUTPUTS: dict[str, dict[str, object]] = {
    "EXTRACT": {"title": ["Black tea", "Green tea"], "price": ["3.20", "4.10"], "available": ["true", "true"]},
    "EXTRACT_TEXT": {"total": "19.90"},
}


def example(action: str) -> dict[str, object]:
    """The example of an action's page."""
    [text] = re.findall(r"```json\n(.*?)```", (PAGES / f"{action}.md").read_text(encoding="utf-8"), re.DOTALL)
    found: dict[str, object] = json.loads(text)
    return found


def test_every_action_has_its_expectation() -> None:
    assert DETAILS.keys() == IMPLEMENTED_ACTIONS.keys()


@pytest.mark.parametrize("action", sorted(IMPLEMENTED_ACTIONS))
async def test_the_example_does_what_its_page_says(action: str, phones: ConnectedPhones, adb_server: AdbServer) -> None:
    screen = action.lower() if f"\n      {action.lower()}:" in SCREENS else "plain"
    scenario = parse_scenario(SCREENS.replace("home: HOME", f"home: {screen}"), source="example_pages")
    running = phones(PhoneOptions(scenario=scenario))
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb_server.port, clock=clock, deadline=clock.deadline(20))
    bench = Bench(running, phone)
    document = example(action)
    steps = document["steps"] if "schemaVersion" in document else [document]
    assert isinstance(steps, list)

    result = await bench.run(*steps)
    await phone.close()

    assert result.successful, result.message
    assert next(step.detail for step in result.steps if step.action == action) is DETAILS[action]
    effects = [effect.kind for effect in running.effects.all() if effect.origin == "app"]
    assert effects == EFFECTS.get(action, [])
    if action in OUTPUTS:
        assert result.outputs == OUTPUTS[action]
