"""The shipped scenarios by tasks: a long list, a drop-down with many options, a list that is put in order by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import Detail
from integration.actions.conftest import Bench
from support.adb import AdbServer, ConnectedPhones
from support.runs import JsonStep

pytestmark = pytest.mark.integration

MANY = 40
"""Scrolls, for lists of a hundred rows."""


@pytest.fixture
async def scenario(
    phones: ConnectedPhones, adb_server: AdbServer, request: pytest.FixtureRequest
) -> AsyncIterator[Bench]:
    """A phone with the scenario that the test names."""
    running = phones(PhoneOptions(scenario=load_scenario(str(request.param))))
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb_server.port, clock=clock, deadline=clock.deadline(20))
    yield Bench(running, phone)
    await phone.close()


def on(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", [name], indirect=True)


def tap(**selector: object) -> JsonStep:
    return {"action": "CLICK", "selector": selector}


@on("settings")
async def test_a_language_far_down_is_scrolled_to_and_chosen(scenario: Bench) -> None:
    task = await scenario.run(
        {"action": "SCROLL", "until": {"text": "System"}},
        tap(text="System"),
        {"action": "SCROLL", "until": {"text": "中文 (114)"}, "maxScrolls": MANY},
        tap(text="中文 (114)"),
    )

    assert task.successful, task.message
    assert scenario.details("setting_changed") == [{"setting": "language", "value": "中文 (114)"}]


@on("shop")
async def test_a_country_is_chosen_in_a_drop_down(scenario: Bench) -> None:
    task = await scenario.run(
        tap(text="Ceramic tea pot 0.8 l"),
        tap(text="Add to cart"),
        tap(text="View cart"),
        tap(text="Proceed to checkout"),
        {
            "action": "SELECT_OPTION",
            "selector": {"resourceId": "country_spinner"},
            "option": {"text": "Uruguay"},
            "maxScrolls": MANY,
        },
        {"action": "EXTRACT_TEXT", "selector": {"resourceId": "android:id/text1"}, "outputField": "country"},
    )

    assert task.successful, task.message
    assert task.outputs == {"country": "Uruguay"}


@on("shop")
async def test_favourites_are_put_in_another_order(scenario: Bench) -> None:
    first, third = 'Tea pot cosy "Otter"', "A field guide to clouds"
    task = await scenario.run(
        tap(description="Favourites"),
        {
            "action": "DRAG",
            "selector": {"description": f"Reorder {first}"},
            "to": {"description": f"Reorder {third}"},
            "after": {"condition": {"visible": {"text": first, "below": {"text": third}}}},
        },
    )

    assert task.successful, task.message
    assert task.steps[1].detail is Detail.VERIFIED
    assert [moved["to"] for moved in scenario.details("favourite_moved")] == [2]
