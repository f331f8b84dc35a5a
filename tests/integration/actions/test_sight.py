"""Selectors on the picture of the screen, on a game that no dump tells of."""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from droidfleet_agent.driver.phone import open_phone
from droidfleet_agent.virtual_phone.scenario.loader import load_scenario
from droidfleet_agent.virtual_phone.server import PhoneOptions
from droidfleet_shared.clock import SystemClock
from droidfleet_shared.protocol.codes import Detail, StepCode
from droidfleet_shared.protocol.result import TaskResult
from integration.actions.conftest import Bench
from support.adb import AdbServer, ConnectedPhones
from support.runs import task_of

pytestmark = pytest.mark.integration

SLOW_MS = 20_000
"""Reading takes one to two seconds of a processor that others use too."""


def tap(**selector: object) -> dict[str, object]:
    return {"action": "CLICK", "selector": selector, "timeoutMs": SLOW_MS}


@pytest.fixture
async def game(phones: ConnectedPhones, adb_server: AdbServer) -> AsyncIterator[Bench]:
    """The game in front."""
    running = phones(PhoneOptions(scenario=load_scenario("game")))
    clock = SystemClock()
    phone = await open_phone(running.address, adb_port=adb_server.port, clock=clock, deadline=clock.deadline(20))
    yield Bench(running, phone)
    await phone.close()


async def test_a_text_that_only_the_picture_shows_is_tapped_once(game: Bench) -> None:
    result = await game.run(
        {**tap(ocrText="Start game"), "after": {"condition": {"visible": {"ocrText": "Level 1"}}, "timeoutMs": SLOW_MS}}
    )

    assert result.successful
    assert result.steps[0].detail is Detail.VERIFIED
    assert result.steps[0].target is not None
    assert result.steps[0].target.text == "Start game"
    assert game.seen("game_started") == ["game_started"]


async def test_a_text_that_is_read_twice_is_ambiguous(game: Bench) -> None:
    result = await game.run(tap(ocrText="Start game"), tap(ocrText="Build tower"))

    assert result.code is StepCode.TARGET_AMBIGUOUS
    assert len(result.steps[1].candidates) == 2
    assert game.seen("tower_built") == []


async def test_a_part_of_the_picture_is_found_by_its_looks(game: Bench) -> None:
    picture = Image.open(io.BytesIO(await game.phone.screenshot(deadline=SystemClock().deadline(10))))
    [gear] = game.running.do(
        lambda running: [
            node.visible_bounds for root in running.phone._roots() for node in root.walk() if node.value == "gear"
        ]
    )
    cut = io.BytesIO()
    picture.crop((gear.left, gear.top, gear.right, gear.bottom)).save(cut, "PNG")
    task = task_of(tap(image={"artifact": "gear"}))
    result: TaskResult = await game.run_task(
        task.model_copy(update={"artifacts": {"gear": base64.b64encode(cut.getvalue()).decode()}})
    )

    assert result.successful, result.message
    assert game.seen("sound_toggled") == ["sound_toggled"]


async def test_a_point_is_touched_where_the_author_says(game: Bench) -> None:
    [start] = game.running.do(
        lambda running: [
            node.visible_bounds for root in running.phone._roots() for node in root.walk() if node.text == "Start game"
        ]
    )
    x, y = start.center
    point = {"xPercent": round(x * 100 / 1080), "yPercent": round(y * 100 / 2400)}
    result = await game.run(tap(point=point, allowPoint=True))

    assert result.successful
    assert game.seen("game_started") == ["game_started"]
