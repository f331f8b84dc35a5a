"""`AdbPhone`'s fingers on a long list of a virtual phone, over a real adb server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from droidfleet_agent.driver.phone import AdbPhone, open_phone
from droidfleet_agent.virtual_phone.scenario.loader import parse_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import Deadline, SystemClock
from droidfleet_shared.screen.parse import parse
from support.adb import AdbServer, ConnectedPhones, RunningPhone

pytestmark = pytest.mark.integration

LIST = """
format: 1
name: rows
start: com.example.rows
apps:
  - package: com.example.rows
    label: Rows
    home: rows
    variables: {rows: {generate: {count: 200, item: "Row {{number}}"}}}
    screens:
      rows:
        activity: .RowsActivity
        root:
          type: list
          items: rows
          row:
            type: text
            text: "{{item}}"
            height: 50
            width: fill
            on_drag: [{effect: dropped, details: {onto: "{{value}}"}}]
"""
START, END = (540, 1_800), (540, 1_200)
MARK = "Row 15"


def ample() -> Deadline:
    return SystemClock().deadline(20)


@pytest.fixture
def virtual(phones: ConnectedPhones) -> RunningPhone:
    return phones(PhoneOptions(scenario=parse_scenario(LIST, source="rows")))


@pytest.fixture
async def phone(virtual: RunningPhone, adb_server: AdbServer) -> AsyncIterator[AdbPhone]:
    opened = await open_phone(virtual.address, adb_port=adb_server.port, deadline=ample())
    yield opened
    await opened.close()


async def middles(phone: AdbPhone) -> dict[str, tuple[int, int]]:
    """The rows in sight, by their text."""
    roots = parse(await phone.dump(deadline=ample())).roots
    return {node.text: node.bounds.center for root in roots for node in root.walk() if node.text.startswith("Row ")}


@pytest.mark.parametrize("duration_ms", [300, 500, 900])
async def test_swipe_that_rests_moves_a_list_by_its_own_length(phone: AdbPhone, duration_ms: int) -> None:
    before = (await middles(phone))[MARK][1]
    assert await phone.swipe(START, END, duration_ms=duration_ms, hold_ms=150, deadline=ample())
    assert before - (await middles(phone))[MARK][1] == START[1] - END[1]


async def test_swipe_that_does_not_rest_flings_the_list_further(phone: AdbPhone) -> None:
    before = (await middles(phone))[MARK][1]
    assert await phone.swipe(START, END, duration_ms=300, deadline=ample())
    assert before - (await middles(phone))[MARK][1] > START[1] - END[1]


async def test_drag_takes_a_row_to_another_and_leaves_the_list_where_it_is(
    phone: AdbPhone, virtual: RunningPhone
) -> None:
    before = await middles(phone)
    assert await phone.drag(before["Row 12"], before["Row 5"], duration_ms=400, deadline=ample())
    assert [effect.details for effect in virtual.effects.of("dropped")] == [{"onto": "Row 5"}]
    assert await middles(phone) == before
