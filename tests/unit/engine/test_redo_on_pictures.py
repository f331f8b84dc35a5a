"""`redo` where the target stands on the picture alone: the tree of a game is the same whatever happens."""

from __future__ import annotations

import json

import pytest

from droidfleet_agent.driver.memory import Fault, MemoryPhone, Page
from droidfleet_agent.engine.control import RunControl
from droidfleet_agent.engine.run import Engine
from droidfleet_agent.vision.port import PictureSize, Vision
from droidfleet_shared.clock import VirtualClock
from droidfleet_shared.protocol.codes import StepCode
from droidfleet_shared.protocol.result import StepResult
from droidfleet_shared.protocol.validate import validate_task
from droidfleet_shared.screen.node import Bounds
from droidfleet_shared.screen.sights import Sighting
from support.runs import AGENT, Recorder
from support.screens import HEIGHT, WHOLE, WIDTH, dump, node, window

Json = dict[str, object]

GAME = Page(dump(window(node("", WHOLE, class_name="android.view.SurfaceView"))))
WON: Json = {"condition": {"visible": {"ocrText": "Won"}}, "timeoutMs": 500}
IN_TREE: Json = {"condition": {"visible": {"text": "Won"}}, "timeoutMs": 500}
BUY: Json = {"action": "CLICK", "selector": {"ocrText": "Buy"}, "redo": True, "timeoutMs": 1000}
POINT: Json = {
    "action": "CLICK",
    "selector": {"point": {"xPercent": 10, "yPercent": 10}, "allowPoint": True},
    "redo": True,
}


class Game(Vision):
    """A canvas that shows one coin more for each tap that it gets."""

    def __init__(self, phone: MemoryPhone) -> None:
        self._phone = phone

    @property
    def taps(self) -> int:
        return sum(done.call == "tap" for done in self._phone.done)

    def size(self, picture: bytes) -> PictureSize:
        return PictureSize(WIDTH, HEIGHT)

    def texts(self, picture: bytes) -> tuple[Sighting, ...]:
        words = ("Buy", f"Coins: {self.taps}")
        return tuple(Sighting(Bounds(0, 100 * top, 90, 100 * top + 90), 0.9, word) for top, word in enumerate(words))

    def find(self, picture: bytes, wanted: bytes, *, threshold: float) -> tuple[Sighting, ...]:
        return ()


async def play(step: Json, fault: Fault) -> tuple[StepResult, Game]:
    clock = VirtualClock()
    phone = MemoryPhone({"game": GAME}, start="game", clock=clock)
    phone.fail("tap", fault)
    game = Game(phone)
    task = {"schemaVersion": 1, "taskId": "t", "assignedAgentName": AGENT, "steps": [{"id": "s", **step}]}
    result = await Engine(phone, clock=clock, vision=lambda: game).run(
        validate_task(json.dumps(task)).require(),
        execution_id="e",
        agent_name=AGENT,
        observer=Recorder(),
        control=RunControl(),
    )
    return result.steps[0], game


@pytest.mark.parametrize("fault", [Fault.NONE, Fault.DIES_AFTER])
@pytest.mark.parametrize("after", [WON, IN_TREE])
async def test_an_effect_that_only_the_picture_shows_is_not_repeated(after: Json, fault: Fault) -> None:
    step, game = await play({**BUY, "after": after}, fault)
    assert not step.successful
    assert game.taps == 1


async def test_an_unknown_outcome_is_settled_by_the_picture_where_there_is_no_after() -> None:
    step, game = await play(BUY, Fault.DIES_AFTER)
    assert step.code is StepCode.OUTCOME_UNKNOWN
    assert game.taps == 1


@pytest.mark.parametrize(
    ("step", "fault"), [({**BUY, "after": WON}, Fault.SILENT), (BUY, Fault.HANG)], ids=["swallowed", "unknown"]
)
async def test_a_tap_that_left_the_picture_as_it_was_is_repeated(step: Json, fault: Fault) -> None:
    result, game = await play(step, fault)
    assert result.dispatched == 2
    assert game.taps == 1


async def test_what_is_done_at_a_point_is_never_repeated() -> None:
    result, _ = await play({**POINT, "after": WON}, Fault.SILENT)
    assert result.dispatched == 1
